//! Threads that share parts: each part of the graph goes to a thread that has time for it.
//!
//! A part is the engine of [`worker`](crate::engine::worker) for a few operators, mostly one. It runs until
//! it has nothing to do, then parks. The thread that sends it a message wakes it and keeps it in its own
//! list, so a light part stays with the part that it follows. Only a part that is heavy enough to be worth
//! the way is offered to other threads: handing a message to another core costs 0.1 to 0.5 µs, waking a
//! thread 10 to 40 µs.

mod watch;
mod weights;

use crate::base::descriptors::Descriptors;
use crate::base::idle::Idle;
use crate::base::options::Share;
use crate::base::quiescence::Unpark;
use onbeat_os::{Parker, Unparker};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use onbeat_queue::{TaskLease, TaskPool};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use weights::PartWeights;

/// Rounds after which a thread prefers its offered parts to its kept ones, or its oldest kept part to the one
/// that was woken last, so that none waits for ever. Two parts that wake each other are woken last in turn.
const ROUNDS: u32 = 32;

/// A wave, as other threads see it.
pub(crate) trait WaveHelp: Send + Sync {
    /// Whether chunks can be carried. A hint.
    fn is_open(&self) -> bool;

    /// Carries chunks on the thread at this place of the pool, until the wave closes or `leaves` says so.
    /// Returns the number of messages carried. `is_lost` says whether the thread at a place does not return.
    fn help(&self, place: usize, leaves: &dyn Fn() -> bool, is_lost: &dyn Fn(usize) -> bool) -> u64;
}

/// State that the threads of one pool share.
pub(crate) struct ThreadPool<P> {
    pub tasks: TaskPool<P>,
    unparkers: Box<[Unparker]>,
    /// By part: whether steps are worth the way to another thread.
    pub weights: PartWeights,
    /// By part: whether it gets blocks of work from another part, which has work of its own meanwhile.
    is_lane: Box<[bool]>,
    /// By part: the last thread that had it, whose cache may still have its state.
    last_thread: Box<[AtomicU32]>,
    /// Number of parts that are not over.
    open: AtomicU32,
    /// Whether a thread does not return; the others end then.
    is_given_up: AtomicBool,
    /// Whether a part has waited for a time, or has a latency limit.
    keeps_time: AtomicBool,
    /// By thread: parts that the thread has started, and stops.
    pub started: Box<[OnceLock<Vec<u32>>]>,
    /// By thread: number of the worker.
    pub workers: Box<[usize]>,
    /// Chains that threads can help with; the first `wave_count` places are used.
    waves: Box<[OnceLock<Arc<dyn WaveHelp>>]>,
    wave_count: AtomicU32,
    /// What the operators of the parts wait for. Set before the first step.
    pub descriptors: OnceLock<Arc<Descriptors>>,
}

/// Polls for another wave after one has closed: most often the next one opens at once.
const WAVE_POLLS: u32 = 1_000;

/// State of one thread of a pool, in thread-local memory.
struct PoolThread {
    /// Address of the pool, and the thread's place in it.
    pool: usize,
    place: usize,
    /// Part that was woken last: its data is still in the cache.
    next: Option<u32>,
    /// Parts kept for this thread, oldest first.
    list: VecDeque<u32>,
    counts: SharingCounts,
    /// Whether the part that it runs, or ran last, gets blocks of work.
    is_in_lane: bool,
    /// Whether the part that it runs, or ran last, is heavy.
    is_in_heavy: bool,
    /// Part claimed last of the thread's own offers.
    claimed: u32,
}

impl PoolThread {
    /// Whether another thread should run a part that this one wakes: a thread whose other parts are light
    /// runs it itself sooner than another one wakes up.
    fn shares(&self, weights: &PartWeights, part: u32) -> bool {
        weights.is_heavy(part) && (self.is_in_heavy || self.has_heavy(weights, part))
    }

    /// Whether a part is very heavy, or heavy beside another heavy one that waits here.
    fn has_heavy(&self, weights: &PartWeights, part: u32) -> bool {
        let mut waiting = self.list.iter().chain(&self.next);
        weights.is_very_heavy(part)
            || weights.is_heavy(part) && waiting.any(|&other| other != part && weights.is_heavy(other))
    }

    /// Claims one of the thread's own offers, in turn: a part that always has work is offered again after
    /// each of its long steps.
    fn claim<P>(&mut self, tasks: &TaskPool<P>) -> Option<u32> {
        let claimed = tasks.claim_below(self.place, self.claimed)?;
        self.claimed = claimed;
        Some(claimed)
    }
}

/// Counts of sharing on one thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SharingCounts {
    /// Parts that the thread has run.
    pub taken: u64,
    /// Parts among these that another thread had offered.
    pub stolen: u64,
    /// Unpark-ups of other threads.
    pub woken: u64,
    /// Number of times that the thread has parked.
    pub parked: u64,
    /// Messages carried in waves of other threads.
    pub helped: u64,
}

thread_local! {
    static THREAD: RefCell<Option<PoolThread>> = const { RefCell::new(None) };
}

impl<P> ThreadPool<P> {
    /// A pool with one thread per parker. `workers` has the number of each thread's worker, and `is_lane`
    /// says for each part whether it gets blocks of work.
    pub fn new(
        parkers: &[Parker],
        workers: &[usize],
        is_lane: Box<[bool]>,
        idle: Idle,
        share: Share,
    ) -> Self {
        let parts = is_lane.len();
        ThreadPool {
            is_lane,
            tasks: TaskPool::new(parkers.len(), parts),
            unparkers: parkers.iter().map(Parker::unparker).collect(),
            weights: PartWeights::new(parts, idle, share),
            last_thread: (0..parts)
                .map(|part| AtomicU32::new((part * parkers.len() / parts) as u32))
                .collect(),
            open: AtomicU32::new(parts as u32),
            is_given_up: AtomicBool::new(false),
            keeps_time: AtomicBool::new(false),
            started: parkers.iter().map(|_| OnceLock::new()).collect(),
            workers: workers.into(),
            waves: (0..parts).map(|_| OnceLock::new()).collect(),
            wave_count: AtomicU32::new(0),
            descriptors: OnceLock::new(),
        }
    }

    /// Wakes a parked part. From any thread.
    pub fn wake(&self, part: u32) {
        if self.tasks.wake(part) {
            self.queue(part);
        }
    }

    /// Keeps a light part for the calling thread. Offers a heavy part to all threads, first to the last one
    /// that had it. A thread outside of the pool always offers.
    fn queue(&self, part: u32) {
        let kept = THREAD.with_borrow_mut(|thread| {
            let Some(thread) = thread.as_mut().filter(|thread| thread.pool == self.address()) else {
                return false;
            };
            // What a lane has done is for a part that has other work, too: it is not to wait for this thread.
            let is_apart = self.is_lane[part as usize] || thread.is_in_lane;
            if is_apart || thread.shares(&self.weights, part) {
                self.offer(self.last_thread(part), part, &mut thread.counts);
            } else if let Some(before) = thread.next.replace(part) {
                thread.list.push_back(before);
            }
            true
        });
        if !kept {
            self.offer(self.last_thread(part), part, &mut SharingCounts::default());
        }
    }

    fn offer(&self, thread: usize, part: u32, counts: &mut SharingCounts) {
        if let Some(sleeper) = self.tasks.offer(thread, part) {
            counts.woken += 1;
            self.unparkers[sleeper].unpark();
        }
    }

    fn last_thread(&self, part: u32) -> usize {
        // Relaxed: a hint.
        self.last_thread[part as usize].load(Ordering::Relaxed) as usize
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Queues a part again that has more work but has to let others run.
    pub fn put_back(&self, part: u32, item: TaskLease<'_, P>) {
        item.put_back();
        with_thread(|thread| match self.is_lane[part as usize] || thread.has_heavy(&self.weights, part) {
            true => self.offer(thread.place, part, &mut thread.counts),
            false => thread.list.push_back(part),
        });
    }

    /// Whether the calling thread has other parts to run.
    pub fn others_wait(&self) -> bool {
        THREAD.with_borrow(|thread| {
            thread.as_ref().is_some_and(|thread| {
                thread.next.is_some() || !thread.list.is_empty() || self.tasks.has_offers(thread.place)
            })
        })
    }

    /// Whether a waiting part may be too late for something. Relaxed: a hint.
    pub fn keeps_time(&self) -> bool {
        self.keeps_time.load(Ordering::Relaxed)
    }

    /// Sets [`keeps_time`](Self::keeps_time) from now on.
    pub fn keep_time(&self) {
        self.keeps_time.store(true, Ordering::Relaxed);
    }

    /// Whether an alarm is due that no thread has taken yet.
    pub fn has_due(&self, now_ns: impl Fn() -> u64) -> bool {
        let next_ns = self.tasks.next_alarm_ns();
        next_ns != u64::MAX && now_ns() >= next_ns
    }

    /// Makes the calling thread the one at this place of the pool.
    pub fn join(&self, thread: usize) {
        THREAD.set(Some(PoolThread {
            pool: self.address(),
            place: thread,
            next: None,
            list: VecDeque::with_capacity(self.is_lane.len()),
            counts: SharingCounts::default(),
            is_in_lane: false,
            is_in_heavy: false,
            claimed: u32::MAX,
        }));
    }

    /// Ends [`join`](Self::join). Returns the thread's counts.
    pub fn leave(&self) -> SharingCounts {
        THREAD.take().map_or(SharingCounts::default(), |thread| thread.counts)
    }

    /// Adds a part, which the calling thread will run first.
    pub fn enter(&self, part: u32, pooled: P) {
        self.tasks.enter(part, pooled);
        with_thread(|thread| thread.list.push_back(part));
    }

    /// Returns the next part for this thread: the part that was woken last, then kept parts, then its own
    /// offers, then offers of other threads.
    pub fn next(&self, thread: usize, round: u32) -> Option<(u32, TaskLease<'_, P>)> {
        loop {
            let offered = || with_thread(|thread| thread.claim(&self.tasks)).flatten();
            let last = || with_thread(|thread| thread.next.take()).flatten();
            let oldest = || with_thread(|thread| thread.list.pop_front()).flatten();
            let own = match round % (2 * ROUNDS) {
                0 => offered().or_else(last).or_else(oldest),
                ROUNDS => oldest().or_else(last).or_else(offered),
                _ => last().or_else(oldest).or_else(offered),
            };
            let part = match own {
                Some(part) => part,
                None => {
                    let part = self.steal(thread)?;
                    with_thread(|thread| thread.counts.stolen += 1);
                    part
                }
            };
            if let Some(item) = self.tasks.take(part) {
                if self.last_thread(part) != thread {
                    self.last_thread[part as usize].store(thread as u32, Ordering::Relaxed);
                }
                with_thread(|thread| {
                    thread.counts.taken += 1;
                    thread.is_in_lane = self.is_lane[part as usize];
                    thread.is_in_heavy = self.weights.is_heavy(part);
                });
                return Some((part, item));
            }
        }
    }

    fn steal(&self, thread: usize) -> Option<u32> {
        let threads = self.unparkers.len();
        (1..threads).find_map(|step| self.tasks.claim((thread + step) % threads))
    }

    /// Whether any thread has offered a part, or all are over.
    fn has_parts(&self) -> bool {
        self.is_over() || (0..self.unparkers.len()).any(|thread| self.tasks.has_offers(thread))
    }

    /// Lets threads help with a chain of a part from now on. Most parts have one chain.
    pub fn add_wave(&self, wave: Arc<dyn WaveHelp>) -> bool {
        // Relaxed: a thread that sees the number too early finds an empty place.
        let place = self.wave_count.fetch_add(1, Ordering::Relaxed) as usize;
        self.waves.get(place).is_some_and(|free| free.set(wave).is_ok())
    }

    fn open_wave(&self) -> Option<&Arc<dyn WaveHelp>> {
        let count = self.wave_count.load(Ordering::Relaxed) as usize;
        let waves = self.waves.iter().take(count).filter_map(OnceLock::get);
        waves.into_iter().find(|wave| wave.is_open())
    }

    /// Helps with an open wave. Returns whether messages were carried.
    pub fn help(&self, thread: usize, now_ns: impl Fn() -> u64, is_lost: impl Fn(usize) -> bool) -> bool {
        let leaves = || self.has_parts() || self.has_due(&now_ns);
        let is_lost = |place: usize| is_lost(self.workers[place]);
        let mut helped = 0;
        let mut polls = 0;
        while polls < WAVE_POLLS && !leaves() {
            let wave = self.open_wave();
            let carried = wave.map_or(0, |wave| wave.help(thread, &leaves, &is_lost));
            // There is no wave to help with, or nothing can be carried in the open one.
            if carried == 0 && (helped == 0 || wave.is_some_and(|wave| wave.is_open())) {
                break;
            }
            helped += carried;
            polls = if carried > 0 { 0 } else { polls + 1 };
            std::hint::spin_loop();
        }
        with_thread(|thread| thread.counts.helped += helped);
        helped > 0
    }

    /// Wakes the other threads if they are parked.
    pub fn call_others(&self, thread: usize) {
        let others = self.unparkers.iter().enumerate().filter(|(other, _)| *other != thread);
        others.for_each(|(_, other)| other.unpark());
    }

    /// Place of the calling thread.
    pub fn place(&self) -> usize {
        with_thread(|thread| thread.place).unwrap_or(0)
    }

    /// Counts a part out that is over. The last one wakes all threads, which end.
    pub fn close_one(&self) {
        // AcqRel: pairs with the Acquire in `is_over`. A thread that reads 0 sees all that the parts did.
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.unparkers.iter().for_each(Unparker::unpark);
        }
    }

    /// Whether all parts are over, or a thread was given up.
    pub fn is_over(&self) -> bool {
        // Acquire: pairs with the AcqRel in `close_one`. Relaxed: remaining parts go through the task pool.
        self.open.load(Ordering::Acquire) == 0 || self.is_given_up.load(Ordering::Relaxed)
    }

    /// Ends the other threads after one that does not return was given up.
    pub fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
        self.unparkers.iter().for_each(Unparker::unpark);
    }
}

fn with_thread<R>(act: impl FnOnce(&mut PoolThread) -> R) -> Option<R> {
    THREAD.with_borrow_mut(|thread| thread.as_mut().map(act))
}

/// Wakes one part of a pool.
pub(crate) struct PoolWaker<P> {
    pub pool: Arc<ThreadPool<P>>,
    pub part: u32,
}

impl<P: Send> Unpark for PoolWaker<P> {
    fn wake(&self) {
        self.pool.wake(self.part);
    }
}
