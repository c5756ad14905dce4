//! Where the blocks of one store live and come back to.

use super::place::stride;
use super::{Meta, StoreError};
use crate::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU32, Ordering};
use crate::sync::{self, CachePadded, UnsafeCell, load_before_rmw, planted};
use std::alloc::{Layout, alloc, dealloc};
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// BlockHead of a block. The samples follow at [`data_offset`]; one block is one cache-aligned stretch of memory.
#[repr(C, align(64))]
pub(super) struct BlockHead<M> {
    /// Handles to this block. 1 means unique; the last one to go brings the block home.
    pub(super) refs: AtomicU32,
    /// Samples that are valid. Changed by a unique handle only.
    pub(super) len: UnsafeCell<u32>,
    /// Bytes after the head.
    pub(super) bytes: u32,
    pub(super) home: NonNull<Home<M>>,
    /// Its place in a free list.
    link: NonNull<BlockLink<M>>,
    /// Changed by a unique handle only.
    pub(super) meta: UnsafeCell<M>,
}

/// A block's place in a free list, beside those of other blocks: a list that comes from other threads is gone through one after the other,
/// and where each link lay in its block that would be a line from another core for each of them.
pub(super) struct BlockLink<M> {
    /// The next free block's, while this one is in a free list; unused while it is out.
    next: UnsafeCell<*mut BlockLink<M>>,
    head: NonNull<BlockHead<M>>,
}

/// Bytes from a head to its samples.
pub(super) const fn data_offset<M>() -> usize {
    size_of::<BlockHead<M>>().next_multiple_of(64)
}

/// What is called when a block comes home that the owner [wanted](Home::want).
pub(super) type HomeComing = Arc<dyn Fn() + Send + Sync>;

pub(super) struct Home<M> {
    /// Number of the thread that owns the local list; 0 before it is opened and after it is closed.
    pub(super) owner: AtomicU32,
    pub(super) blocks: usize,
    pub(super) bytes: usize,
    memory: NonNull<u8>,
    layout: Layout,
    /// One for each block.
    links: NonNull<[BlockLink<M>]>,
    /// Owner thread only.
    local: UnsafeCell<Local<M>>,
    /// Set before the home is opened, constant from then on.
    home_coming: Option<HomeComing>,
    /// Blocks dropped on other threads, newest first; [`wanted`] while there is none and the owner waits for one;
    /// [`closed`] once the store is gone. Its own line: the owner polls `local`, others push here.
    remote: CachePadded<AtomicPtr<BlockLink<M>>>,
    /// Only after the end of the store: blocks still out. Drops that come before the store has counted make it
    /// negative for a moment; whoever brings it to 0 frees the memory.
    remaining: AtomicIsize,
}

struct Local<M> {
    /// Free blocks, last home first.
    free: *mut BlockLink<M>,
    /// How many `free` has.
    count: usize,
    /// Fewest that it ever had.
    fewest: usize,
}

/// The mark in `remote` that says: no store any more, count down instead.
fn closed<M>() -> *mut BlockLink<M> {
    std::ptr::without_provenance_mut(1)
}

/// The mark in `remote` that says: no block here, and the owner wants to know when there is one.
fn wanted<M>() -> *mut BlockLink<M> {
    std::ptr::without_provenance_mut(2)
}

impl<M: Meta> Home<M> {
    pub(super) fn new(
        blocks: usize,
        bytes: usize,
        prepare: &mut dyn FnMut(&mut [MaybeUninit<u8>]),
    ) -> Result<NonNull<Self>, StoreError> {
        if blocks == 0 || bytes == 0 {
            return Err(StoreError::Empty);
        }
        let too_large = StoreError::TooLarge { blocks, bytes };
        if u32::try_from(bytes).is_err() {
            return Err(too_large);
        }
        let stride = stride(data_offset::<M>(), bytes);
        let total = stride.checked_mul(blocks).ok_or(too_large)?;
        let align = align_of::<BlockHead<M>>().max(64);
        let layout = Layout::from_size_align(total, align).map_err(|_| too_large)?;
        // SAFETY: the layout has a size above 0.
        let memory =
            NonNull::new(unsafe { alloc(layout) }).ok_or(StoreError::OutOfMemory { bytes: total })?;
        // SAFETY: `total` bytes are there, nobody else has them, and as `MaybeUninit` they need no value.
        prepare(unsafe { std::slice::from_raw_parts_mut(memory.as_ptr().cast::<MaybeUninit<u8>>(), total) });
        // SAFETY: as above.
        unsafe { memory.write_bytes(0, total) };
        let at = |index: usize| {
            // SAFETY: `index < blocks`, so this stays inside the allocation.
            unsafe { memory.add(index * stride) }.cast::<BlockHead<M>>()
        };
        let links = (0..blocks).map(|index| BlockLink { next: UnsafeCell::new(null_mut()), head: at(index) });
        let links = NonNull::from(Box::leak(links.collect::<Box<[BlockLink<M>]>>()));
        let home = NonNull::from(Box::leak(Box::new(Home {
            owner: AtomicU32::new(0),
            blocks,
            bytes,
            memory,
            layout,
            links,
            local: UnsafeCell::new(Local { free: null_mut(), count: blocks, fewest: blocks }),
            home_coming: None,
            remote: CachePadded::new(AtomicPtr::new(null_mut())),
            remaining: AtomicIsize::new(0),
        })));
        let mut free = null_mut();
        for index in (0..blocks).rev() {
            // SAFETY: `index < blocks`, and so many links there are.
            let link = unsafe { links.cast::<BlockLink<M>>().add(index) };
            let value = BlockHead {
                refs: AtomicU32::new(0),
                len: UnsafeCell::new(0),
                bytes: bytes as u32,
                home,
                link,
                meta: UnsafeCell::new(M::default()),
            };
            // SAFETY: the place is aligned (the stride is a multiple of 64), large enough and not yet in use.
            unsafe { at(index).write(value) };
            // SAFETY: nobody else has the links yet.
            unsafe { link.as_ref() }.next.with_mut(|next| {
                // SAFETY: as above.
                unsafe { *next = free }
            });
            free = link.as_ptr();
        }
        // SAFETY: nobody else has the home yet.
        unsafe { home.as_ref() }.local.with_mut(|local| {
            // SAFETY: as above.
            unsafe { (*local).free = free }
        });
        Ok(home)
    }

    /// Makes the calling thread the owner.
    ///
    /// # Safety
    /// Called once, by the only handle to a home of which no block is out.
    pub(super) unsafe fn open(mut this: NonNull<Self>, home_coming: Option<HomeComing>) {
        // SAFETY: nobody else has the home.
        let home = unsafe { this.as_mut() };
        home.home_coming = home_coming;
        // Relaxed: who reads this thread's number there is this thread.
        home.owner.store(sync::thread_number(), Ordering::Relaxed);
    }

    /// A free block, or `None`.
    ///
    /// # Safety
    /// On the owning thread, with the store alive.
    #[inline]
    pub(super) unsafe fn take(this: NonNull<Self>) -> Option<NonNull<BlockHead<M>>> {
        // SAFETY: the store is alive, so the home is.
        let home = unsafe { this.as_ref() };
        home.local.with_mut(|local| {
            // SAFETY: the local list is touched on the owning thread only, and nothing in here calls out.
            let local = unsafe { &mut *local };
            if local.free.is_null() {
                home.fetch(local);
            }
            let link = NonNull::new(local.free)?;
            // SAFETY: links live as long as the home.
            let link = unsafe { link.as_ref() };
            local.free = link.next.with(|next| {
                // SAFETY: one in the free list belongs to the list.
                unsafe { *next }
            });
            local.count -= 1;
            if local.count < local.fewest {
                local.fewest = local.count;
            }
            Some(link.head)
        })
    }

    /// Brings home what other threads dropped, oldest first: it has had the most time to leave their caches.
    #[cold]
    fn fetch(&self, local: &mut Local<M>) {
        // Relaxed: a look first, so that a mark stays. Only this thread puts one there, so after finding none the
        // exchange finds none.
        if !self.has_remote() {
            return;
        }
        // Acquire, partner: the Release of the push in `give_back`. What the dropping threads did to the blocks, and
        // their `next`, is visible here.
        let mut top = self.remote.swap(null_mut(), Ordering::Acquire);
        while let Some(link) = NonNull::new(top) {
            // SAFETY: links live as long as the home.
            top = unsafe { link.as_ref() }.next.with_mut(|next| {
                // SAFETY: after the swap these blocks are ours alone, and so are their links.
                unsafe { std::mem::replace(&mut *next, local.free) }
            });
            local.free = link.as_ptr();
            local.count += 1;
        }
    }

    /// Whether blocks lie on the remote list. Owner only; a hint: `fetch` does the synchronising.
    fn has_remote(&self) -> bool {
        // Relaxed: nothing is read through it.
        let top = load_before_rmw(&self.remote);
        !top.is_null() && top != wanted()
    }

    /// Takes back a block whose last handle is gone. From any thread.
    ///
    /// # Safety
    /// `head` is a block of a live home, and no handle to it is left.
    #[inline]
    pub(super) unsafe fn give_back(head: NonNull<BlockHead<M>>) {
        // SAFETY: heads are valid while their home is, and this one still counts as out.
        let block = unsafe { head.as_ref() };
        block.meta.with_mut(|meta| {
            // SAFETY: no handle is left, so this is the only access.
            unsafe { (*meta).reset() }
        });
        // SAFETY: the home lives as long as one of its blocks is out.
        let home = unsafe { block.home.as_ref() };
        // Relaxed: the answer can only be "yes" on the one thread that stored its own number there.
        if home.owner.load(Ordering::Relaxed) == sync::thread_number() {
            home.local.with_mut(|local| {
                // SAFETY: this is the owning thread, and nothing in here calls out.
                let local = unsafe { &mut *local };
                // SAFETY: links live as long as the home.
                unsafe { block.link.as_ref() }.next.with_mut(|next| {
                    // SAFETY: no handle is left, and the block is in no list yet.
                    unsafe { *next = local.free }
                });
                local.free = block.link.as_ptr();
                local.count += 1;
            });
        } else {
            // SAFETY: as promised by the caller.
            unsafe { Self::give_back_from_afar(head) };
        }
    }

    /// # Safety
    /// As [`give_back`](Self::give_back), and the calling thread is not the owner.
    #[inline(never)]
    unsafe fn give_back_from_afar(head: NonNull<BlockHead<M>>) {
        // SAFETY: heads are valid while their home is, and this one still counts as out.
        let block = unsafe { head.as_ref() };
        let (this, link) = (block.home, block.link);
        // SAFETY: the home lives as long as one of its blocks is out.
        let home = unsafe { this.as_ref() };
        // Relaxed: only the value is compared; what the list points to is not read here.
        let mut top = load_before_rmw(&home.remote);
        while top != closed() {
            let is_wanted = top == wanted();
            // A clone, and before the exchange: after it the owner may close the store and free the home.
            let home_coming = if is_wanted { home.home_coming.clone() } else { None };
            // SAFETY: links live as long as the home.
            unsafe { link.as_ref() }.next.with_mut(|next| {
                // SAFETY: no handle is left, and the block is in no list yet.
                unsafe { *next = if is_wanted { null_mut() } else { top } }
            });
            // Release, partner: the Acquire swap in `fetch` and the AcqRel swap in `close`.
            match home.remote.compare_exchange_weak(top, link.as_ptr(), Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => {
                    if let Some(home_coming) = home_coming {
                        home_coming();
                    }
                    return;
                }
                Err(now) => top = now,
            }
        }
        // SAFETY: the list is closed, so this block counts down instead.
        unsafe { Self::count_down(this, -1) };
    }

    /// The store is gone: frees the memory, now or when the last block comes back.
    ///
    /// # Safety
    /// Called once, by the only handle, on the owning thread (or before there is one).
    pub(super) unsafe fn close(this: NonNull<Self>) {
        // SAFETY: the handle is still there, so the home is.
        let home = unsafe { this.as_ref() };
        // Relaxed: this thread will read it, or one whose number it never was.
        home.owner.store(0, Ordering::Relaxed);
        // AcqRel, partner: the Release of the pushes (their blocks are counted as home), and the loads that then find
        // the list closed.
        let mut top = home.remote.swap(closed(), Ordering::AcqRel);
        if top == wanted() {
            top = null_mut();
        }
        let mut at_home = home.local.with(|local| {
            // SAFETY: on the owning thread.
            unsafe { (*local).count }
        });
        while let Some(link) = NonNull::new(top) {
            at_home += 1;
            // SAFETY: links live as long as the home.
            top = unsafe { link.as_ref() }.next.with(|next| {
                // SAFETY: after the swap these blocks are ours alone, and so are their links.
                unsafe { *next }
            });
        }
        // SAFETY: each block that is out counts down exactly once, so the sum reaches 0 once.
        unsafe { Self::count_down(this, (home.blocks - at_home) as isize) };
    }

    /// # Safety
    /// After `close` has shut the list: once with the number of blocks still out, and once with -1 for each of them.
    unsafe fn count_down(this: NonNull<Self>, change: isize) {
        // SAFETY: the sum is not 0 before this change, or the change is the one of `close`: the home is alive.
        let home = unsafe { this.as_ref() };
        // AcqRel, partner: itself. Whoever reaches 0 has seen all that the others did before they counted.
        let before = home.remaining.fetch_add(change, Ordering::AcqRel);
        if before + change == 0 {
            // SAFETY: nobody else will come: the store and all blocks are gone.
            unsafe { Self::free(this) };
        }
    }

    /// # Safety
    /// The last access to this home.
    #[cold]
    unsafe fn free(this: NonNull<Self>) {
        // SAFETY: the home was made by `Box::leak`, and this is the last access.
        let home = unsafe { Box::from_raw(this.as_ptr()) };
        // SAFETY: the links were made by `Box::leak`, and nobody else comes any more.
        let links = unsafe { Box::from_raw(home.links.as_ptr()) };
        for link in &links {
            // SAFETY: every head was written when the home was made, and is not used again.
            unsafe { link.head.drop_in_place() };
        }
        // SAFETY: allocated with this layout.
        unsafe { dealloc(home.memory.as_ptr(), home.layout) };
    }

    /// How many blocks are free, those included that other threads have brought home by now.
    ///
    /// # Safety
    /// On the owning thread, with the store alive.
    pub(super) unsafe fn count_free(this: NonNull<Self>) -> usize {
        // SAFETY: the store is alive, so the home is.
        let home = unsafe { this.as_ref() };
        home.local.with_mut(|local| {
            // SAFETY: the local list is touched on the owning thread only, and nothing in here calls out.
            let local = unsafe { &mut *local };
            home.fetch(local);
            local.count
        })
    }

    /// True when fewer than `blocks` are free, and then the next block from another thread announces itself.
    ///
    /// # Safety
    /// On the owning thread, with the store alive.
    pub(super) unsafe fn want(this: NonNull<Self>, blocks: usize) -> bool {
        // SAFETY: as promised by the caller.
        if unsafe { Self::count_free(this) } >= blocks {
            return false;
        }
        // SAFETY: the store is alive, so the home is.
        let home = unsafe { this.as_ref() };
        if planted("wanted by load and store") {
            home.remote.store(wanted(), Ordering::Relaxed);
            return true;
        }
        loop {
            // Relaxed: the mark carries no data. A push either changed the word before, and this fails, or comes after
            // and finds the mark, because both are read-modify-writes of one word.
            match home.remote.compare_exchange(null_mut(), wanted(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) if now == wanted() => return true,
                // One came home just now: it may be enough.
                // SAFETY: as promised by the caller.
                Err(_) if unsafe { Self::count_free(this) } >= blocks => return false,
                Err(_) => {}
            }
        }
    }

    /// # Safety
    /// On the owning thread, with the store alive.
    pub(super) unsafe fn in_use_max(this: NonNull<Self>) -> usize {
        // SAFETY: the store is alive, so the home is.
        let home = unsafe { this.as_ref() };
        home.local.with(|local| {
            // SAFETY: on the owning thread.
            home.blocks - unsafe { (*local).fewest }
        })
    }
}
