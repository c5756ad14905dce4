//! Items that wander between the threads of a pool: each is in one hand at most. See `README.md` beside this file for the
//! states, the protocol and the races it closes.

mod alarm;
#[cfg(all(loom, test))]
mod model;

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{CachePadded, UnsafeCell, full_fence, order, planted};
use alarm::Alarms;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Nobody has the item and nothing is to be done for it.
const RESTING: u32 = 0;
/// Something is to be done. Alone: the item is queued, and whoever takes it out of the queue may have it.
const WOKEN: u32 = 1;
/// A thread has it.
const HELD: u32 = 2;
/// There is no item here (yet), or it is done for good.
const OVER: u32 = 4;

/// Most items, and most threads: sets of either are one word.
const MOST: usize = 64;

/// Up to 64 items that up to 64 threads take turns to run, one thread at a time for each item.
///
/// An item rests until somebody [wakes](TaskPool::wake) it. Who wakes it puts it in a queue: one of its own, or the
/// [offers](TaskPool::offer) of a thread, from where any thread of the pool may [claim](TaskPool::claim) it. Who got the number from a
/// queue [takes](TaskPool::take) the item, runs it, and lets it [rest](TaskLease::rest) again. A thread without work
/// [lies down](TaskPool::begin_park); the next offer says whom to wake. Alarms are seen by whoever looks next.
///
/// ```
/// use onbeat_queue::TaskPool;
///
/// let pool = TaskPool::new(2, 1);
/// pool.enter(0, String::from("a"));                // an item is ready when it enters
/// let mut item = pool.take(0).unwrap();
/// assert!(pool.take(0).is_none());                 // one hand at a time
/// item.push('b');
/// assert!(!pool.wake(0));                          // held: it is its holder who will see to it
/// let mut item = item.rest().unwrap_err();         // not yet: it was woken meanwhile
/// item.push('c');
/// assert!(item.rest().is_ok());
/// assert!(pool.wake(0));                           // true: ours to queue
/// assert_eq!(pool.offer(1, 0), None);              // nobody sleeps
/// let number = pool.claim(1).unwrap();
/// assert_eq!(*pool.take(number).unwrap(), "abc");
/// ```
pub struct TaskPool<T> {
    items: Box<[TaskSlot<T>]>,
    /// By thread: items that anyone may claim.
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

// SAFETY: a value is touched by the thread only that turned its state to HELD, until it gives that up again; both are
// read-modify-writes of one word (Acquire and Release), so the value goes from hand to hand as if it were sent.
unsafe impl<T: Send> Sync for TaskPool<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for TaskPool<T> {}

impl<T> TaskPool<T> {
    /// A pool of `threads` threads for `items` items, none of which has entered yet.
    ///
    /// # Panics
    /// When either is 0 or above 64.
    #[must_use]
    pub fn new(threads: usize, items: usize) -> Self {
        assert!((1..=MOST).contains(&threads), "a pool has 1 to 64 threads, not {threads}");
        assert!((1..=MOST).contains(&items), "a pool has 1 to 64 items, not {items}");
        let item = |_| TaskSlot { state: AtomicU32::new(OVER), value: UnsafeCell::new(None) };
        TaskPool {
            items: (0..items).map(item).collect(),
            offers: (0..threads).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
            asleep: CachePadded::new(AtomicU64::new(0)),
            alarms: Alarms::new(threads, items),
        }
    }

    /// Puts an item in its place. It is woken, and the caller's to queue.
    ///
    /// # Panics
    /// When there is one, or no such place.
    pub fn enter(&self, item: u32, value: T) {
        let TaskSlot { state, value: place } = &self.items[item as usize];
        assert!(close(state), "item {item} has entered already");
        place.with_mut(|place| {
            // SAFETY: HELD is ours, so nobody else touches the place.
            unsafe { *place = Some(value) }
        });
        // Release, partner: the Acquire of `take`. A swap, not a store: it also takes in what wakers left before they woke it.
        state.swap(WOKEN, Ordering::AcqRel);
    }

    /// Takes out an item that is over; `None` for all others.
    pub fn leave(&self, item: u32) -> Option<T> {
        let TaskSlot { state, value } = &self.items[item as usize];
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

    /// Says that something is to be done for an item. True: it was resting, and the caller is to queue it. False: it is
    /// queued already, or whoever holds it will see to it, or it is over. In any case all that the caller wrote before is visible
    /// to the coming run.
    #[inline]
    pub fn wake(&self, item: u32) -> bool {
        // AcqRel, partners: `take` and `TaskLease::rest`, which acquire; the Acquire here makes the chain of wakers whole.
        self.items[item as usize].state.fetch_or(WOKEN, order("relaxed wake", Ordering::AcqRel)) == RESTING
    }

    /// Takes an item that was woken and that nobody holds. Each wake-up that answered `true` is good for one such call.
    #[inline]
    pub fn take(&self, item: u32) -> Option<TaskLease<'_, T>> {
        let TaskSlot { state, value } = &self.items[item as usize];
        // Acquire, partners: the Release of `wake` and of whoever had the item before. Relaxed on failure: nothing is read.
        let acquire = order("relaxed take", Ordering::Acquire);
        state.compare_exchange(WOKEN, HELD, acquire, Ordering::Relaxed).ok()?;
        Some(TaskLease { pool: self, item, value })
    }

    /// Offers an item that was woken to all threads, in the set of `thread`. Says which sleeping thread the caller is to wake
    /// now; `thread` itself if it sleeps.
    #[inline]
    #[must_use = "a thread that is to be woken is counted as awake already"]
    pub fn offer(&self, thread: usize, item: u32) -> Option<usize> {
        // Release, partner: the Acquire in `claim`. (The item itself is handed over by its state.)
        self.offers[thread].fetch_or(1 << item, Ordering::Release);
        // Partner: the fence in `begin_park`. Either the sleeper sees the offer, or we see the sleeper.
        full_fence("no fence after the offer");
        self.pick_sleeper(thread)
    }

    /// Takes an item out of the offers of `thread`, the highest number first.
    #[inline]
    pub fn claim(&self, thread: usize) -> Option<u32> {
        self.claim_below(thread, u32::MAX)
    }

    /// The same, but first of all the highest number below `below`. Who claims below what it has claimed last goes round, so that
    /// nobody who is offered again and again keeps another one from its turn.
    #[inline]
    pub fn claim_below(&self, thread: usize, below: u32) -> Option<u32> {
        let offers = &self.offers[thread];
        loop {
            // Relaxed: a look, so that the line stays shared while there is nothing.
            let seen = offers.load(Ordering::Relaxed);
            let lower = seen & 1u64.checked_shl(below).map_or(u64::MAX, |bit| bit - 1);
            let item = lower.checked_ilog2().or(seen.checked_ilog2())?;
            if planted("claim by load and store") {
                offers.store(seen & !(1 << item), Ordering::Relaxed);
                return Some(item);
            }
            // Acquire, partner: the Release in `offer`.
            if offers.fetch_and(!(1 << item), Ordering::Acquire) & 1 << item != 0 {
                return Some(item);
            }
        }
    }

    /// Whether `thread` offers something. A hint: one load.
    #[inline]
    pub fn has_offers(&self, thread: usize) -> bool {
        // Relaxed: nothing is read through it.
        self.offers[thread].load(Ordering::Relaxed) != 0
    }

    fn nothing_offered(&self) -> bool {
        (0..self.offers.len()).all(|thread| !self.has_offers(thread))
    }

    /// Announces that `thread` goes to sleep. False: there is an offer, so it must not. True: it sleeps, until somebody gets its
    /// number from [`offer`](TaskPool::offer) and wakes it, or until the time that
    /// [`parked_until_ns`](TaskPool::parked_until_ns) says; then it [gets up](TaskPool::end_park).
    #[must_use]
    pub fn begin_park(&self, thread: usize) -> bool {
        self.alarms.begin_sleep(thread);
        // Release, partner: the fence in `pick_sleeper`: who sees the bit sees that no alarm is known yet.
        self.asleep.fetch_or(1 << thread, Ordering::Release);
        // Partners: the fences in `offer` and in `alarms_are_watched`.
        full_fence("no fence before the last look");
        if !self.nothing_offered() {
            self.end_park(thread);
            return false;
        }
        self.alarms.sleep_until_next(thread);
        true
    }

    /// `thread` is awake; it may have been told so by somebody, or may have woken by itself.
    pub fn end_park(&self, thread: usize) {
        // Relaxed: the bit publishes nothing when it goes away.
        self.asleep.fetch_and(!(1 << thread), Ordering::Relaxed);
    }

    /// Picks a thread that sleeps, `wanted` if that does, and counts it as awake: the caller wakes it.
    #[must_use = "a thread that is to be woken is counted as awake already"]
    #[inline]
    fn pick_sleeper(&self, wanted: usize) -> Option<usize> {
        loop {
            // Relaxed: the caller's fence has made it late enough.
            let asleep = self.asleep.load(Ordering::Relaxed);
            if asleep == 0 {
                return None;
            }
            let thread = if asleep & 1 << wanted != 0 { wanted as u32 } else { asleep.trailing_zeros() };
            // Relaxed: only who cleared the bit wakes the thread, and to wake somebody synchronises by itself.
            if self.asleep.fetch_and(!(1 << thread), Ordering::Relaxed) & 1 << thread != 0 {
                return Some(thread as usize);
            }
        }
    }

    /// Sets or replaces the alarm of an item; `u64::MAX` for none.
    pub fn set_alarm(&self, item: u32, time_ns: u64) {
        self.alarms.set(item, time_ns);
    }

    /// The next alarm, or a time before that. `u64::MAX` when there is none.
    #[inline]
    pub fn next_alarm_ns(&self) -> u64 {
        self.alarms.next_ns()
    }

    /// Hands out the items whose alarm is due, each once; the caller wakes them.
    pub fn take_due(&self, now_ns: u64, due: impl FnMut(u32)) {
        self.alarms.take_due(now_ns, due);
    }

    /// For a thread that sleeps: when it must get up by itself.
    pub fn parked_until_ns(&self, thread: usize) -> u64 {
        self.alarms.parked_until_ns(thread)
    }

    /// For a thread that will not look at alarms for a while: makes sure that another one does, if any sleeps. Says which
    /// thread the caller is to wake for that.
    #[must_use = "a thread that is to be woken is counted as awake already"]
    pub fn watch_alarms(&self, thread: usize) -> Option<usize> {
        let next_ns = self.alarms.next_ns();
        if next_ns == u64::MAX {
            return None;
        }
        // Partner: the fence in `begin_park`: either the sleeper sees the alarm that was set before, or we see the sleeper.
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

/// Takes hold of a place without an item, or with one that is over; false when it is in use.
fn close(state: &AtomicU32) -> bool {
    // Acquire, partner: the Release of whoever had the place before. Relaxed on failure and for the look: nothing is read.
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
        write!(f, "TaskPool({} threads, {} items)", self.offers.len(), self.items.len())
    }
}

/// An item in the hand of a thread. Dropped without a word, the item is over: its thread panicked.
pub struct TaskLease<'c, T> {
    pool: &'c TaskPool<T>,
    item: u32,
    value: &'c UnsafeCell<Option<T>>,
}

impl<'c, T> TaskLease<'c, T> {
    fn state(&self) -> &'c AtomicU32 {
        &self.pool.items[self.item as usize].state
    }

    /// Lets the item rest until it is woken.
    ///
    /// # Errors
    /// The item, when it was woken meanwhile: see what there is to do.
    #[inline]
    pub fn rest(self) -> Result<(), Self> {
        let state = self.state();
        if planted("rest by a store") {
            state.store(RESTING, Ordering::Release);
            std::mem::forget(self);
            return Ok(());
        }
        // Release, partner: the Acquire of the next `take`. Relaxed on failure: the swap below does the synchronising.
        let release = order("relaxed rest", Ordering::Release);
        if state.compare_exchange(HELD, RESTING, release, Ordering::Relaxed).is_ok() {
            std::mem::forget(self);
            return Ok(());
        }
        // AcqRel, partner: `wake`: what the waker wrote is visible to what this thread does next.
        state.swap(HELD, Ordering::AcqRel);
        Err(self)
    }

    /// Puts the item back as one that was woken: the caller queues it.
    #[inline]
    pub fn put_back(self) {
        // AcqRel: as in `rest`, and what wakers left goes on to the next holder.
        self.state().swap(WOKEN, Ordering::AcqRel);
        std::mem::forget(self);
    }

    /// The item is done for good: wakes are ignored from now on, and [`TaskPool::leave`] takes it out.
    pub fn finish(self) {
        drop(self);
    }
}

impl<T> Drop for TaskLease<'_, T> {
    fn drop(&mut self) {
        // Release, partner: the Acquire in `leave`.
        self.state().swap(OVER, Ordering::AcqRel);
    }
}

impl<T> Deref for TaskLease<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value.with(|value| {
            // SAFETY: HELD is ours while `self` lives, and `&mut self` is needed to change it.
            unsafe { (*value).as_ref() }.expect("an item that is held has entered")
        })
    }
}

impl<T> DerefMut for TaskLease<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.value.with_mut(|value| {
            // SAFETY: HELD is ours while `self` lives, and `&mut self` is exclusive.
            unsafe { (*value).as_mut() }.expect("an item that is held has entered")
        })
    }
}
