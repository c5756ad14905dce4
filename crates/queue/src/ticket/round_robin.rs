//! Turns in a fixed order with one value. See `README.md` beside this file for the states, the protocol and the races it closes.

#[cfg(all(loom, test))]
#[path = "round_robin_model.rs"]
mod model;

use crate::fetch::MemoryRange;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, UnsafeCell, full_fence, order, planted};
use std::fmt;
use std::ops::{Deref, DerefMut};

#[cfg(loom)]
use loom::sync::Arc;
#[cfg(not(loom))]
use std::sync::Arc;

/// Somebody is in a turn.
const BUSY: u64 = 1;
/// There are no turns any more.
const CLOSED: u64 = 2;
/// Whose turn it is, from this bit on.
const MEMBER: u32 = 2;

/// Most members: a set of them is one word.
const MOST: usize = 64;

/// What the members of a rota share.
struct RoundRobin<T> {
    /// On lines of its own: members look at it while another one works on the value.
    word: CachePadded<AtomicU64>,
    value: CachePadded<UnsafeCell<T>>,
    /// Members that want to be told of their turn.
    waiting: CachePadded<AtomicU64>,
    members: u64,
}

// SAFETY: the value is touched by whoever set BUSY only, one thread at a time; it goes from thread to thread, so it must be
// `Send`. See README.md.
unsafe impl<T: Send> Sync for RoundRobin<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for RoundRobin<T> {}

/// One member's place in a rota: the right to a turn with the shared value after the member before.
///
/// ```
/// use onbeat_queue::{MemberEntry, TurnMember};
///
/// let mut seats = TurnMember::round_robin(2, String::new());
/// let mut second = seats.pop().unwrap();
/// let mut first = seats.pop().unwrap();
/// assert!(matches!(second.enter(), MemberEntry::NotYet));
/// assert!(second.wait());                               // true: it will be told
/// let MemberEntry::Turn(mut turn) = first.enter() else { panic!("it begins") };
/// turn.push('a');
/// assert_eq!(turn.pass(), Some(1));                     // the one to tell
/// let MemberEntry::Turn(mut turn) = second.enter() else { panic!("it is its turn") };
/// turn.push('b');
/// assert_eq!(*turn, "ab");
/// ```
pub struct TurnMember<T> {
    rota: Arc<RoundRobin<T>>,
    place: u64,
    /// It has set BUSY and is to go on with this turn.
    is_kept: bool,
    /// What is written in each turn beside the word: the value, and what it points to.
    written: [MemoryRange; 2],
}

/// Looks at a rota for one of its members, from elsewhere than its seat.
pub struct TurnWatch<T> {
    rota: Arc<RoundRobin<T>>,
    place: u64,
    written: [MemoryRange; 2],
}

/// What a member finds that wants its turn.
#[derive(Debug)]
#[must_use]
pub enum MemberEntry<'s, T> {
    /// It has its turn.
    Turn(MemberGuard<'s, T>),
    /// It is another one's.
    NotYet,
    /// There are no turns any more.
    Closed,
}

/// A member's turn. Dropped without [`pass`](MemberGuard::pass), it stays with the member.
#[must_use]
pub struct MemberGuard<'s, T> {
    rota: &'s RoundRobin<T>,
    /// Of its seat, if it is the member's own turn.
    is_kept: Option<&'s mut bool>,
    /// The word as it was before, without BUSY.
    word: u64,
}

impl<T> TurnMember<T> {
    /// The seats of a new rota; the first one begins.
    ///
    /// # Panics
    /// When there are no members, or more than 64.
    pub fn round_robin(members: usize, value: T) -> Vec<TurnMember<T>> {
        Self::round_robin_with(members, value, |_| &())
    }

    /// As [`rota`](TurnMember::round_robin), for a value that is a handle to something that is written in each turn and stays where it is: that is
    /// fetched along with the value from the core that had the turn before (256 bytes of either at most).
    ///
    /// ```
    /// # use onbeat_queue::{MemberEntry, TurnMember};
    /// let mut seats = TurnMember::round_robin_with(2, Box::new([0; 8]), |list| &**list);
    /// let MemberEntry::Turn(mut turn) = seats[0].enter() else { panic!("it begins") };
    /// turn[3] = 7;
    /// assert_eq!(turn.pass(), None);
    /// ```
    ///
    /// # Panics
    /// As [`rota`](TurnMember::round_robin).
    pub fn round_robin_with<V: ?Sized>(
        members: usize,
        value: T,
        written: impl FnOnce(&T) -> &V,
    ) -> Vec<TurnMember<T>> {
        assert!((1..=MOST).contains(&members), "a rota of {members}: it has 1 to {MOST} members");
        let behind = MemoryRange::of(written(&value)).at_most(256);
        let rota = Arc::new(RoundRobin {
            word: CachePadded::new(AtomicU64::new(0)),
            value: CachePadded::new(UnsafeCell::new(value)),
            waiting: CachePadded::new(AtomicU64::new(0)),
            members: members as u64,
        });
        let written = [MemoryRange::of(&*rota.value).at_most(256), behind];
        (0..members as u64)
            .map(|place| TurnMember { rota: Arc::clone(&rota), place, is_kept: false, written })
            .collect()
    }

    /// The member's place in the order.
    pub fn place(&self) -> usize {
        self.place as usize
    }

    /// Begins its turn, if it is.
    #[inline]
    pub fn enter(&mut self) -> MemberEntry<'_, T> {
        let (rota, is_kept): (&RoundRobin<T>, _) = (&self.rota, &mut self.is_kept);
        // Relaxed: a look. The exchange below is what counts.
        let now = rota.word.load(Ordering::Relaxed);
        if std::mem::take(is_kept) {
            return MemberEntry::Turn(MemberGuard { rota, is_kept: Some(is_kept), word: now & !BUSY });
        }
        if now & CLOSED != 0 {
            return MemberEntry::Closed;
        }
        if now != self.place << MEMBER {
            return MemberEntry::NotYet;
        }
        fetch(&self.written);
        match rota.make_busy(now) {
            true => MemberEntry::Turn(MemberGuard { rota, is_kept: Some(is_kept), word: now }),
            // Somebody has taken over.
            false => MemberEntry::NotYet,
        }
    }

    /// Asks to be told of its turn, or of the end. False when that has come already: it is not told then.
    pub fn wait(&self) -> bool {
        self.rota.wait(self.place)
    }

    /// For whoever looks in this member's place whether its turn has come.
    #[must_use]
    pub fn watch(&self) -> TurnWatch<T> {
        TurnWatch { rota: Arc::clone(&self.rota), place: self.place, written: self.written }
    }

    /// The value, whoever's turn it is, also when there are none any more. `None` while somebody is in a turn.
    pub fn take_over(&mut self) -> Option<MemberGuard<'_, T>> {
        let rota: &RoundRobin<T> = &self.rota;
        let now = rota.word.load(Ordering::Relaxed) & !BUSY;
        // What it has kept it has.
        let is_there = std::mem::take(&mut self.is_kept) || rota.make_busy(now);
        is_there.then_some(MemberGuard { rota, is_kept: None, word: now })
    }

    /// Ends what [`MemberGuard::keep`] began: the turn is the member's still, and nobody is in it.
    pub fn release(&mut self) {
        if self.is_kept {
            drop(self.take_over());
        }
    }
}

impl<T> TurnWatch<T> {
    /// Whether it is the member's turn, or there are none any more. A hint, and cheap: a load while it is not, and then its lines
    /// are asked for.
    #[inline]
    pub fn is_up(&self) -> bool {
        // Relaxed: `enter` does the synchronising.
        let is_up = is_up(self.rota.word.load(Ordering::Relaxed), self.place);
        if is_up {
            MemoryRange::of(&*self.rota.word).fetch_to_write();
            fetch(&self.written);
        }
        is_up
    }

    /// As [`TurnMember::wait`].
    pub fn wait(&self) -> bool {
        self.rota.wait(self.place)
    }
}

/// The turn has come: what the one before has written comes over while the word does.
#[inline(always)]
fn fetch(written: &[MemoryRange; 2]) {
    written.iter().for_each(|place| place.fetch_to_write());
}

fn is_up(word: u64, place: u64) -> bool {
    word & CLOSED != 0 || word >> MEMBER == place
}

impl<T> RoundRobin<T> {
    fn wait(&self, place: u64) -> bool {
        let bit = 1 << place;
        // Relaxed: the fence orders it.
        self.waiting.fetch_or(bit, Ordering::Relaxed);
        full_fence("no fence in wait");
        let now =
            if planted("no second look") { u64::MAX << MEMBER } else { self.word.load(Ordering::Relaxed) };
        let is_up = is_up(now, place);
        if is_up {
            self.waiting.fetch_and(!bit, Ordering::Relaxed);
        }
        !is_up
    }

    #[inline]
    fn make_busy(&self, now: u64) -> bool {
        // Acquire, partner: the stores of `MemberGuard`.
        let acquire = order("relaxed enter", Ordering::Acquire);
        if planted("enter by load and store") {
            if self.word.load(acquire) != now {
                return false;
            }
            self.word.store(now | BUSY, Ordering::Relaxed);
            return true;
        }
        self.word.compare_exchange(now, now | BUSY, acquire, Ordering::Relaxed).is_ok()
    }
}

impl<T> MemberGuard<'_, T> {
    fn leave(self, word: u64) {
        // Release, partner: `make_busy`. A store: nobody else changes the word while BUSY is set.
        self.rota.word.store(word, order("relaxed pass", Ordering::Release));
        std::mem::forget(self);
    }

    /// The member stays in its turn until it enters next, or its seat is [released](TurnMember::release) or dropped: it saves an exchange, and
    /// nobody can take the value over meanwhile.
    ///
    /// A value that was [taken over](TurnMember::take_over) is left instead.
    pub fn keep(mut self) {
        if let Some(is_kept) = self.is_kept.take() {
            *is_kept = true;
            std::mem::forget(self);
        }
    }

    /// Hands the turn to the next member. Gives its place when it has asked to be told.
    #[inline]
    pub fn pass(self) -> Option<usize> {
        let rota = self.rota;
        let next = (self.word >> MEMBER) + 1;
        let next = if next == rota.members { 0 } else { next };
        let closed = self.word & CLOSED;
        self.leave(next << MEMBER | closed);
        full_fence("no fence in pass");
        // Relaxed: the fence orders it.
        let bit = 1 << next;
        let waits = rota.waiting.load(Ordering::Relaxed) & bit != 0
            && rota.waiting.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        waits.then_some(next as usize)
    }

    /// There are no more turns. Gives the places of those that have asked to be told.
    pub fn close(self) -> impl Iterator<Item = usize> + use<T> {
        let rota = self.rota;
        let word = self.word | CLOSED;
        self.leave(word);
        full_fence("no fence in pass");
        let told = rota.waiting.swap(0, Ordering::Relaxed);
        (0..MOST).filter(move |place| told & 1 << place != 0)
    }
}

impl<T> Drop for TurnMember<T> {
    fn drop(&mut self) {
        self.release();
    }
}

impl<T> Drop for MemberGuard<'_, T> {
    fn drop(&mut self) {
        // As in `leave`.
        self.rota.word.store(self.word, Ordering::Release);
    }
}

impl<T> Deref for MemberGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.rota.value.with(|value| {
            // SAFETY: this turn has set BUSY, so no other one is there, and the value lives as long as the rota.
            unsafe { &*value }
        })
    }
}

impl<T> DerefMut for MemberGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.rota.value.with_mut(|value| {
            // SAFETY: as above, and `self` is borrowed exclusively.
            unsafe { &mut *value }
        })
    }
}

impl<T> fmt::Debug for TurnMember<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TurnMember({} of {})", self.place, self.rota.members)
    }
}

impl<T> fmt::Debug for TurnWatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TurnWatch({} of {})", self.place, self.rota.members)
    }
}

impl<T> fmt::Debug for MemberGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Turn({})", self.word >> MEMBER)
    }
}
