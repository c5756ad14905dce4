//! Spread and gather keep the order of a stretch: the spread hands out messages, and the gather takes them
//! back in the order in which they were handed out.

use super::blocks::{BlockGather, BlockSpread};
use crate::operator::context::Context;
use crate::operator::context::Lane;
use crate::operator::lanes::LaneNeeds;
use crate::operator::message::{JOINED, KEYED, Message};
use crate::operator::ports::Merge;
use crate::operator::{Operator, Step};
use crate::{Error, Input, Output, Ports};
use onbeat_queue::Ring;
use std::sync::{Arc, OnceLock};

/// Order of the messages handed out: the worker, and the source of the message. Both operators are in one
/// part, so the part's owner opens the ring. The spread makes it when it starts.
type Handed = Arc<OnceLock<Ring<(), (usize, u64)>>>;

/// Makes a spread and a gather for the output's message type. A stretch uses a spread and a gather of
/// different types, which share the order in the slot.
pub(crate) type MakeSpread =
    fn(&SpreadSizes, &mut Option<SharedOrder>) -> (Box<dyn Operator>, Box<dyn Operator>);

/// Sizes of the queues between a spread and its gather.
#[derive(Debug, Clone)]
pub(crate) struct SpreadSizes {
    /// Number of workers, with one lane each.
    pub workers: usize,
    /// Messages that can be between the two.
    pub most: usize,
    /// Messages that each queue after the first one holds.
    pub capacity: usize,
    /// Room that is left before each lane that is on another worker than the two, where no steps are slow.
    /// The first worker hands out nothing while it does what falls to it, in a lane of its own and in the
    /// rest of the graph; the others live on what waits there.
    pub spare: usize,
    /// What the operators between the two remember; `None` if none of them remembers anything.
    pub needs: Option<LaneNeeds>,
    /// Whether several lanes are used only if they are faster than one.
    pub is_tried: bool,
}

/// Order that the spread and the gather share.
#[derive(Clone, Default)]
pub(crate) struct SharedOrder(Handed);

pub(crate) fn make_spread<M: Message>(
    sizes: &SpreadSizes,
    order: &mut Option<SharedOrder>,
) -> (Box<dyn Operator>, Box<dyn Operator>) {
    let &SpreadSizes { workers, most, capacity, spare, .. } = sizes;
    if let Some(needs) = &sizes.needs {
        let spread = BlockSpread::<M>::new(sizes, needs.clone());
        return (Box::new(spread), Box::new(BlockGather::<M>::new(workers)));
    }
    let SharedOrder(handed) = order.get_or_insert_default();
    let spread = Spread::<M> {
        input: Input::default(),
        outs: (0..workers).map(|_| Output::default()).collect(),
        handed: Arc::clone(handed),
        most,
        spares: [spare, capacity.saturating_sub(AHEAD).max(1)],
        next: 0,
    };
    let gather = Gather::<M> {
        inputs: (0..workers).map(|_| Input::default()).collect(),
        out: Output::default(),
        handed: Arc::clone(handed),
    };
    (Box::new(spread), Box::new(gather))
}

/// Messages that are to wait before a lane of another worker where steps are slow: it gets more in time, and
/// what waits there keeps what waits for another of its lanes.
const AHEAD: usize = 2;

struct Spread<M: Message> {
    input: Input<M>,
    outs: Vec<Output<M>>,
    handed: Handed,
    /// Messages that can be between it and the gather.
    most: usize,
    /// See [`SpreadSizes::spare`]; then the same where steps are slow.
    spares: [usize; 2],
    next: usize,
}

impl<M: Message> Spread<M> {
    /// Whom the next message goes to. The first worker shares this one's: it works at once on what it gets,
    /// so the others are to have something first.
    fn choose(&mut self, cx: &mut Context) -> usize {
        let spare = self.spares[usize::from(cx.replicas.slow_operators != 0)];
        let wants = |room: usize| room > spare;
        let (mut emptiest, mut room) = self.emptiest(cx);
        if !wants(room) {
            // What they have taken meanwhile is looked at only where it matters: it brings a cache line from
            // each.
            for out in &self.outs[1..] {
                out.poll_room(cx);
            }
            (emptiest, room) = self.emptiest(cx);
        }
        self.next = emptiest;
        if wants(room) { emptiest } else { 0 }
    }

    /// The worker other than the first with most room, as far as that is known.
    fn emptiest(&self, cx: &Context) -> (usize, usize) {
        let others = self.outs.len() - 1;
        let workers = (0..others).map(|step| 1 + (self.next + step) % others);
        workers
            .map(|worker| (worker, self.outs[worker].room(cx)))
            .max_by_key(|&(_, room)| room)
            .unwrap_or((0, 0))
    }
}

impl<M: Message> Operator for Spread<M> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        for (worker, out) in self.outs.iter_mut().enumerate() {
            p.output(&worker.to_string(), out);
        }
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.handed.get_or_init(|| Ring::new(&cx.owner, self.most));
        Lane::watch(cx, self.outs[1..].iter().flat_map(Output::numbers).collect());
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(message) = self.input.pop(cx) {
            let worker = self.choose(cx);
            let source = source_of(cx);
            let handed = self.handed.get().map(|handed| handed.push(&mut cx.owner, (), &(worker, source)));
            if !matches!(handed, Some(Ok(_))) {
                // An operator of the stretch holds more messages than the one in its step.
                return Err(not_one_for_one("fewer"));
            }
            self.outs[worker].push(cx, message)?;
        }
        Ok(Step::Wait)
    }
}

struct Gather<M: Message> {
    inputs: Vec<Input<M>>,
    out: Output<M>,
    handed: Handed,
}

impl<M: Message> Operator for Gather<M> {
    fn ports(&mut self, p: &mut Ports) {
        for (worker, input) in self.inputs.iter_mut().enumerate() {
            p.input(&worker.to_string(), input).many(Merge::Arrival);
        }
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let next = self.handed.get().and_then(|handed| handed.peek(&cx.owner, |&next| next));
        let Some((worker, source)) = next else {
            return match self.inputs.iter().position(|input| !input.is_empty(cx)) {
                Some(_) => Err(not_one_for_one("more")),
                None => Ok(Step::Wait),
            };
        };
        let Some(message) = self.inputs[worker].pop(cx) else {
            return match self.inputs[worker].is_ended(cx) {
                true => Err(not_one_for_one("fewer")),
                false => Ok(Step::Wait),
            };
        };
        if source_of(cx) != source {
            return Err(not_one_for_one("others"));
        }
        if let Some(handed) = self.handed.get() {
            handed.pop(&mut cx.owner);
        }
        self.out.push(cx, message)?;
        Ok(Step::Wait)
    }
}

/// Returns the source of the message in hand, as in its stamp.
fn source_of(cx: &Context) -> u64 {
    cx.stamp.origin & !(KEYED | JOINED)
}

/// Returns the error for a stretch with a different number of messages out than in; `what` is "more messages"
/// or the like.
pub(crate) fn not_one_for_one(what: &str) -> Error {
    Error::new(format!(
        "{what} messages came out of the replicated operators before it than went in: one whose `replica` is not `None` \
         sends exactly one for each that it takes, under the same stamp; leave its `replica` out, or choose another scheduler"
    ))
}
