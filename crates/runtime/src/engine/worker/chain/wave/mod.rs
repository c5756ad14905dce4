//! Threads of a pool carry chunks through the same run, one behind another, like waves.
//!
//! A run goes over one core, because to hand each chunk to another one costs more than most steps take. But its operators may as well go
//! from core to core, and the chunks stay: what an operator keeps is a line or two, a chunk is hundreds. So the run is cut into a few legs,
//! each a station of a [`TicketedPipeline`]; who has time takes some new chunks from station to station. At each the operators see all messages in
//! order, and one at a time, so they may keep whatever they like. With as many threads as legs all of them are at work, each with chunks
//! in its own cache.
//!
//! A wave is open for a fraction of a millisecond. The worker that has the run lends the operators, and carries chunks itself; others come
//! and go. Behind it all is as if the worker had made these passes alone: the operators are back, what was sent is counted, and what did not
//! go through as usual lies on the edges, or is told as a failure. Whether it is worth it is measured: see [`tide`].

mod lend;
mod owner;
mod policy;
mod stage;

use crate::base::slot::{PartSlot, within};
use crate::engine::pool::Help;
use crate::engine::worker::NodeState;
use crate::operator::Operator;
use crate::operator::context::{Context, NONE};
use crate::operator::inline::SendChunk;
use crate::operator::message::Stamp;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use onbeat_queue::{Ticket, TicketedPipeline};
pub(crate) use owner::{Edges, WaveOwner};
pub(crate) use policy::{WaveChoice, WavePolicy};
pub(crate) use stage::{ChainEnds, Failed};
use stage::{Item, Stage};
use std::hint::spin_loop;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Bytes of the chunks that a thread carries at once, about: they are to stay in the cache next to the core. (Measured without an engine,
/// 48 KiB of such a cache, chunks of 16 and 32 KiB: more of them cost up to 10 %.)
const BYTES: usize = 32 << 10;

/// Most chunks that it carries at once.
const MOST: usize = 8;

/// Looks at a station from one `yield` to the next.
const LOOKS: u32 = 4096;

/// Looks at the first station until a thread has something better to do: a few milliseconds.
const PATIENCE: u32 = 64 * LOOKS;

/// What the threads share.
struct Wave {
    relay: TicketedPipeline<Stage>,
    is_open: CachePadded<AtomicBool>,
    /// The place of the thread whose worker lends the operators.
    lender: AtomicU32,
    /// By thread.
    direct: Box<[CachePadded<Hand>]>,
    ends: ChainEnds,
}

/// What one thread has of it.
struct Hand {
    kit: Mutex<Kit>,
    /// The operator that it is in.
    slot: PartSlot,
}

/// What it needs to carry chunks.
struct Kit {
    cx: Context,
    block: Block,
}

/// Chunks that are carried together.
struct Block {
    items: Vec<Item>,
    /// Those of them in which there is a message, and those that went all the way.
    filled: usize,
    gone: usize,
}

/// How a worker lets its run go in a wave.
pub(crate) struct WaveRequest<'r> {
    /// By operator of the run and its ends: the leg that it is in.
    pub stages: &'r [usize],
    /// The thread's place in the pool.
    pub place: usize,
    /// Most messages that this thread carries, and at once.
    pub most: u64,
    pub at_once: usize,
    /// Whether there is something else to do, behind so many messages.
    pub leaves: &'r dyn Fn(u64) -> bool,
    /// The thread at this place is in an operator for long; `None` where none is any more. Says whether it does not come back.
    pub waits: &'r dyn Fn(Option<(usize, u32)>) -> bool,
}

/// What a wave works on: the operators of a chain, with both ends.
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

/// What it came to.
pub(crate) struct WaveOutcome {
    /// Messages of the source; those of them that went all the way; and those that went through all operators and lie before the sink.
    pub begun: u64,
    pub whole: u64,
    pub through: u64,
    /// Messages that went all the way with others.
    pub by_others: u64,
    /// All was as usual, to the end.
    pub is_usual: bool,
    pub failed: Option<Failed>,
}

impl Block {
    fn new() -> Self {
        Block { items: Vec::with_capacity(MOST), filled: 0, gone: 0 }
    }

    /// Chunks for so many messages, if there are as many.
    fn equip(&mut self, out: &dyn SendChunk, cx: &Context, messages: usize) -> bool {
        while self.items.len() < messages {
            let Some(chunk) = out.chunk_if_free(cx) else { return false };
            self.items.push(Item { chunk, stamp: Stamp::default(), keys: None, next: NONE });
        }
        true
    }

    /// They go home. Who takes one next gets the first of them, as it was.
    fn strip(&mut self) {
        while self.items.pop().is_some() {}
    }
}

impl Wave {
    /// One block goes from station to station. `None` where a runner before it does not come back.
    fn run(
        &self,
        mut runner: Ticket<'_, Stage>,
        (cx, block, slot): (&mut Context, &mut Block, &PartSlot),
        mut waits: impl FnMut(Option<u32>) -> bool,
    ) -> Option<bool> {
        (block.filled, block.gone) = (0, 0);
        let mut is_usual = true;
        while !runner.is_through() {
            is_usual &= at_next(&mut runner, &mut waits, |stage| stage.work(cx, block, self.ends, slot))?;
        }
        Some(is_usual)
    }

    /// Begins as the next runner, when the first station is free.
    fn begin(&self, request: &WaveRequest<'_>) -> Option<Ticket<'_, Stage>> {
        let mut looks = 0;
        loop {
            if let Some(runner) = self.relay.begin() {
                self.waits(request, None);
                return Some(runner);
            }
            if self.waits(request, Some(looks)) {
                return None;
            }
            looks = looks.wrapping_add(1);
        }
    }

    /// Between two looks, and (`None`) behind a long wait. While it takes long, it is shown who is waited for; true where that one does not
    /// come back.
    fn waits(&self, request: &WaveRequest<'_>, looks: Option<u32>) -> bool {
        let Some(looks) = looks else {
            return (request.waits)(None);
        };
        if !pause(looks) {
            return false;
        }
        let is_lost = (request.waits)(self.others_within(request.place).next());
        is_lost || self.relay.is_broken()
    }

    /// The other threads that are in operators, by place, each with the operator.
    fn others_within(&self, place: usize) -> impl Iterator<Item = (usize, u32)> {
        let others = self.direct.iter().enumerate().filter(move |(other, _)| *other != place);
        others.map(|(other, hand)| (other, hand.slot.within())).filter(|(_, at)| *at != within::NONE)
    }
}

impl Help for Wave {
    fn is_open(&self) -> bool {
        // Relaxed: a hint. What counts is what lies at the first station.
        self.is_open.load(Ordering::Relaxed)
    }

    fn help(&self, place: usize, leaves: &dyn Fn() -> bool, is_lost: &dyn Fn(usize) -> bool) -> u64 {
        let hand = &*self.direct[place];
        let mut kit = match hand.kit.try_lock() {
            Ok(kit) => kit,
            Err(TryLockError::Poisoned(kit)) => kit.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        let Kit { cx, block } = &mut *kit;
        let mut helped = 0;
        let mut looks = 0;
        while self.is_open() && !block.items.is_empty() && !leaves() {
            let Some(runner) = self.relay.begin_if(|stage| stage.is_open) else {
                pause(looks);
                looks += 1;
                if looks == PATIENCE {
                    // Who is at the first station takes its time.
                    break;
                }
                continue;
            };
            let waits = |looks: Option<u32>| {
                let is_lost = || {
                    // Relaxed: a hint, written before the wave was open.
                    let lender = self.lender.load(Ordering::Relaxed) as usize;
                    is_lost(lender) || self.others_within(place).any(|(other, _)| is_lost(other))
                };
                looks.is_some_and(pause) && (self.relay.is_broken() || is_lost())
            };
            let is_usual = self.run(runner, (&mut *cx, &mut *block, &hand.slot), waits);
            helped += block.filled as u64;
            if is_usual != Some(true) {
                break;
            }
            looks = 0;
        }
        helped
    }
}

/// Does something at a runner's next station, when its turn there has come. `None` where that is not waited for any more.
fn at_next<R>(
    runner: &mut Ticket<'_, Stage>,
    mut waits: impl FnMut(Option<u32>) -> bool,
    act: impl FnOnce(&mut Stage) -> R,
) -> Option<R> {
    let mut looks = 0;
    loop {
        if let Some(mut stage) = runner.arrive() {
            if looks >= LOOKS {
                waits(None);
            }
            return Some(act(&mut stage));
        }
        if waits(Some(looks)) {
            return None;
        }
        looks = looks.wrapping_add(1);
    }
}

/// Between two looks. Says whether there were so many that it lets others have the core.
fn pause(looks: u32) -> bool {
    let is_long = looks % LOOKS == LOOKS - 1;
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

/// How many stations there are for so many threads and operators: one more than threads, so that nobody has to wait for a leg that is a little
/// longer than the others.
fn stages(threads: usize, operators: usize) -> usize {
    (threads + 1).min(operators)
}
