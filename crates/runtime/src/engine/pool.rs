//! Threads that share operators: each part of the graph goes to whichever thread has time for it.
//!
//! A part is the engine of [`worker`](crate::engine::worker) for a few operators, mostly one. It runs until it has nothing to do and
//! then lies down where it is; whoever sends it something wakes it, on the thread that does so: light work stays with
//! what it follows, in that thread's own list. Only what is heavy enough to be worth the way is offered to the others:
//! handing a message to another core costs 0.1 to 0.5 µs, waking a thread 10 to 40 µs.

use crate::base::idle::Idle;
use crate::base::options::Share;
use crate::base::quiescence::Unpark;
use onbeat_os::{Parker, Unparker};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use onbeat_queue::{TaskLease, TaskPool};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Rounds after which a thread looks at what it has offered before what it has kept: nothing waits for ever.
const ROUNDS: u32 = 32;

/// A part that goes from thread to thread.
pub(crate) trait Weighed {
    /// Whether its steps are long enough to be worth the way to another thread.
    fn is_heavy(&self) -> bool;
}

/// What other threads see of a wave.
pub(crate) trait Help: Send + Sync {
    /// Whether there is something to do. A hint.
    fn is_open(&self) -> bool;

    /// The thread at this place of the pool carries chunks until there is nothing to do or it is to leave. Says how many messages
    /// it carried. `is_lost` tells of the thread at a place whether it does not come back.
    fn help(&self, place: usize, leaves: &dyn Fn() -> bool, is_lost: &dyn Fn(usize) -> bool) -> u64;
}

/// What the threads of one pool share.
pub(crate) struct Pool<P> {
    pub tasks: TaskPool<P>,
    unparkers: Box<[Unparker]>,
    /// By part: its steps are worth the way to another thread.
    heavy: Box<[AtomicBool]>,
    /// By part: the thread that had it last, whose cache may still have its state.
    last: Box<[AtomicU32]>,
    /// Parts that are not over.
    open: AtomicU32,
    /// One of its threads does not come back: the others end.
    is_given_up: AtomicBool,
    /// A part has waited for a time, or will be measured against one.
    keeps_time: AtomicBool,
    /// By thread: the parts that it has started, and stops.
    pub started: Box<[OnceLock<Vec<u32>>]>,
    /// Mean time of a step from which on it is heavy.
    pub heavy_ns: u64,
    /// By thread: its number among the workers.
    pub workers: Box<[usize]>,
    /// Runs that threads may help with, as many as `helped` says.
    waves: Box<[OnceLock<Arc<dyn Help>>]>,
    helped: AtomicU32,
}

/// Looks for another wave behind one that was closed: most often the next one comes at once.
const LOOKS: u32 = 1_000;

/// What one thread of a pool has for itself.
struct Hand {
    /// Address of the pool.
    pool: usize,
    thread: usize,
    /// Woken last: its data is still in the cache.
    next: Option<u32>,
    /// Oldest first.
    list: VecDeque<u32>,
    counts: Counts,
    /// Claimed last of its own offers.
    claimed: u32,
}

impl Hand {
    /// In turn: a part that always has something to do is offered again after each of its long steps.
    fn claim<P>(&mut self, tasks: &TaskPool<P>) -> Option<u32> {
        let claimed = tasks.claim_below(self.thread, self.claimed)?;
        self.claimed = claimed;
        Some(claimed)
    }
}

/// What sharing did on one thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Parts that were taken up.
    pub taken: u64,
    /// Those of them that another thread had offered.
    pub stolen: u64,
    /// Other threads that were woken.
    pub woken: u64,
    /// Times that it went to sleep.
    pub parked: u64,
    /// Messages that it carried for another thread.
    pub helped: u64,
}

thread_local! {
    static HAND: RefCell<Option<Hand>> = const { RefCell::new(None) };
}

impl<P: Weighed> Pool<P> {
    /// `workers` has the number of each thread among the workers.
    pub fn new(parkers: &[Parker], workers: &[usize], parts: usize, idle: Idle, share: Share) -> Self {
        Pool {
            tasks: TaskPool::new(parkers.len(), parts),
            unparkers: parkers.iter().map(Parker::unparker).collect(),
            heavy: (0..parts).map(|_| AtomicBool::new(false)).collect(),
            last: (0..parts).map(|part| AtomicU32::new((part * parkers.len() / parts) as u32)).collect(),
            open: AtomicU32::new(parts as u32),
            is_given_up: AtomicBool::new(false),
            keeps_time: AtomicBool::new(false),
            started: parkers.iter().map(|_| OnceLock::new()).collect(),
            heavy_ns: match (share, idle) {
                (Share::Always, _) => 0,
                (Share::Heavy, Idle::Park | Idle::Early(_)) => 5_000,
                (Share::Heavy, _) => 1_000,
            },
            workers: workers.into(),
            waves: (0..parts).map(|_| OnceLock::new()).collect(),
            helped: AtomicU32::new(0),
        }
    }

    /// Brings a part that sleeps back to work. From any thread.
    pub fn wake(&self, part: u32) {
        if self.tasks.wake(part) {
            self.queue(part);
        }
    }

    /// Keeps a part for this thread, or offers it to all, but first to the one that had it last; from a thread outside of the
    /// pool always the latter.
    fn queue(&self, part: u32) {
        let kept = HAND.with_borrow_mut(|hand| {
            let Some(hand) = hand.as_mut().filter(|hand| hand.pool == self.address()) else { return false };
            // Relaxed: a hint.
            if self.heavy_ns == 0 || self.heavy[part as usize].load(Ordering::Relaxed) {
                self.offer(self.last(part), part, &mut hand.counts);
            } else if let Some(before) = hand.next.replace(part) {
                hand.list.push_back(before);
            }
            true
        });
        if !kept {
            self.offer(self.last(part), part, &mut Counts::default());
        }
    }

    fn offer(&self, thread: usize, part: u32, counts: &mut Counts) {
        if let Some(sleeper) = self.tasks.offer(thread, part) {
            counts.woken += 1;
            self.unparkers[sleeper].unpark();
        }
    }

    fn last(&self, part: u32) -> usize {
        // Relaxed: a hint.
        self.last[part as usize].load(Ordering::Relaxed) as usize
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// A part ran out of its turn and has more to do.
    pub fn put_back(&self, part: u32, item: TaskLease<'_, P>) {
        let heavy = item.is_heavy();
        item.put_back();
        with_hand(|hand| match heavy {
            true => self.offer(hand.thread, part, &mut hand.counts),
            false => hand.list.push_back(part),
        });
    }

    /// Whether this thread has other parts to run. On a thread of the pool.
    pub fn others_wait(&self) -> bool {
        HAND.with_borrow(|hand| {
            hand.as_ref().is_some_and(|hand| {
                hand.next.is_some() || !hand.list.is_empty() || self.tasks.has_offers(hand.thread)
            })
        })
    }

    /// Whether who waits here may wait for too long. Relaxed: a hint.
    pub fn keeps_time(&self) -> bool {
        self.keeps_time.load(Ordering::Relaxed)
    }

    /// It does, from now on.
    pub fn keep_time(&self) {
        self.keeps_time.store(true, Ordering::Relaxed);
    }

    /// Whether an alarm is due that nobody has heard yet.
    pub fn has_due(&self, now_ns: impl Fn() -> u64) -> bool {
        let next_ns = self.tasks.next_alarm_ns();
        next_ns != u64::MAX && now_ns() >= next_ns
    }

    pub fn note_weight(&self, part: u32, heavy: bool) {
        let noted = &self.heavy[part as usize];
        // Relaxed: a hint. A look first: it rarely changes, and others read it.
        if noted.load(Ordering::Relaxed) != heavy {
            noted.store(heavy, Ordering::Relaxed);
        }
    }

    /// Gives the calling thread its place in the pool.
    pub fn join(&self, thread: usize) {
        HAND.set(Some(Hand {
            pool: self.address(),
            thread,
            next: None,
            list: VecDeque::with_capacity(self.heavy.len()),
            counts: Counts::default(),
            claimed: u32::MAX,
        }));
    }

    /// Ends that, and says what happened.
    pub fn part_with(&self) -> Counts {
        HAND.take().map_or(Counts::default(), |hand| hand.counts)
    }

    /// Puts a part in its place and among those that this thread is to run.
    pub fn enter(&self, part: u32, pooled: P) {
        self.tasks.enter(part, pooled);
        with_hand(|hand| hand.list.push_back(part));
    }

    /// The next part for this thread: the one that was woken last, then those it keeps, then those it offers, then those of
    /// others.
    pub fn next(&self, thread: usize, round: u32) -> Option<(u32, TaskLease<'_, P>)> {
        loop {
            let offered = || with_hand(|hand| hand.claim(&self.tasks)).flatten();
            let kept = || with_hand(|hand| hand.next.take().or_else(|| hand.list.pop_front())).flatten();
            let own =
                if round.is_multiple_of(ROUNDS) { offered().or_else(kept) } else { kept().or_else(offered) };
            let part = match own {
                Some(part) => part,
                None => {
                    let part = self.steal(thread)?;
                    with_hand(|hand| hand.counts.stolen += 1);
                    part
                }
            };
            if let Some(item) = self.tasks.take(part) {
                if self.last(part) != thread {
                    self.last[part as usize].store(thread as u32, Ordering::Relaxed);
                }
                with_hand(|hand| hand.counts.taken += 1);
                return Some((part, item));
            }
        }
    }

    fn steal(&self, thread: usize) -> Option<u32> {
        let threads = self.unparkers.len();
        (1..threads).find_map(|step| self.tasks.claim((thread + step) % threads))
    }

    /// Whether there is a part for whoever comes, or nothing any more.
    fn has_parts(&self) -> bool {
        self.is_over() || (0..self.unparkers.len()).any(|thread| self.tasks.has_offers(thread))
    }

    /// Threads may help with a run of a part from now on; most often there is one in each.
    pub fn add_wave(&self, wave: Arc<dyn Help>) -> bool {
        // Relaxed: who sees the number too early finds nothing there yet.
        let place = self.helped.fetch_add(1, Ordering::Relaxed) as usize;
        self.waves.get(place).is_some_and(|free| free.set(wave).is_ok())
    }

    fn open_wave(&self) -> Option<&Arc<dyn Help>> {
        let count = self.helped.load(Ordering::Relaxed) as usize;
        let waves = self.waves.iter().take(count).filter_map(OnceLock::get);
        waves.into_iter().find(|wave| wave.is_open())
    }

    /// Helps where a run goes in waves. Says whether it did.
    pub fn help(&self, thread: usize, now_ns: impl Fn() -> u64, is_lost: impl Fn(usize) -> bool) -> bool {
        let leaves = || self.has_parts() || self.has_due(&now_ns);
        let is_lost = |place: usize| is_lost(self.workers[place]);
        let mut helped = 0;
        let mut looks = 0;
        while looks < LOOKS && !leaves() {
            let wave = self.open_wave();
            let carried = wave.map_or(0, |wave| wave.help(thread, &leaves, &is_lost));
            // Without a wave there is nothing to look for; with one in which nothing goes on, neither.
            if carried == 0 && (helped == 0 || wave.is_some_and(|wave| wave.is_open())) {
                break;
            }
            helped += carried;
            looks = if carried > 0 { 0 } else { looks + 1 };
            std::hint::spin_loop();
        }
        with_hand(|hand| hand.counts.helped += helped);
        helped > 0
    }

    /// Wakes those of the others that sleep.
    pub fn call_others(&self, thread: usize) {
        let others = self.unparkers.iter().enumerate().filter(|(other, _)| *other != thread);
        others.for_each(|(_, other)| other.unpark());
    }

    /// The calling thread's place.
    pub fn place(&self) -> usize {
        with_hand(|hand| hand.thread).unwrap_or(0)
    }

    /// Lets alarms ring that are due.
    pub fn ring(&self, now_ns: impl Fn() -> u64) {
        if self.tasks.next_alarm_ns() != u64::MAX {
            self.tasks.take_due(now_ns(), |part| self.wake(part));
        }
    }

    /// This thread is about to do something long: somebody else is to look at alarms, if anyone has time.
    pub fn leave_alarms_to_others(&self, thread: usize) {
        if let Some(sleeper) = self.tasks.watch_alarms(thread) {
            self.unparkers[sleeper].unpark();
        }
    }

    /// Waits for something to do.
    pub fn rest(&self, thread: usize, idle: Idle, parker: &Parker, now_ns: impl Fn() -> u64) {
        // A wave that is open now has nothing for this thread, which comes from there: it waits for the next one.
        let is_new = Cell::new(self.open_wave().is_none());
        let has_work = || {
            let is_open = self.open_wave().is_some();
            is_new.set(is_new.get() || !is_open);
            is_open && is_new.get() || self.has_parts()
        };
        if idle.spin(u64::MAX, || has_work() || self.has_due(&now_ns), &now_ns)
            || !self.tasks.begin_park(thread)
        {
            return;
        }
        with_hand(|hand| hand.counts.parked += 1);
        match self.tasks.parked_until_ns(thread) {
            _ if self.is_over() => {}
            u64::MAX => parker.park(),
            alarm_ns => {
                let _ = idle.park_until(parker, alarm_ns, has_work, &now_ns);
            }
        }
        self.tasks.end_park(thread);
    }

    /// One part is over. The last one lets all threads go.
    pub fn close_one(&self) {
        // AcqRel: who sees 0 sees what all parts did.
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.unparkers.iter().for_each(Unparker::unpark);
        }
    }

    pub fn is_over(&self) -> bool {
        // Acquire, partner: `close_one`. Relaxed: what is left goes through the task pool.
        self.open.load(Ordering::Acquire) == 0 || self.is_given_up.load(Ordering::Relaxed)
    }

    /// One of its threads does not come back.
    pub fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
        self.unparkers.iter().for_each(Unparker::unpark);
    }
}

fn with_hand<R>(act: impl FnOnce(&mut Hand) -> R) -> Option<R> {
    HAND.with_borrow_mut(|hand| hand.as_mut().map(act))
}

/// Wakes one part of a pool.
pub(crate) struct PoolWaker<P> {
    pub pool: Arc<Pool<P>>,
    pub part: u32,
}

impl<P: Weighed + Send> Unpark for PoolWaker<P> {
    fn wake(&self) {
        self.pool.wake(self.part);
    }
}
