//! What a step has in its hands: the worker's queues, stores, clock and stamps.

mod clock;
mod hot;
mod lane;
mod skips;

pub(crate) use clock::Clock;
pub(crate) use hot::{DONE, EdgeState, Held, Hot, flag};
pub(crate) use lane::Lane;
pub(crate) use skips::Skips;

use crate::Error;
use crate::Step;
use crate::base::options::Pace;
use crate::base::ready::{Ready, Turns};
use crate::base::slot::PartSlot;
use crate::operator::chunk::{Chunk, Info, Sample};
use crate::operator::message::{Keys, NO_DUE, Stamp, Value};
use onbeat_queue::{Block, Owner, Store};
use std::cell::Cell;
use std::sync::Arc;

/// No operator.
pub(crate) const NONE: u32 = u32::MAX;

/// In [`Context::next`]: this step found a chunk store empty.
pub(crate) const STARVED: u32 = u32::MAX - 1;

/// Passed to every step: through it ports reach the worker's queues, and operators read the clock and the stamp of
/// the message in hand.
///
/// ```
/// use onbeat_runtime::{Context, Error, Input, Step};
///
/// /// A step that says what comes more than a millisecond late.
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
    // What every hop touches comes first: it shares a cache line.
    pub(crate) owner: Owner,
    /// The consumer of what was pushed first in this step; it is stepped next.
    pub(crate) next: u32,
    /// The edge whose newest message was pushed with just this stamp and these keys; [`NONE`] when they have changed
    /// since. Its consumer, when it follows at once, finds them in place: reading them back from the queue would make
    /// every hop wait for the stores of the one before.
    pub(crate) carried: u32,
    pub(crate) current: u32,
    /// The ports from which the message in hand was made in this step, one bit each (the last bit for all above).
    pub(crate) popped: u64,
    pub(crate) stamp: Stamp,
    pub(crate) keys: Option<Arc<Keys>>,
    pub(crate) hot: Box<[Hot]>,
    pub(crate) edges: Box<[EdgeState]>,
    pub(crate) ready: Ready,
    /// In this step something was pushed to another worker.
    pub(crate) sent_away: bool,
    /// Of an operator with several inputs: the stamp of the message that was taken last, before it was joined with
    /// others.
    pub(crate) own: Stamp,
    /// The stamp in hand came round a cycle: it yields to the next one.
    pub(crate) fed_back: bool,
    /// Inputs that an operator does not wait for until its next step, by edge: see [`Input::keep`](crate::Input::keep).
    pub(crate) kept: Vec<u32>,
    /// Stamps of messages that this step took before the one in hand, where somebody measures them.
    pub(crate) earlier: Vec<Stamp>,
    pub(crate) held: Box<[Held]>,
    pub(crate) turn: Turns,
    /// By rising block size.
    pub(crate) stores: Vec<Store<Info>>,
    /// The store that had nothing to give in this step, under [`flag::STARVED`].
    pub(crate) starved: usize,
    /// The time that goes with [`Step::Until`].
    pub(crate) until_ns: u64,
    pub(crate) clock: Clock,
    pub(crate) start_ns: u64,
    /// By operator: how long it was paused.
    pub(crate) shifts_ns: Box<[u64]>,
    pub(crate) pace: Option<Pace>,
    pub(crate) length_ns: Option<u64>,
    pub(crate) names: Arc<Names>,
    /// The sources have been told to end.
    pub(crate) stopping: bool,
    /// Ends of replicated stretches that wait for their turn, one bit each: see [`Worker::upcoming`](crate::engine::worker::Worker::upcoming).
    pub(crate) wishes: u64,
    /// Where there are lanes: how many operators there are whose steps are slow.
    pub(crate) slow: u32,
    /// Where operators hand out messages to other workers; by rising number of the operator.
    pub(crate) lanes: Vec<Lane>,
    /// Edges to other workers that were found full: where they still are, their producers wait.
    pub(crate) full: Vec<u32>,
    /// Of an operator that has turns with its input: messages that it may take in this one.
    pub(crate) visible: u32,
    /// Of such a one: nothing comes after this turn.
    pub(crate) is_last: bool,
    /// By operator: copies made because a shared chunk was to be changed.
    pub(crate) copies: Box<[Cell<u64>]>,
    pub(crate) notes: Vec<String>,
    /// By number of the source; empty where no source is to leave out anything.
    pub(crate) skips: Arc<[Skips]>,
}

/// Names of operators and edges by number, for messages.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub operators: Vec<String>,
    /// "a.out → b.in"
    pub edges: Vec<String>,
    pub quanta: Vec<u32>,
    /// Edges for which it is an error to be full.
    pub errors: Vec<bool>,
}

impl Context {
    /// Now, in nanoseconds on the run's clock: CLOCK_MONOTONIC, or virtual time.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// When the run began, on the run's clock; later by as long as the operator that is being stepped was paused.
    pub fn start_ns(&self) -> u64 {
        self.start_ns + self.shifts_ns.get(self.current as usize).copied().unwrap_or(0)
    }

    /// What to return from a step to be stepped again at `time_ns` on the run's clock, or when a message comes.
    ///
    /// ```
    /// # use onbeat_runtime::{Context, Error, Step};
    /// fn step(cx: &mut Context) -> Result<Step, Error> {
    ///     let in_a_millisecond = cx.now_ns() + 1_000_000;
    ///     Ok(cx.until(in_a_millisecond))
    /// }
    /// ```
    pub fn until(&mut self, time_ns: u64) -> Step {
        self.until_ns = time_ns;
        Step::Until
    }

    /// Whether the run is coming to its end because someone asked for it or its time is up: what is under way is still
    /// worked off, so an operator that holds messages back lets them go now. It is stepped then, if it waited for a time.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// The name of the operator that is being stepped.
    pub fn name(&self) -> &str {
        self.names.operators.get(self.current as usize).map_or("", String::as_str)
    }

    /// How sources are to keep time: what the run asks for, else what the operator's own parameter says.
    pub fn pace(&self, own: Pace) -> Pace {
        self.pace.unwrap_or(own)
    }

    /// The stamp of the message in hand, which goes out with what is pushed.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// For sources: the source time of what is pushed next in this step, and when it was due on the run's clock
    /// (`None` where nothing sets a time: such messages are sampled).
    #[inline]
    pub fn set_time(&mut self, time_ns: u64, due_ns: Option<u64>) {
        self.carried = NONE;
        // Only where it changes: the stamp is copied in wide pieces, which would wait for a narrow store.
        if self.stamp.time_ns != time_ns {
            self.stamp.time_ns = time_ns;
        }
        if let Some(due_ns) = due_ns {
            self.stamp.due_ns = due_ns;
        }
    }

    /// Sends what is pushed next in this step under a stamp that was kept from an earlier one.
    pub fn set_stamp(&mut self, stamp: Stamp) {
        self.carried = NONE;
        self.stamp = stamp;
    }

    /// A user key of the message in hand.
    pub fn key(&self, name: &str) -> Option<&Value> {
        self.keys.as_ref()?.get(name)
    }

    /// All user keys of the message in hand.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.as_deref()
    }

    /// Sets a user key on what is pushed next in this step. Allocates.
    pub fn set_key(&mut self, name: &str, value: impl Into<Value>) {
        self.carried = NONE;
        let keys = Arc::make_mut(self.keys.get_or_insert_default());
        keys.insert(name.into(), value.into());
    }

    /// For sources that know it, in `start`: how much source time they have, so that progress can be shown.
    pub fn set_length_ns(&mut self, length_ns: u64) {
        self.length_ns = Some(self.length_ns.unwrap_or(0).max(length_ns));
    }

    /// Says something in the record and at the end of the run: a value that was replaced, samples that were not
    /// finite. For rare things: it allocates.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = format!("{}: {}", self.name(), text.into());
        self.notes.push(text);
    }

    /// How many ticks the source that is stepped is to leave out now, because messages of it were late.
    pub(crate) fn skips(&self) -> u64 {
        self.skips.get(self.stamp.source()).map_or(0, Skips::take)
    }

    /// Whether the step that is under way found a store empty.
    pub(crate) fn is_starved(&self) -> bool {
        self.hot[self.current as usize].flags & flag::STARVED != 0
    }

    /// Before each step of an operator, which is then shown in the slot.
    #[inline(always)]
    pub(crate) fn begin_step(&mut self, operator: u32, slot: &PartSlot) {
        self.next = NONE;
        self.popped = 0;
        self.current = operator;
        slot.enter(operator);
    }

    /// After the step of a sink: whether it sent nothing and nobody measures the message.
    #[inline(always)]
    pub(crate) fn is_usual(&self) -> bool {
        self.next == NONE && self.stamp.due_ns == NO_DUE && self.earlier.is_empty()
    }

    /// Steps `to` next, or soon.
    #[inline(always)]
    pub(crate) fn wake(&mut self, to: u32) {
        if self.next == NONE {
            self.next = to;
        } else if self.next != to {
            self.ready.set(to);
        }
    }

    /// One more condition of `operator` does not hold.
    #[inline(always)]
    pub(crate) fn unmeet(&mut self, operator: u32) {
        self.hot[operator as usize].unmet += 1;
    }

    /// One more condition of `operator` holds.
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
        match std::mem::replace(&mut self.held[operator as usize], Held::No) {
            Held::No => {}
            Held::Ready => self.ready.set(operator),
            Held::Turn => self.turn.set(operator),
        }
    }

    /// Joins the message that was just taken at `port`, whose stamp is in place, with what was in hand before. The first
    /// message of a port stands for itself; one from another port joins it: the oldest stamp stays, keys are united,
    /// and the later one wins. A second one from the same port begins anew.
    /// What comes round a cycle (`feedback`) is older than all else, and would be for ever: it yields.
    pub(crate) fn join(
        &mut self,
        port: usize,
        before: (Stamp, Option<Arc<Keys>>),
        keys: Option<Arc<Keys>>,
        feedback: bool,
    ) {
        self.carried = NONE;
        self.own = self.stamp;
        let bit = 1 << port.min(63);
        if self.popped == 0 || self.popped & bit != 0 {
            if self.popped != 0 {
                self.keep_earlier(before.0);
            }
            self.popped = bit;
            self.keys = keys;
            self.fed_back = feedback;
            return;
        }
        self.popped |= bit;
        let (stamp, mut united) = before;
        self.stamp = match (self.fed_back, feedback) {
            (false, true) => stamp,
            (true, false) => self.stamp,
            _ => stamp.older(self.stamp),
        };
        self.fed_back &= feedback;
        if let Some(keys) = keys {
            let united = Arc::make_mut(united.get_or_insert_default());
            united.extend(keys.iter().map(|(name, value)| (Arc::clone(name), value.clone())));
        }
        self.keys = united;
    }

    /// A step takes more than one message: the stamp of each counts where a path or deadline ends.
    #[cold]
    pub(crate) fn keep_earlier(&mut self, stamp: Stamp) {
        if self.hot[self.current as usize].flags & (flag::TRACKED | flag::END) != 0 && stamp.due_ns != NO_DUE
        {
            self.earlier.push(stamp);
        }
    }

    #[inline(always)]
    pub(crate) fn new_chunk<T: Sample>(&mut self, quantum: Option<u32>) -> Option<Chunk<T>> {
        let quantum = quantum? as usize;
        // Nearly all workers have one store.
        match self.stores.first() {
            Some(first) if first.block_bytes() == quantum => self.new_chunk_from(0),
            _ => self.new_chunk_elsewhere(quantum),
        }
    }

    /// As [`new_chunk`](Self::new_chunk), for who can do without: nobody waits for one where there is none.
    #[inline]
    pub(crate) fn chunk_if_free<T: Sample>(&self, quantum: Option<u32>) -> Option<Chunk<T>> {
        let quantum = quantum? as usize;
        let store = self.stores.iter().find(|store| store.block_bytes() == quantum)?;
        store.get_if_free().map(Chunk::from_block)
    }

    #[inline(never)]
    fn new_chunk_elsewhere<T: Sample>(&mut self, quantum: usize) -> Option<Chunk<T>> {
        self.stores
            .iter()
            .position(|store| store.block_bytes() == quantum)
            .and_then(|at| self.new_chunk_from(at))
    }

    #[inline(always)]
    fn new_chunk_from<T: Sample>(&mut self, store: usize) -> Option<Chunk<T>> {
        let block = self.stores[store].get();
        if block.is_none() {
            self.starved(store);
        }
        block.map(Chunk::from_block)
    }

    /// The step that is under way found a store empty: it comes again when chunks are back.
    #[cold]
    fn starved(&mut self, store: usize) {
        self.starved = store;
        self.hot[self.current as usize].flags |= flag::STARVED;
        if self.next < STARVED {
            self.ready.set(self.next);
        }
        self.next = STARVED;
    }

    /// Replaces a shared block by a copy of its own.
    #[cold]
    pub(crate) fn copy_chunk<T: Sample>(&self, block: &mut Block<T, Info>) -> Result<(), Error> {
        let bytes = block.block_bytes();
        let store = self.stores.iter().find(|store| store.block_bytes() == bytes);
        match store.and_then(|store| store.make_unique(block).map(|_| ())) {
            Some(()) => {
                let copies = &self.copies[self.current as usize];
                copies.set(copies.get() + 1);
                Ok(())
            }
            None => Err(Error::new(format!(
                "no chunk of {bytes} bytes is left for a copy: an operator keeps more chunks than its ports declare \
                 (`holds`)"
            ))),
        }
    }

    #[cold]
    pub(crate) fn no_room(&self, edge: u32) -> Error {
        let name = &self.names.edges[edge as usize];
        if self.names.errors[edge as usize] {
            return Error::new(format!(
                "the edge {name} is full, and its `when_full` is \"error\": raise its `capacity`, or choose \"wait\" or what it \
                 may drop"
            ));
        }
        Error::new(format!(
            "the edge {name} is full: push one message per step, or ask `room` before more, or choose what the edge \
             does `when_full`"
        ))
    }

    #[cold]
    pub(crate) fn over_quantum(&self, edge: u32, bytes: usize) -> Error {
        Error::new(format!(
            "a chunk of {bytes} bytes was pushed on the edge {}, whose quantum is {} bytes: raise the quantum or send \
             smaller chunks",
            self.names.edges[edge as usize], self.names.quanta[edge as usize]
        ))
    }
}
