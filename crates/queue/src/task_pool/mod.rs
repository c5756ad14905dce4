//! Tasks that move between the threads of a pool, each held by one thread at a time. See `README.md` beside
//! this file for the states, the protocol and the races it closes.

mod alarm;
#[cfg(all(loom, test))]
mod model;

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{CachePadded, UnsafeCell, full_fence, order, planted};
use alarm::Alarms;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// No thread holds the task, and it has no work.
const RESTING: u32 = 0;
/// The task has work. Alone: the task is queued, and the thread that takes it out of the queue may hold it.
const WOKEN: u32 = 1;
/// A thread holds the task.
const HELD: u32 = 2;
/// The place has no task yet, or its task has finished.
const OVER: u32 = 4;

/// Most tasks, and most threads: sets of either are one word.
const MOST: usize = 64;

/// Up to 64 tasks that up to 64 threads run, one thread at a time for each task.
///
/// A task rests until a thread [wakes](TaskPool::wake) it. The waker queues it: in a queue of its own, or in
/// the [offers](TaskPool::offer) of a thread, from which any thread of the pool can [claim](TaskPool::claim)
/// it. The thread that got the number from a queue [takes](TaskPool::take) the task, runs it, and lets it
/// [rest](TaskLease::rest) again. A thread without work [parks](TaskPool::begin_park); the next offer says
/// which thread to wake. Any thread that checks the alarms sees those that are due.
///
/// ```
/// use onbeat_queue::TaskPool;
///
/// let pool = TaskPool::new(2, 1);
/// pool.enter(0, String::from("a"));                // a task is ready when it enters
/// let mut task = pool.take(0).unwrap();
/// assert!(pool.take(0).is_none());                 // one thread at a time
/// task.push('b');
/// assert!(!pool.wake(0));                          // held: its holder will see the work
/// let mut task = task.rest().unwrap_err();         // it was woken meanwhile
/// task.push('c');
/// assert!(task.rest().is_ok());
/// assert!(pool.wake(0));                           // true: the caller must queue it
/// assert_eq!(pool.offer(1, 0), None);              // nobody sleeps
/// let number = pool.claim(1).unwrap();
/// assert_eq!(*pool.take(number).unwrap(), "abc");
/// ```
pub struct TaskPool<T> {
    tasks: Box<[TaskSlot<T>]>,
    /// By thread: tasks that any thread can claim.
    offers: Box<[CachePadded<AtomicU64>]>,
    /// Threads that sleep.
    asleep: CachePadded<AtomicU64>,
    alarms: Alarms,
}

#[repr(align(64))]
struct TaskSlot<T> {
    state: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: only the thread that turned a task's state to HELD touches its value, until it gives that up. Both
// are read-modify-writes of one word (Acquire and Release), so the value moves between threads as if it were
// sent.
unsafe impl<T: Send> Sync for TaskPool<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for TaskPool<T> {}

impl<T> TaskPool<T> {
    /// Makes a pool of `threads` threads for `tasks` tasks, none of which has entered yet.
    ///
    /// # Panics
    /// If either is 0 or above 64.
    #[must_use]
    pub fn new(threads: usize, tasks: usize) -> Self {
        assert!((1..=MOST).contains(&threads), "a pool has 1 to 64 threads, not {threads}");
        assert!((1..=MOST).contains(&tasks), "a pool has 1 to 64 tasks, not {tasks}");
        let task = |_| TaskSlot { state: AtomicU32::new(OVER), value: UnsafeCell::new(None) };
        TaskPool {
            tasks: (0..tasks).map(task).collect(),
            offers: (0..threads).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
            asleep: CachePadded::new(AtomicU64::new(0)),
            alarms: Alarms::new(threads, tasks),
        }
    }

    /// Puts a task in its place. It counts as woken, and the caller queues it.
    ///
    /// # Panics
    /// If the place has a task, or does not exist.
    pub fn enter(&self, task: u32, value: T) {
        let TaskSlot { state, value: place } = &self.tasks[task as usize];
        assert!(close(state), "task {task} has entered already");
        place.with_mut(|place| {
            // SAFETY: HELD is ours, so no other thread touches the place.
            unsafe { *place = Some(value) }
        });
        // Release, partner: the Acquire of `take`. A swap, not a store: it also takes in what wakers wrote
        // before.
        state.swap(WOKEN, Ordering::AcqRel);
    }

    /// Takes a finished task out; `None` for all others.
    pub fn leave(&self, task: u32) -> Option<T> {
        let TaskSlot { state, value } = &self.tasks[task as usize];
        if !close(state) {
            return None;
        }
        let value = value.with_mut(|value| {
            // SAFETY: HELD is ours.
            unsafe { (*value).take() }
        });
        state.swap(OVER, Ordering::AcqRel);
        value
    }

    /// Reports work for a task. True: it was resting, and the caller must queue it. False: it is queued
    /// already, or its holder will see the work, or it has finished. In any case the coming run sees all
    /// earlier writes of the caller.
    #[inline]
    pub fn wake(&self, task: u32) -> bool {
        // AcqRel, partners: `take` and `TaskLease::rest`, which acquire. The Acquire here completes the chain
        // of wakers.
        self.tasks[task as usize].state.fetch_or(WOKEN, order("relaxed wake", Ordering::AcqRel)) == RESTING
    }

    /// Takes a task that was woken and that no thread holds. Each `wake` that returned `true` allows one such
    /// call.
    #[inline]
    pub fn take(&self, task: u32) -> Option<TaskLease<'_, T>> {
        let TaskSlot { state, value } = &self.tasks[task as usize];
        // Acquire, partners: the Release of `wake` and of the last holder. Relaxed on failure: nothing is
        // read.
        let acquire = order("relaxed take", Ordering::Acquire);
        state.compare_exchange(WOKEN, HELD, acquire, Ordering::Relaxed).ok()?;
        Some(TaskLease { pool: self, task, value })
    }

    /// Offers a woken task to all threads, in the set of `thread`. Returns the sleeping thread that the
    /// caller must wake now: `thread` itself if it sleeps.
    #[inline]
    #[must_use = "a thread that must be woken is counted as awake already"]
    pub fn offer(&self, thread: usize, task: u32) -> Option<usize> {
        // Release, partner: the Acquire in `claim_below`. (The state of the task hands over its value.)
        self.offers[thread].fetch_or(1 << task, Ordering::Release);
        // Partner: the fence in `begin_park`. Either the sleeper sees the offer, or we see the sleeper.
        full_fence("no fence after the offer");
        self.pick_sleeper(thread)
    }

    /// Claims an offer of `thread`, the highest number first.
    #[inline]
    pub fn claim(&self, thread: usize) -> Option<u32> {
        self.claim_below(thread, u32::MAX)
    }

    /// As [`claim`](TaskPool::claim), but prefers the highest number below `below`. Claiming below the number
    /// claimed last goes round the set, so that tasks offered again and again do not keep others waiting.
    #[inline]
    pub fn claim_below(&self, thread: usize, below: u32) -> Option<u32> {
        let offers = &self.offers[thread];
        loop {
            // Relaxed: a check, so that the line stays shared while there is no offer.
            let seen = offers.load(Ordering::Relaxed);
            let lower = seen & 1u64.checked_shl(below).map_or(u64::MAX, |bit| bit - 1);
            let task = lower.checked_ilog2().or(seen.checked_ilog2())?;
            if planted("claim by load and store") {
                offers.store(seen & !(1 << task), Ordering::Relaxed);
                return Some(task);
            }
            // Acquire, partner: the Release in `offer`.
            if offers.fetch_and(!(1 << task), Ordering::Acquire) & 1 << task != 0 {
                return Some(task);
            }
        }
    }

    /// Whether `thread` has offers. A hint: one load.
    #[inline]
    pub fn has_offers(&self, thread: usize) -> bool {
        // Relaxed: nothing is read through it.
        self.offers[thread].load(Ordering::Relaxed) != 0
    }

    fn nothing_offered(&self) -> bool {
        (0..self.offers.len()).all(|thread| !self.has_offers(thread))
    }

    /// Announces that `thread` parks. False: there is an offer, so it must not. True: it sleeps until a
    /// thread gets its number from [`offer`](TaskPool::offer) and wakes it, or until
    /// [`parked_until_ns`](TaskPool::parked_until_ns). Then it calls [`end_park`](TaskPool::end_park).
    #[must_use]
    pub fn begin_park(&self, thread: usize) -> bool {
        self.alarms.begin_sleep(thread);
        // Release, partner: the Acquire in `watch_alarms`: a thread that sees the bit sees that the old time
        // was cleared.
        self.asleep.fetch_or(1 << thread, Ordering::Release);
        // Partners: the fences in `offer` and in `watch_alarms`.
        full_fence("no fence before the last check");
        if !self.nothing_offered() {
            self.end_park(thread);
            return false;
        }
        self.alarms.sleep_until_next(thread);
        true
    }

    /// Marks `thread` as awake, whether it was woken or woke without a call.
    pub fn end_park(&self, thread: usize) {
        // Relaxed: the bit publishes nothing when it goes away.
        self.asleep.fetch_and(!(1 << thread), Ordering::Relaxed);
    }

    /// Picks a sleeping thread, `thread` if that sleeps, for a reason other than an offer or an alarm. The
    /// caller wakes it. A thread that parks meanwhile either is picked, or sees after
    /// [`begin_park`](TaskPool::begin_park) what the caller wrote before.
    pub fn take_sleeper(&self, thread: usize) -> Option<usize> {
        // Partner: the fence in `begin_park`.
        full_fence("no fence before the sleepers are read");
        self.pick_sleeper(thread)
    }

    /// Picks a sleeping thread, `wanted` if that sleeps, and counts it as awake: the caller wakes it.
    #[must_use = "a thread that must be woken is counted as awake already"]
    #[inline]
    fn pick_sleeper(&self, wanted: usize) -> Option<usize> {
        loop {
            // Relaxed: the caller's fence has made it late enough.
            let asleep = self.asleep.load(Ordering::Relaxed);
            if asleep == 0 {
                return None;
            }
            let thread = if asleep & 1 << wanted != 0 { wanted as u32 } else { asleep.trailing_zeros() };
            // Relaxed: only the thread that cleared the bit wakes the sleeper, and the wake-up itself
            // synchronises.
            if self.asleep.fetch_and(!(1 << thread), Ordering::Relaxed) & 1 << thread != 0 {
                return Some(thread as usize);
            }
        }
    }

    /// Sets or replaces the alarm of a task; `u64::MAX` for none.
    pub fn set_alarm(&self, task: u32, time_ns: u64) {
        self.alarms.set(task, time_ns);
    }

    /// Returns the time of the next alarm, or an earlier time. `u64::MAX` if there is none.
    #[inline]
    pub fn next_alarm_ns(&self) -> u64 {
        self.alarms.next_ns()
    }

    /// Calls `due` with each task whose alarm is due, once; the caller wakes them.
    pub fn take_due(&self, now_ns: u64, due: impl FnMut(u32)) {
        self.alarms.take_due(now_ns, due);
    }

    /// Returns the time at which a sleeping thread must wake without a call.
    pub fn parked_until_ns(&self, thread: usize) -> u64 {
        self.alarms.parked_until_ns(thread)
    }

    /// Called by a thread that will not check alarms for a while: makes sure that a sleeping thread does, if
    /// any sleeps. Returns the thread that the caller must wake for that.
    #[must_use = "a thread that must be woken is counted as awake already"]
    pub fn watch_alarms(&self, thread: usize) -> Option<usize> {
        let next_ns = self.alarms.next_ns();
        if next_ns == u64::MAX {
            return None;
        }
        // Partner: the fence in `begin_park`. Either the sleeper sees the alarm that was set before, or we
        // see the sleeper.
        full_fence("no fence after the alarm");
        // Acquire, partner: the Release in `begin_park`.
        let mut asleep = self.asleep.load(Ordering::Acquire);
        while asleep != 0 {
            let sleeper = asleep.trailing_zeros() as usize;
            if self.alarms.parked_until_ns(sleeper) <= next_ns {
                return None;
            }
            asleep &= asleep - 1;
        }
        self.pick_sleeper(thread)
    }
}

/// Holds a place without a task, or with a finished one; false if it is in use.
fn close(state: &AtomicU32) -> bool {
    // Acquire, partner: the Release of the last holder. Relaxed on failure and for the check: nothing is
    // read.
    let mut now = state.load(Ordering::Relaxed);
    while now & (OVER | HELD) == OVER {
        match state.compare_exchange(now, now | HELD, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(changed) => now = changed,
        }
    }
    false
}

impl<T> fmt::Debug for TaskPool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskPool({} threads, {} tasks)", self.offers.len(), self.tasks.len())
    }
}

/// A task held by a thread. Dropping it, as a panic does, finishes the task.
pub struct TaskLease<'c, T> {
    pool: &'c TaskPool<T>,
    task: u32,
    value: &'c UnsafeCell<Option<T>>,
}

impl<'c, T> TaskLease<'c, T> {
    fn state(&self) -> &'c AtomicU32 {
        &self.pool.tasks[self.task as usize].state
    }

    /// Lets the task rest until it is woken.
    ///
    /// # Errors
    /// The task, if it was woken meanwhile: the holder checks for its work.
    #[inline]
    pub fn rest(self) -> Result<(), Self> {
        let state = self.state();
        if planted("rest by a store") {
            state.store(RESTING, Ordering::Release);
            std::mem::forget(self);
            return Ok(());
        }
        // Release, partner: the Acquire of the next `take`. Relaxed on failure: the swap below synchronises.
        let release = order("relaxed rest", Ordering::Release);
        if state.compare_exchange(HELD, RESTING, release, Ordering::Relaxed).is_ok() {
            std::mem::forget(self);
            return Ok(());
        }
        // AcqRel, partner: `wake`: this thread sees what the waker wrote.
        state.swap(HELD, Ordering::AcqRel);
        Err(self)
    }

    /// Puts the task back as woken: the caller queues it.
    #[inline]
    pub fn put_back(self) {
        // AcqRel: as in `rest`, and passes on to the next holder what wakers wrote.
        self.state().swap(WOKEN, Ordering::AcqRel);
        std::mem::forget(self);
    }

    /// Finishes the task: wakes are ignored from now on, and [`TaskPool::leave`] takes it out.
    pub fn finish(self) {
        drop(self);
    }
}

impl<T> Drop for TaskLease<'_, T> {
    fn drop(&mut self) {
        // Release, partner: the Acquire in `close`, for `leave`.
        self.state().swap(OVER, Ordering::AcqRel);
    }
}

impl<T> Deref for TaskLease<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value.with(|value| {
            // SAFETY: HELD is ours while `self` lives, and changing the value takes `&mut self`.
            unsafe { (*value).as_ref() }.expect("a task that is held has entered")
        })
    }
}

impl<T> DerefMut for TaskLease<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.value.with_mut(|value| {
            // SAFETY: HELD is ours while `self` lives, and `&mut self` is exclusive.
            unsafe { (*value).as_mut() }.expect("a task that is held has entered")
        })
    }
}
