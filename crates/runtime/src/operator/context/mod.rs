//! The context of a step: the worker's queues, stores, clock and stamps.

mod beside;
mod chunks;
mod clock;
mod descriptors;
mod groups;
mod hot;
mod lane;
mod losses;
mod pairs;
mod skips;
pub(crate) mod waits;

pub(crate) use beside::cores as cores_beside;
pub(crate) use clock::RunClock;
pub(crate) use groups::{Joining, Replicas, WaitState};
pub(crate) use hot::{DONE, EdgeState, Hold, Hot, flag};
pub(crate) use lane::Lane;
pub(crate) use losses::Losses;
pub(crate) use pairs::{PairCheck, SampleSpan};
pub(crate) use skips::Skips;

use crate::Step;
use crate::base::options::Pace;
use crate::base::ready::{ReadyList, TurnList};
use crate::base::slot::PartSlot;
use crate::operator::chunk::Info;
use crate::operator::message::{Keys, NO_DUE, Stamp, Value};
use onbeat_queue::{Owner, Store};
use std::cell::Cell;
use std::sync::Arc;

/// Number that stands for no operator, or for no edge.
pub(crate) const NONE: u32 = u32::MAX;

/// In [`Context::next`]: this step found a chunk store empty.
pub(crate) const STARVED: u32 = u32::MAX - 1;

/// What a step may use besides its own fields: queues, chunk stores, the clock, and the stamp of the message
/// in hand.
///
/// Ports need it to pop, push and take chunks. An operator reads the time, the stamp and the keys from it,
/// and asks to be stepped at a time ([`until`](Context::until)).
///
/// The *message in hand* is the one that this step popped last. A message that the step pushes gets its stamp
/// and keys. If the step popped from several inputs, the oldest stamp counts, and the keys are united.
///
/// All times are nanoseconds (`u64`) on the run's clock: CLOCK_MONOTONIC, a scaled copy of it, or virtual
/// time.
///
/// ```
/// use onbeat_runtime::{Context, Error, Input, Step};
///
/// /// A step that reports messages that come more than a millisecond late.
/// fn watch(input: &mut Input<u64>, cx: &mut Context) -> Result<Step, Error> {
///     if let Some(x) = input.pop(cx)
///         && cx.stamp().due_ns().is_some_and(|due_ns| cx.now_ns() > due_ns + 1_000_000)
///     {
///         cx.note(format!("{x} was late"));
///     }
///     Ok(Step::Wait)
/// }
/// ```
#[repr(C, align(64))]
pub struct Context {
    // Fields that every hop touches come first: they share cache lines.
    pub(crate) owner: Owner,
    /// The consumer of the first message that this step pushed. It is stepped next.
    pub(crate) next: u32,
    /// The edge whose newest message was pushed with exactly the stamp and keys below; [`NONE`] if they have
    /// changed since. If the consumer is stepped at once, it finds them here. Reading them back from the
    /// queue would make every hop wait for the stores of the hop before.
    pub(crate) stamped_edge: u32,
    /// The operator that is being stepped.
    pub(crate) current: u32,
    /// The ports that this step popped the message in hand from, one bit each. Bit 63 stands for all ports
    /// from 63 on.
    pub(crate) popped: u64,
    /// Stamp and keys of the message in hand.
    pub(crate) stamp: Stamp,
    pub(crate) keys: Option<Arc<Keys>>,
    /// Per operator: counters of the hot loop.
    pub(crate) hot: Box<[Hot]>,
    /// Per edge: state beside its queue.
    pub(crate) edges: Box<[EdgeState]>,
    /// Operators that have work.
    pub(crate) ready: ReadyList,
    /// Whether this step pushed to another worker.
    pub(crate) sent_away: bool,
    pub(crate) joining: Joining,
    pub(crate) replicas: Replicas,
    /// Per operator: the list that it returns to when its conditions hold.
    pub(crate) held: Box<[Hold]>,
    /// Sources that want a turn.
    pub(crate) turn: TurnList,
    /// Chunk stores, by rising block size.
    pub(crate) stores: Vec<Store<Info>>,
    /// Source time that the sources of this part have, as they said in `start`.
    pub(crate) length_ns: Option<u64>,
    pub(crate) clock: RunClock,
    /// Start of the run on its clock.
    pub(crate) start_ns: u64,
    /// Per operator: time for which it was paused.
    pub(crate) shifts_ns: Box<[u64]>,
    /// Pace that the run asks for; `None` leaves it to each source.
    pub(crate) pace: Option<Pace>,
    pub(crate) sync_files: bool,
    pub(crate) names: Arc<Names>,
    /// Whether the sources were asked to end.
    pub(crate) stopping: bool,
    /// Real time at which they were.
    pub(crate) stopped_real_ns: u64,
    /// Time at which a full path let the source that is stepped go on; 0 for others.
    pub(crate) released_ns: u64,
    /// By how much the message in hand was late when it was let go.
    pub(crate) held_ns: u64,
    /// Operators that hand messages out to other workers, by rising number of the operator.
    pub(crate) lanes: Vec<Lane>,
    pub(crate) waiting: WaitState,
    /// Per operator: copies of shared chunks that were edited.
    pub(crate) copies: Box<[Cell<u64>]>,
    /// Notes for the record.
    pub(crate) notes: Vec<String>,
    pub(crate) losses: Losses,
    /// Waits for locks, if the run explains misses.
    pub(crate) waits: Option<Arc<waits::WaitLog>>,
    /// Ticks to skip, per source; empty if no source skips ticks.
    pub(crate) skips: Arc<[Skips]>,
    /// Cores for threads that operators start.
    pub(crate) cores_beside: Arc<[usize]>,
}

/// Names of operators and edges by number, for messages.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub operators: Vec<String>,
    /// "a.out → b.in"
    pub edges: Vec<String>,
    /// Quanta of the edges in bytes.
    pub quanta: Vec<u32>,
    /// Per edge: whether it is an error if it is full.
    pub errors: Vec<bool>,
}

impl Context {
    /// Returns the time, in nanoseconds on the run's clock.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Returns the start of the run in nanoseconds on the run's clock, plus the time for which this operator
    /// was paused.
    pub fn start_ns(&self) -> u64 {
        self.start_ns + self.shifts_ns.get(self.current as usize).copied().unwrap_or(0)
    }

    /// Sets an alarm. Return the result from the step: the operator is stepped again at `time_ns` on the
    /// run's clock, or when a message comes.
    ///
    /// ```
    /// # use onbeat_runtime::{Context, Error, Step};
    /// fn step(cx: &mut Context) -> Result<Step, Error> {
    ///     let in_a_millisecond = cx.now_ns() + 1_000_000;
    ///     Ok(cx.until(in_a_millisecond))
    /// }
    /// ```
    pub fn until(&mut self, time_ns: u64) -> Step {
        self.waiting.until_ns = time_ns;
        Step::Until
    }

    /// Whether the run is being stopped from outside, or its duration is over. Queued messages are still
    /// processed, so an operator that holds messages back should send them now. An operator with an alarm is
    /// stepped for that.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Returns the name of the operator that is being stepped.
    pub fn name(&self) -> &str {
        self.names.operators.get(self.current as usize).map_or("", String::as_str)
    }

    /// Returns the pace for a source: the pace that the run asks for, otherwise `own`, the source's own
    /// parameter.
    pub fn pace(&self, own: Pace) -> Pace {
        self.pace.unwrap_or(own)
    }

    /// Returns whether a sink should wait until its file is on the disk before it gives it its name.
    pub fn sync_files(&self) -> bool {
        self.sync_files
    }

    /// Returns the stamp of the message in hand. Messages that this step pushes get it too.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// For sources: sets the stamp of the messages that this step pushes next.
    ///
    /// `time_ns` is the source time: nanoseconds since the source's first sample. `due_ns` is the time at
    /// which the message should leave, on the run's clock. `None` means that no time is due; the engine then
    /// measures only samples of these messages.
    #[inline]
    pub fn set_time(&mut self, time_ns: u64, due_ns: Option<u64>) {
        self.stamped_edge = NONE;
        // Stored only if it changes: the stamp is copied in wide pieces, which would wait for a narrow store.
        if self.stamp.time_ns != time_ns {
            self.stamp.time_ns = time_ns;
        }
        if let Some(due_ns) = due_ns {
            // A message that a full path has held back is due when it may go.
            self.held_ns = self.released_ns.saturating_sub(due_ns);
            self.stamp.due_ns = due_ns + self.held_ns;
        }
    }

    /// Sets the stamp of the messages that this step pushes next, for example to one that an earlier step
    /// kept.
    pub fn set_stamp(&mut self, stamp: Stamp) {
        self.stamped_edge = NONE;
        self.stamp = stamp;
    }

    /// Returns a user key of the message in hand, or `None` if it has no key of this name.
    pub fn key(&self, name: &str) -> Option<&Value> {
        self.keys.as_ref()?.get(name)
    }

    /// Returns all user keys of the message in hand, or `None` if it has none.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.as_deref()
    }

    /// Sets a user key on the messages that this step pushes next. Allocates.
    pub fn set_key(&mut self, name: &str, value: impl Into<Value>) {
        self.stamped_edge = NONE;
        let keys = Arc::make_mut(self.keys.get_or_insert_default());
        keys.insert(name.into(), value.into());
    }

    /// For sources, in [`start`](crate::Operator::start): tells how much source time there is, in
    /// nanoseconds, so that views can show progress. Of several sources the longest counts.
    pub fn set_length_ns(&mut self, length_ns: u64) {
        self.length_ns = Some(self.length_ns.unwrap_or(0).max(length_ns));
    }

    /// Adds a note, which the record contains and the end of the run prints, after the name of this operator.
    ///
    /// Meant for rare events, such as a value that was replaced or samples that were not finite. Allocates.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = format!("{}: {}", self.name(), text.into());
        self.notes.push(text);
    }

    /// Takes the number of ticks that the current source should skip now, because messages of it were late.
    pub(crate) fn skips(&self) -> u64 {
        self.skips.get(self.stamp.source()).map_or(0, Skips::take)
    }

    /// Prepares a step of `operator`, and shows it in the slot.
    #[inline(always)]
    pub(crate) fn begin_step(&mut self, operator: u32, slot: &PartSlot) {
        self.next = NONE;
        self.popped = 0;
        self.current = operator;
        slot.enter(operator);
    }

    /// Whether the step of a sink that has just ended needs no more work: it pushed nothing, and its message
    /// is not measured.
    #[inline(always)]
    pub(crate) fn is_usual(&self) -> bool {
        self.next == NONE && self.stamp.due_ns == NO_DUE && self.joining.earlier.is_empty()
    }

    /// Steps `to` next. If another operator comes next already, puts `to` on the ready list.
    #[inline(always)]
    pub(crate) fn wake(&mut self, to: u32) {
        if self.next == NONE {
            self.next = to;
        } else if self.next != to {
            self.ready.set(to);
        }
    }

    /// Counts one more condition of `operator` that does not hold.
    #[inline(always)]
    pub(crate) fn unmeet(&mut self, operator: u32) {
        self.hot[operator as usize].unmet += 1;
    }

    /// Counts one condition less. If all hold now, a held operator becomes ready.
    #[inline(always)]
    pub(crate) fn meet(&mut self, operator: u32) {
        let hot = &mut self.hot[operator as usize];
        hot.unmet -= 1;
        if hot.unmet == 0 {
            self.release(operator);
        }
    }

    #[inline]
    fn release(&mut self, operator: u32) {
        match std::mem::replace(&mut self.held[operator as usize], Hold::No) {
            Hold::No => {}
            Hold::Ready => self.ready.set(operator),
            Hold::Turn => self.turn.set(operator),
        }
    }

    /// Joins the message that was just popped at `port` with the message in hand. Its stamp is in place
    /// already, and `before` is the stamp and the keys in hand before it.
    ///
    /// The first message of a step is in hand as it is. A message from another port joins it: the older stamp
    /// stays and the keys are united, where the later value wins. A second message from the same port starts
    /// over.
    ///
    /// The stamp of a message that came round a cycle (`feedback`) yields to others. Otherwise it would be
    /// the oldest for ever.
    pub(crate) fn join(
        &mut self,
        port: usize,
        before: (Stamp, Option<Arc<Keys>>),
        keys: Option<Arc<Keys>>,
        feedback: bool,
    ) {
        self.stamped_edge = NONE;
        self.joining.own = self.stamp;
        let bit = 1 << port.min(63);
        if self.popped == 0 || self.popped & bit != 0 {
            if self.popped != 0 {
                self.keep_earlier(before.0);
            }
            self.popped = bit;
            self.keys = keys;
            self.joining.fed_back = feedback;
            return;
        }
        self.popped |= bit;
        let (stamp, mut united) = before;
        self.stamp = match (self.joining.fed_back, feedback) {
            (false, true) => stamp,
            (true, false) => self.stamp,
            _ => stamp.older(self.stamp),
        };
        self.joining.fed_back &= feedback;
        if let Some(keys) = keys {
            let united = Arc::make_mut(united.get_or_insert_default());
            united.extend(keys.iter().map(|(name, value)| (Arc::clone(name), value.clone())));
        }
        self.keys = united;
    }

    /// Keeps the stamp of a message when the step takes another: a path or deadline that ends here needs each
    /// of them.
    #[cold]
    pub(crate) fn keep_earlier(&mut self, stamp: Stamp) {
        if self.hot[self.current as usize].flags & (flag::TRACKED | flag::END) != 0 && stamp.due_ns != NO_DUE
        {
            self.joining.earlier.push(stamp);
        }
    }
}
