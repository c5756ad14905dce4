//! Neighbours that change chunks in place, run as one step: the chunk is taken once, each of them changes it, and it is sent on
//! once. What happens to it on the way is the same, and so is what is measured.

use crate::chunk::{Chunk, Sample};
use crate::context::{Context, NONE};
use crate::message::NO_DUE;
use crate::operator::{Operator, Step};
use crate::run::PartSlot;
use crate::worker::NodeState;
use crate::{Error, Input, Output};
use std::any::Any;

/// Takes chunks where the first of several operators takes them, and sends them where the last one does. Made by those that change
/// samples in place ([`InPlace`](crate::InPlace)).
pub struct Carrier(pub(crate) Box<dyn Carry>);

/// See [`Carrier`].
pub(crate) trait Carry: Send {
    /// One chunk from the source, whose turn has begun, or one that lies before the first of those that change chunks, through them, and to
    /// the sink; and so many more as `more` says, as long as there are some and all is as usual. What is left of these is in `more` then.
    /// Notes when each step begins behind that of the source, if that is asked for.
    fn pass(
        &mut self,
        cx: &mut Context,
        way: &mut Way<'_>,
        more: &mut u32,
        times_ns: Option<&mut [u64]>,
    ) -> Came;

    /// To be told where the last one sends to.
    fn as_any(&mut self) -> &mut dyn Any;

    /// Whether a chunk waits.
    fn has_input(&self, cx: &Context) -> bool;
}

/// What a pass needs of a worker, taken apart once for several of them.
pub(crate) struct Way<'w> {
    /// Where the chunks come from it now, and do not lie before those that change them.
    pub source: Option<&'w mut Box<dyn Operator>>,
    /// Those that change chunks.
    pub inside: &'w mut [Box<dyn Operator>],
    /// Where it is run along, and nothing is in its way. What changes that is followed up before the next pass.
    pub sink: Option<&'w mut Box<dyn Operator>>,
    /// Of the source, of the first of those inside, of the sink.
    pub numbers: [u32; 3],
    /// Of the source.
    pub node: &'w mut NodeState,
    pub slot: &'w PartSlot,
    /// Passes before the last one, which went as far as they go.
    pub whole: &'w mut u64,
}

/// How far a pass came.
pub(crate) enum Came {
    /// The source had its step, which ended in this way.
    FromSource(Result<Step, Error>),
    /// There was no chunk.
    Nowhere,
    /// Through so many of those that change chunks; the next one failed.
    Failed(usize, Error),
    /// Through the run, and no further.
    Through,
    /// To the sink, whose step ended in this way.
    ToSink(Result<Step, Error>),
}

/// For chunks of one sample type.
struct Typed<T: Sample> {
    input: Input<Chunk<T>>,
    out: Output<Chunk<T>>,
}

impl Carrier {
    /// From where this input takes.
    pub(crate) fn from_input<T: Sample>(input: &Input<Chunk<T>>) -> Self {
        Carrier(Box::new(Typed { input: input.share(), out: Output::default() }))
    }

    /// To where this output sends.
    pub(crate) fn send_to<T: Sample>(&mut self, out: &Output<Chunk<T>>) {
        if let Some(typed) = self.0.as_any().downcast_mut::<Typed<T>>() {
            typed.out = out.share();
        }
    }
}

impl<T: Sample> Typed<T> {
    /// One chunk, through all of these, which are numbered from `first` on and shown in the slot. Says how many it went through
    /// before one failed, and how; 0 and no error where no chunk came.
    #[inline(always)]
    fn carry(
        &mut self,
        cx: &mut Context,
        operators: &mut [Box<dyn Operator>],
        first: u32,
        slot: &PartSlot,
        mut times_ns: Option<&mut [u64]>,
    ) -> (usize, Result<(), Error>) {
        cx.current = first;
        let Some(mut chunk) = self.input.pop(cx) else { return (0, Ok(())) };
        let (rate_hz, start) = (chunk.rate_hz(), chunk.info().start);
        let samples = match chunk.edit(cx) {
            Ok(samples) => bytemuck::cast_slice_mut::<T, u8>(samples),
            Err(error) => return (0, Err(error)),
        };
        for (done, operator) in operators.iter_mut().enumerate() {
            cx.current = first + done as u32;
            slot.enter(cx.current);
            if let Some(times_ns) = &mut times_ns {
                times_ns[done] = cx.clock.now_ns();
            }
            if let Err(error) = operator.edit(samples, rate_hz, start) {
                return (done, Err(error));
            }
        }
        (operators.len(), self.out.push(cx, chunk))
    }

    #[inline(always)]
    fn pass_with(
        &mut self,
        cx: &mut Context,
        way: &mut Way<'_>,
        more: &mut u32,
        mut times_ns: Option<&mut [u64]>,
    ) -> Came {
        let [source, first, sink] = way.numbers;
        let last = first as usize + way.inside.len() - 1;
        loop {
            if let Some(operator) = &mut way.source {
                cx.begin_step(source, way.slot);
                let outcome = operator.step(cx);
                if !matches!(outcome, Ok(Step::Again)) || cx.next != first {
                    return Came::FromSource(outcome);
                }
                way.node.sequence += 1;
            }
            (cx.next, cx.popped) = (NONE, 0);
            match self.carry(cx, way.inside, first, way.slot, times_ns.as_deref_mut()) {
                (through, Err(error)) => return Came::Failed(through, error),
                (0, Ok(())) => return Came::Nowhere,
                _ => {}
            }
            // As usual: all that was sent is with its consumer, and nobody is to know.
            let (came, is_usual) = match &mut way.sink {
                None => (Came::Through, cx.next == NONE && cx.hot[last].unmet == 0),
                Some(_) if cx.next != sink => return Came::Through,
                Some(operator) => {
                    if let Some(times_ns) = &mut times_ns {
                        times_ns[way.inside.len()] = cx.now_ns();
                    }
                    cx.begin_step(sink, way.slot);
                    let outcome = operator.step(cx);
                    let is_usual = matches!(outcome, Ok(Step::Wait))
                        && cx.next == NONE
                        && cx.popped != 0
                        && cx.stamp.due_ns == NO_DUE
                        && cx.earlier.is_empty();
                    (Came::ToSink(outcome), is_usual)
                }
            };
            let from_source = way.source.is_some();
            let goes_on = if from_source { cx.ready.is_empty() } else { cx.ready.is_only(first) };
            if *more == 0 || !is_usual || cx.wishes != 0 || !goes_on {
                return came;
            }
            *more -= 1;
            *way.whole += 1;
            if from_source {
                way.node.begin_turn(cx);
            } else {
                cx.ready.clear(first);
            }
        }
    }
}

impl<T: Sample> Carry for Typed<T> {
    fn pass(
        &mut self,
        cx: &mut Context,
        way: &mut Way<'_>,
        more: &mut u32,
        times_ns: Option<&mut [u64]>,
    ) -> Came {
        match times_ns {
            None => self.pass_with(cx, way, more, None),
            times_ns => self.pass_with(cx, way, more, times_ns),
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn has_input(&self, cx: &Context) -> bool {
        !self.input.is_empty(cx)
    }
}
