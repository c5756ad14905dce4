//! A bounded first-in-first-out ring between two operators of one worker.

use crate::owner::Owner;
use crate::sync::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;

/// Error of a push to a full ring. It returns the item.
#[derive(PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

/// A bounded ring without atomics.
///
/// All access goes through the [`Owner`] that the ring was made with. `&mut Owner` is exclusive and the token
/// is unique, so at most one thread is inside; moving the token to another thread orders the two. This is the
/// whole soundness argument: `Ring` is `Sync` although it consists of plain cells.
///
/// Each item has a plain value of type `S` beside it, which is read on demand ([`side`](Ring::side)).
///
/// Both counters only grow, so they also serve as statistics: [`sent`](Ring::sent) and
/// [`taken`](Ring::taken).
pub struct Ring<T, S: Copy = ()> {
    /// Id of the owner that opens this ring.
    owner: u32,
    capacity: u32,
    /// Slots minus one. Their number is a power of two, so one `and` turns a counter into an index.
    mask: u32,
    counters: UnsafeCell<RingCounters>,
    slots: Box<[RingSlot<T, S>]>,
}

/// Two cells instead of one, so that each is stored and loaded in one piece: a wide load across two younger
/// stores waits until both have reached the cache.
struct RingSlot<T, S> {
    item: UnsafeCell<MaybeUninit<T>>,
    side: UnsafeCell<S>,
}

#[derive(Clone, Copy)]
struct RingCounters {
    /// Items ever pushed. The slot of item `n` is `n & mask`.
    pushed: u64,
    /// Items ever taken out. Slots `taken..pushed` hold a value, all others none.
    taken: u64,
    /// Most items that were inside at once.
    deepest: u32,
}

// SAFETY: the cells are only reached through `&Owner` (reads) or `&mut Owner` (writes) of the one owner whose
// id this ring carries, so a write never meets another access. Items cross threads with the ring, hence `T:
// Send`.
unsafe impl<T: Send, S: Copy + Send> Sync for Ring<T, S> {}
// SAFETY: as above; a ring owns its items.
unsafe impl<T: Send, S: Copy + Send> Send for Ring<T, S> {}

impl<T, S: Copy + Default> Ring<T, S> {
    /// Makes a ring for at most `capacity` items, opened by `owner`.
    ///
    /// # Panics
    /// If `capacity` is 0 or above 2^24.
    #[must_use]
    pub fn new(owner: &Owner, capacity: usize) -> Self {
        assert!((1..=1 << 24).contains(&capacity), "a ring holds 1 to 2^24 items, not {capacity}");
        let slots = capacity.next_power_of_two();
        Ring {
            owner: owner.id(),
            capacity: capacity as u32,
            mask: slots as u32 - 1,
            counters: UnsafeCell::new(RingCounters { pushed: 0, taken: 0, deepest: 0 }),
            slots: (0..slots)
                .map(|_| RingSlot {
                    item: UnsafeCell::new(MaybeUninit::uninit()),
                    side: UnsafeCell::new(S::default()),
                })
                .collect(),
        }
    }

    /// Puts an item in, with `side` beside it. Returns how many items were inside before.
    ///
    /// # Errors
    /// [`Full`] returns the item.
    ///
    /// # Panics
    /// If `owner` is not the one that the ring was made with.
    #[inline(always)]
    pub fn push(&self, owner: &mut Owner, item: T, side: &S) -> Result<u32, Full<T>> {
        self.check(owner);
        self.counters.with_mut(|counters| {
            // SAFETY: `check` and `&mut Owner` prove that nobody else is inside (see the type).
            let counters = unsafe { &mut *counters };
            let len = (counters.pushed - counters.taken) as u32;
            // `deepest` never exceeds the capacity, so one comparison is enough unless this push sets a
            // record.
            if len >= counters.deepest {
                if len >= self.capacity {
                    return Err(Full(item));
                }
                counters.deepest = len + 1;
            }
            let slot = self.slot(counters.pushed);
            // SAFETY: exclusive as above. The slot holds no value, because `len < capacity <= slots`.
            slot.item.with_mut(|slot| unsafe { (*slot).write(item) });
            // SAFETY: exclusive as above.
            slot.side.with_mut(|place| unsafe { *place = *side });
            counters.pushed += 1;
            Ok(len)
        })
    }

    /// Returns the value beside the item that was taken last. Valid only until the next push.
    ///
    /// # Panics
    /// If `owner` is not the one that the ring was made with.
    #[inline(always)]
    pub fn side(&self, owner: &Owner) -> S {
        let slot = self.slot(self.counters(owner).taken.wrapping_sub(1));
        // SAFETY: a shared `Owner` excludes writers, and every side is initialised from the start.
        slot.side.with(|side| unsafe { *side })
    }

    /// Takes the oldest item out. Returns it and how many items were inside before.
    ///
    /// # Panics
    /// If `owner` is not the one that the ring was made with.
    #[inline(always)]
    pub fn pop(&self, owner: &mut Owner) -> Option<(T, u32)> {
        self.check(owner);
        self.counters.with_mut(|counters| {
            // SAFETY: `check` and `&mut Owner` prove that nobody else is inside (see the type).
            let counters = unsafe { &mut *counters };
            let len = (counters.pushed - counters.taken) as u32;
            if len == 0 {
                return None;
            }
            let slot = self.slot(counters.taken);
            counters.taken += 1;
            let item = slot.item.with_mut(|slot| {
                // SAFETY: exclusive as above.
                let slot = unsafe { &*slot };
                // SAFETY: the slot held the oldest value and `taken` has just moved past it, so it is read
                // once.
                unsafe { slot.assume_init_read() }
            });
            Some((item, len))
        })
    }

    /// Inspects the value beside the oldest item.
    ///
    /// # Panics
    /// If `owner` is not the one that the ring was made with.
    #[inline]
    pub fn peek<R>(&self, owner: &Owner, inspect: impl FnOnce(&S) -> R) -> Option<R> {
        self.check(owner);
        let counters = self.counters(owner);
        if counters.pushed == counters.taken {
            return None;
        }
        let side = &self.slot(counters.taken).side;
        // SAFETY: a shared `Owner` excludes writers, and every side is initialised from the start.
        Some(side.with(|side| inspect(unsafe { &*side })))
    }

    /// Number of items inside.
    #[inline(always)]
    pub fn len(&self, owner: &Owner) -> usize {
        let counters = self.counters(owner);
        (counters.pushed - counters.taken) as usize
    }

    /// Whether the ring is empty.
    #[inline(always)]
    pub fn is_empty(&self, owner: &Owner) -> bool {
        self.len(owner) == 0
    }

    /// Number of items that fit.
    #[inline(always)]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Number of items ever put in.
    pub fn sent(&self, owner: &Owner) -> u64 {
        self.counters(owner).pushed
    }

    /// Number of items ever taken out.
    pub fn taken(&self, owner: &Owner) -> u64 {
        self.counters(owner).taken
    }

    /// Most items that were inside at once.
    pub fn deepest(&self, owner: &Owner) -> u32 {
        self.counters(owner).deepest
    }

    /// Returns the slot of the item with this number.
    #[inline(always)]
    fn slot(&self, number: u64) -> &RingSlot<T, S> {
        // SAFETY: `mask` is the number of slots minus one, a power of two minus one, so the index is below
        // that number.
        unsafe { self.slots.get_unchecked((number as u32 & self.mask) as usize) }
    }

    #[inline(always)]
    fn counters(&self, owner: &Owner) -> RingCounters {
        self.check(owner);
        // SAFETY: a shared `Owner` excludes writers, and the counters are copied out.
        self.counters.with(|counters| unsafe { *counters })
    }

    #[inline(always)]
    fn check(&self, owner: &Owner) {
        if owner.id() != self.owner {
            wrong_owner();
        }
    }
}

#[cold]
#[inline(never)]
fn wrong_owner() -> ! {
    panic!("this ring belongs to another worker: its edge must be planned as a cross-worker edge")
}

impl<T, S: Copy> Drop for Ring<T, S> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody else is left.
        let RingCounters { pushed, taken, .. } = self.counters.with(|counters| unsafe { *counters });
        for item in taken..pushed {
            let slot = &self.slots[(item as u32 & self.mask) as usize];
            slot.item.with_mut(|slot| {
                // SAFETY: `&mut self`: nobody else is left.
                let slot = unsafe { &mut *slot };
                // SAFETY: slots `taken..pushed` hold values, and nobody reads them after this.
                unsafe { slot.assume_init_drop() }
            });
        }
    }
}

impl<T, S: Copy> fmt::Debug for Ring<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("owner", &self.owner).field("capacity", &self.capacity).finish()
    }
}
