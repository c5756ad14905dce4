//! Waves: threads of a pool carry chunks through the same chain, one after another.
//!
//! A chain normally stays on one core, because to thread each chunk to another core costs more than most
//! steps take. In a wave, operators go from core to core and chunks stay: the state of an operator is a cache
//! line or two, a chunk is hundreds. The chain is cut into a few stages, each a station of a
//! [`TicketedPipeline`]; a thread that has time takes some new chunks from station to station. At each one
//! the operators get all messages in order, and one at a time, so they may keep any state. With as many
//! threads as stages all threads work, each with chunks in its own cache.
//!
//! A wave is open for a fraction of a millisecond. The worker that owns the chain lends the operators, and
//! carries chunks itself; other threads come and go. After the wave, the state is as if the worker had made
//! these passes alone: the operators are back, messages are counted, and messages that did not go through as
//! usual are queued on the edges, or a failure is reported. [`policy`] measures whether waves are worth it.

mod opening;
mod owner;
mod policy;
mod stage;

use crate::base::slot::{PartSlot, within};
use crate::engine::pool::WaveHelp;
use crate::engine::worker::NodeState;
use crate::operator::Operator;
use crate::operator::context::{Context, NONE};
use crate::operator::inline::SendChunk;
use crate::operator::message::Stamp;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use onbeat_queue::{Ticket, TicketedPipeline};
pub(crate) use owner::{WaveEdges, WaveOwner};
pub(crate) use policy::{WaveChoice, WavePolicy};
pub(crate) use stage::{ChainEnds, StageFailure};
use stage::{WaveItem, WaveStage};
use std::hint::spin_loop;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Approximate bytes of the chunks that a thread carries at once. They should stay in the cache next to the
/// core. (Measured without an engine, 48 KiB of such a cache, chunks of 16 and 32 KiB: more chunks cost up to
/// 10 %.)
const BYTES: usize = 32 << 10;

/// Most chunks that a thread carries at once.
const MOST: usize = 8;

/// Polls of a station from one `yield` to the next.
const POLLS: u32 = 4096;

/// Polls of the first station until a helping thread gives up: a few milliseconds.
const PATIENCE: u32 = 64 * POLLS;

/// State of a chain's waves that all threads share.
struct Wave {
    stations: TicketedPipeline<WaveStage>,
    /// Whether operators are lent at present. A hint.
    is_open: CachePadded<AtomicBool>,
    /// Place of the thread whose worker lends the operators.
    lender: AtomicU32,
    /// By thread of the pool.
    threads: Box<[CachePadded<WaveThread>]>,
    ends: ChainEnds,
}

/// State of one thread in waves.
struct WaveThread {
    kit: Mutex<Kit>,
    /// Shows the operator that is running.
    slot: PartSlot,
}

/// Context and chunks with which a thread carries messages.
struct Kit {
    cx: Context,
    group: MessageGroup,
}

/// Messages that are carried together.
struct MessageGroup {
    items: Vec<WaveItem>,
    /// Number of items that have a message.
    filled: usize,
    /// Number of items whose messages went all the way.
    gone: usize,
}

/// Parameters of one wave.
pub(crate) struct WaveRequest<'r> {
    /// By operator of the chain, ends included: its stage.
    pub stages: &'r [usize],
    /// Place of this thread in the pool.
    pub place: usize,
    /// Most messages that this thread carries.
    pub most: u64,
    /// Most messages that a thread carries at once.
    pub at_once: usize,
    /// Whether this thread has something else to do, given the number of messages that it has carried.
    pub leaves: &'r dyn Fn(u64) -> bool,
    /// Called with the place of a thread, and its operator, for which this thread has waited long; with
    /// `None` after the wait. Returns whether that thread does not return.
    pub waits: &'r dyn Fn(Option<(usize, u32)>) -> bool,
}

/// State of a worker that a wave works on: the operators of a chain, with both ends.
pub(crate) struct WaveState<'w> {
    pub source: &'w mut Box<dyn Operator>,
    pub inside: &'w mut [Box<dyn Operator>],
    pub sink: &'w mut Box<dyn Operator>,
    /// Numbers of the source, and of the first operator inside.
    pub numbers: [u32; 2],
    /// State of the source.
    pub node: &'w mut NodeState,
    pub slot: &'w PartSlot,
}

impl WaveState<'_> {
    /// All operators, in order.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Box<dyn Operator>> {
        let WaveState { source, inside, sink, .. } = self;
        [&mut **source].into_iter().chain(inside.iter_mut()).chain([&mut **sink])
    }
}

/// Result of a wave.
pub(crate) struct WaveOutcome {
    /// Messages of the source.
    pub begun: u64,
    /// Messages among these that went all the way.
    pub whole: u64,
    /// Messages among these that are queued before the sink.
    pub through: u64,
    /// Messages that other threads carried all the way.
    pub by_others: u64,
    /// Whether everything was as usual, to the end.
    pub is_usual: bool,
    pub failed: Option<StageFailure>,
}

impl MessageGroup {
    fn new() -> Self {
        MessageGroup { items: Vec::with_capacity(MOST), filled: 0, gone: 0 }
    }

    /// Gets chunks for this number of messages. False if there are too few.
    fn equip(&mut self, out: &dyn SendChunk, cx: &Context, messages: usize) -> bool {
        while self.items.len() < messages {
            let Some(chunk) = out.chunk_if_free(cx) else { return false };
            self.items.push(WaveItem { chunk, stamp: Stamp::default(), keys: None, next: NONE });
        }
        true
    }

    /// Returns all chunks to their store, in an order in which the next thread gets the first one first.
    fn strip(&mut self) {
        while self.items.pop().is_some() {}
    }
}

impl Wave {
    /// Takes one group from station to station. `None` if a thread before it does not return.
    fn run(
        &self,
        mut ticket: Ticket<'_, WaveStage>,
        (cx, group, slot): (&mut Context, &mut MessageGroup, &PartSlot),
        mut waits: impl FnMut(Option<u32>) -> bool,
    ) -> Option<bool> {
        (group.filled, group.gone) = (0, 0);
        let mut is_usual = true;
        while !ticket.is_through() {
            is_usual &= at_next(&mut ticket, &mut waits, |stage| stage.work(cx, group, self.ends, slot))?;
        }
        Some(is_usual)
    }

    /// Waits for the first station, and returns the next ticket. `None` if the thread there does not return.
    fn begin(&self, request: &WaveRequest<'_>) -> Option<Ticket<'_, WaveStage>> {
        let mut polls = 0;
        loop {
            if let Some(ticket) = self.stations.begin() {
                self.waits(request, None);
                return Some(ticket);
            }
            if self.waits(request, Some(polls)) {
                return None;
            }
            polls = polls.wrapping_add(1);
        }
    }

    /// Called between two polls, and with `None` after a long wait. In a long wait, shows the thread that is
    /// waited for. Returns whether that thread does not return.
    fn waits(&self, request: &WaveRequest<'_>, polls: Option<u32>) -> bool {
        let Some(polls) = polls else {
            return (request.waits)(None);
        };
        if !pause(polls) {
            return false;
        }
        let is_lost = (request.waits)(self.others_within(request.place).next());
        is_lost || self.stations.is_broken()
    }

    /// Other threads that are in operators, by place, each with its operator.
    fn others_within(&self, place: usize) -> impl Iterator<Item = (usize, u32)> {
        let others = self.threads.iter().enumerate().filter(move |(other, _)| *other != place);
        others.map(|(other, thread)| (other, thread.slot.within())).filter(|(_, at)| *at != within::NONE)
    }
}

impl WaveHelp for Wave {
    fn is_open(&self) -> bool {
        // Relaxed: a hint. The state of the first station decides.
        self.is_open.load(Ordering::Relaxed)
    }

    fn help(&self, place: usize, leaves: &dyn Fn() -> bool, is_lost: &dyn Fn(usize) -> bool) -> u64 {
        let thread = &*self.threads[place];
        let mut kit = match thread.kit.try_lock() {
            Ok(kit) => kit,
            Err(TryLockError::Poisoned(kit)) => kit.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        let Kit { cx, group } = &mut *kit;
        let mut helped = 0;
        let mut polls = 0;
        while self.is_open() && !group.items.is_empty() && !leaves() {
            let Some(ticket) = self.stations.begin_if(|stage| stage.is_open) else {
                pause(polls);
                polls += 1;
                if polls == PATIENCE {
                    // The thread at the first station takes long.
                    break;
                }
                continue;
            };
            let waits = |polls: Option<u32>| {
                let is_lost = || {
                    // Relaxed: a hint, written before the wave was open.
                    let lender = self.lender.load(Ordering::Relaxed) as usize;
                    is_lost(lender) || self.others_within(place).any(|(other, _)| is_lost(other))
                };
                polls.is_some_and(pause) && (self.stations.is_broken() || is_lost())
            };
            let is_usual = self.run(ticket, (&mut *cx, &mut *group, &thread.slot), waits);
            helped += group.filled as u64;
            if is_usual != Some(true) {
                break;
            }
            polls = 0;
        }
        helped
    }
}

/// Waits for a ticket's turn at its next station, and calls `act` there. `None` if the wait was given up.
fn at_next<R>(
    ticket: &mut Ticket<'_, WaveStage>,
    mut waits: impl FnMut(Option<u32>) -> bool,
    act: impl FnOnce(&mut WaveStage) -> R,
) -> Option<R> {
    let mut polls = 0;
    loop {
        if let Some(mut stage) = ticket.arrive() {
            if polls >= POLLS {
                waits(None);
            }
            return Some(act(&mut stage));
        }
        if waits(Some(polls)) {
            return None;
        }
        polls = polls.wrapping_add(1);
    }
}

/// Pauses between two polls: a spin-loop hint, or a `yield` after each [`POLLS`]. Returns whether it was a
/// `yield`.
fn pause(polls: u32) -> bool {
    let is_long = polls % POLLS == POLLS - 1;
    if is_long {
        std::thread::yield_now();
    } else {
        spin_loop();
    }
    is_long
}

fn lock(kit: &Mutex<Kit>) -> MutexGuard<'_, Kit> {
    kit.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of stages: one more than threads, so that no thread waits for a stage that is a little longer than
/// the others, but at most one per operator.
fn stage_count(threads: usize, operators: usize) -> usize {
    (threads + 1).min(operators)
}
