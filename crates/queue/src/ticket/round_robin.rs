//! Members that take turns with one value in a fixed order.

use super::{BUSY, CLOSED, TICKET, TicketGuard, TicketLock};
use crate::fetch::MemoryRange;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, full_fence, planted};
use std::fmt;
use std::ops::{Deref, DerefMut};

#[cfg(loom)]
use loom::sync::Arc;
#[cfg(not(loom))]
use std::sync::Arc;

/// Most members: a set of them is one word.
const MOST: usize = 64;

/// State that the members share. The ticket whose turn it is is a member's place.
struct RoundRobin<T> {
    lock: TicketLock<T>,
    /// Members that wait to be notified of their turn.
    waiting: CachePadded<AtomicU64>,
    members: u64,
}

/// One member of a round robin: takes its turn with the shared value after the member before.
///
/// ```
/// use onbeat_queue::{MemberEntry, TurnMember};
///
/// let mut members = TurnMember::round_robin(2, String::new());
/// let mut second = members.pop().unwrap();
/// let mut first = members.pop().unwrap();
/// assert!(matches!(second.enter(), MemberEntry::NotYet));
/// assert!(second.wait());                               // true: it will be notified
/// let MemberEntry::Turn(mut turn) = first.enter() else { panic!("it begins") };
/// turn.push('a');
/// assert_eq!(turn.pass(), Some(1));                     // the member to notify
/// let MemberEntry::Turn(mut turn) = second.enter() else { panic!("it is its turn") };
/// turn.push('b');
/// assert_eq!(*turn, "ab");
/// ```
pub struct TurnMember<T> {
    watch: TurnWatch<T>,
    /// Whether the member has set BUSY and goes on with this turn.
    is_kept: bool,
}

/// Polls the turns for a member, without access to the value.
pub struct TurnWatch<T> {
    shared: Arc<RoundRobin<T>>,
    place: u64,
    /// Memory that each turn writes beside the word: the value, and what it points to.
    written: [MemoryRange; 2],
}

/// Result of [`TurnMember::enter`].
#[derive(Debug)]
#[must_use]
pub enum MemberEntry<'s, T> {
    /// The member has its turn.
    Turn(MemberGuard<'s, T>),
    /// It is another member's turn.
    NotYet,
    /// No turns are left.
    Closed,
}

/// A member's turn. Dropped without [`pass`](MemberGuard::pass), the turn stays with the member.
#[must_use]
pub struct MemberGuard<'s, T> {
    guard: TicketGuard<'s, T>,
    shared: &'s RoundRobin<T>,
    /// The flag of the member, if it is the member's own turn.
    is_kept: Option<&'s mut bool>,
}

impl<T> TurnMember<T> {
    /// Makes the members of a new round robin. The first one begins.
    ///
    /// # Panics
    /// With no members, or more than 64.
    pub fn round_robin(members: usize, value: T) -> Vec<TurnMember<T>> {
        Self::round_robin_with(members, value, |_| &())
    }

    /// As [`round_robin`](TurnMember::round_robin), for a value that is a handle to memory which each turn
    /// writes and which does not move. That memory is fetched along with the value from the core that had the
    /// turn before (256 bytes of either at most).
    ///
    /// ```
    /// # use onbeat_queue::{MemberEntry, TurnMember};
    /// let mut members = TurnMember::round_robin_with(2, Box::new([0; 8]), |list| &**list);
    /// let MemberEntry::Turn(mut turn) = members[0].enter() else { panic!("it begins") };
    /// turn[3] = 7;
    /// assert_eq!(turn.pass(), None);
    /// ```
    ///
    /// # Panics
    /// As [`round_robin`](TurnMember::round_robin).
    pub fn round_robin_with<V: ?Sized>(
        members: usize,
        value: T,
        written: impl FnOnce(&T) -> &V,
    ) -> Vec<TurnMember<T>> {
        assert!((1..=MOST).contains(&members), "a round robin of {members}: it has 1 to {MOST} members");
        let behind = MemoryRange::of(written(&value)).at_most(256);
        let shared = Arc::new(RoundRobin {
            lock: TicketLock::new(value),
            waiting: CachePadded::new(AtomicU64::new(0)),
            members: members as u64,
        });
        let written = [MemoryRange::of(&*shared.lock.value).at_most(256), behind];
        (0..members as u64)
            .map(|place| TurnWatch { shared: Arc::clone(&shared), place, written })
            .map(|watch| TurnMember { watch, is_kept: false })
            .collect()
    }

    /// Returns the member's place in the order.
    pub fn place(&self) -> usize {
        self.watch.place as usize
    }

    /// Begins the member's turn, if it is its turn.
    #[inline]
    pub fn enter(&mut self) -> MemberEntry<'_, T> {
        let TurnMember { watch: TurnWatch { shared, place, written }, is_kept } = self;
        let shared: &RoundRobin<T> = shared;
        let now = shared.lock.peek();
        if let Some(guard) = shared.kept(is_kept, now) {
            return MemberEntry::Turn(MemberGuard { guard, shared, is_kept: Some(is_kept) });
        }
        if now & CLOSED != 0 {
            return MemberEntry::Closed;
        }
        if now != *place << TICKET {
            return MemberEntry::NotYet;
        }
        fetch(written);
        match shared.lock.enter(now) {
            Some(guard) => MemberEntry::Turn(MemberGuard { guard, shared, is_kept: Some(is_kept) }),
            // Another member has taken over.
            None => MemberEntry::NotYet,
        }
    }

    /// Asks for a notification of its turn, or of the end. False if that has come already: then there is
    /// none.
    pub fn wait(&self) -> bool {
        self.watch.wait()
    }

    /// Returns a watch, with which another object polls for this member's turn.
    #[must_use]
    pub fn watch(&self) -> TurnWatch<T> {
        let TurnWatch { shared, place, written } = &self.watch;
        TurnWatch { shared: Arc::clone(shared), place: *place, written: *written }
    }

    /// Takes the value whichever member's turn it is, also after the end. `None` during a turn.
    pub fn take_over(&mut self) -> Option<MemberGuard<'_, T>> {
        let shared: &RoundRobin<T> = &self.watch.shared;
        let now = shared.lock.peek() & !BUSY;
        let guard = shared.kept(&mut self.is_kept, now).or_else(|| shared.lock.enter(now))?;
        Some(MemberGuard { guard, shared, is_kept: None })
    }

    /// Ends what [`MemberGuard::keep`] began: it is still the member's turn, and nobody has the value.
    pub fn release(&mut self) {
        if self.is_kept {
            drop(self.take_over());
        }
    }
}

impl<T> TurnWatch<T> {
    /// Whether it is the member's turn, or no turns are left. A hint, and cheap: one load while it is not.
    /// Once it is, the lines that the turn writes are fetched.
    #[inline]
    pub fn is_up(&self) -> bool {
        let is_up = is_up(self.shared.lock.peek(), self.place);
        if is_up {
            MemoryRange::of(&*self.shared.lock.word).fetch_to_write();
            fetch(&self.written);
        }
        is_up
    }

    /// As [`TurnMember::wait`].
    pub fn wait(&self) -> bool {
        let (waiting, bit) = (&self.shared.waiting, 1 << self.place);
        // Relaxed: the fence orders it.
        waiting.fetch_or(bit, Ordering::Relaxed);
        // Partner: the fence in `leave`. Either this member sees the new word, or the one that leaves sees
        // the bit.
        full_fence("no fence in wait");
        let now = if planted("no second check") { u64::MAX << TICKET } else { self.shared.lock.peek() };
        let is_up = is_up(now, self.place);
        if is_up {
            waiting.fetch_and(!bit, Ordering::Relaxed);
        }
        !is_up
    }
}

/// Fetches the lines that the turn before has written, while the word comes over.
#[inline(always)]
fn fetch(written: &[MemoryRange; 2]) {
    written.iter().for_each(|range| range.fetch_to_write());
}

fn is_up(word: u64, place: u64) -> bool {
    word & CLOSED != 0 || word >> TICKET == place
}

impl<T> RoundRobin<T> {
    /// Returns the guard that [`MemberGuard::keep`] forgot, if `is_kept` says so, and clears that.
    #[inline(always)]
    fn kept(&self, is_kept: &mut bool, now: u64) -> Option<TicketGuard<'_, T>> {
        // SAFETY: only `keep` sets the flag, in a turn whose guard it forgets, so the turn is still this
        // member's.
        std::mem::take(is_kept).then(|| unsafe { self.lock.guard(now & !BUSY) })
    }
}

impl<'s, T> MemberGuard<'s, T> {
    /// Keeps the turn until the member enters next, or is [released](TurnMember::release) or dropped. That
    /// saves an exchange, and nobody can take the value over meanwhile.
    ///
    /// A value that was [taken over](TurnMember::take_over) is left instead.
    pub fn keep(self) {
        if let Some(is_kept) = self.is_kept {
            *is_kept = true;
            std::mem::forget(self.guard);
        }
    }

    /// Passes the turn to the next member. Returns that member's place if it waits for a notification.
    #[inline]
    pub fn pass(self) -> Option<usize> {
        let word = self.guard.next;
        let next = (word >> TICKET) + 1;
        let next = if next == self.shared.members { 0 } else { next };
        let shared = self.leave(next << TICKET | word & CLOSED);
        // Relaxed: the fence orders it.
        let bit = 1 << next;
        let waits = shared.waiting.load(Ordering::Relaxed) & bit != 0
            && shared.waiting.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        waits.then_some(next as usize)
    }

    /// Ends all turns. Returns the places of the members that wait for a notification.
    pub fn close(self) -> impl Iterator<Item = usize> + use<T> {
        let word = self.guard.next;
        let waiting = self.leave(word | CLOSED).waiting.swap(0, Ordering::Relaxed);
        (0..MOST).filter(move |place| waiting & 1 << place != 0)
    }

    #[inline]
    fn leave(mut self, word: u64) -> &'s RoundRobin<T> {
        self.guard.next = word;
        drop(self.guard);
        // Partner: the fence in `wait`.
        full_fence("no fence in pass");
        self.shared
    }
}

impl<T> Drop for TurnMember<T> {
    fn drop(&mut self) {
        self.release();
    }
}

impl<T> Deref for MemberGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MemberGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T> fmt::Debug for TurnMember<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TurnMember({} of {})", self.watch.place, self.watch.shared.members)
    }
}

impl<T> fmt::Debug for TurnWatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TurnWatch({} of {})", self.place, self.shared.members)
    }
}

impl<T> fmt::Debug for MemberGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberGuard({})", self.guard.next >> TICKET)
    }
}
