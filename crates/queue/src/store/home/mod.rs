//! The home of a store's blocks: its memory and its free lists.

mod build;
mod mapped;

pub(in crate::store) use mapped::MappedLayout;

use super::Meta;
use crate::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU32, Ordering};
use crate::sync::{self, CachePadded, UnsafeCell, load_before_rmw, planted};
use build::HomeMemory;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Head of a block. The samples follow at [`data_offset`]; a block is one cache-aligned piece of memory.
#[repr(C, align(64))]
pub(in crate::store) struct BlockHead<M> {
    /// Handles to this block. 1 means unique; the last one to be dropped returns the block.
    pub(in crate::store) refs: AtomicU32,
    /// Bytes of the valid samples. Only a unique handle changes it.
    pub(in crate::store) len_bytes: UnsafeCell<u32>,
    /// Bytes after the head.
    pub(in crate::store) bytes: u32,
    /// Whether the samples belong to another process: nobody may write them here.
    pub(in crate::store) is_lent: bool,
    pub(in crate::store) home: NonNull<Home<M>>,
    /// The block's place in a free list.
    link: NonNull<BlockLink<M>>,
    /// Only a unique handle changes it.
    pub(in crate::store) meta: UnsafeCell<M>,
}

/// A block's place in a free list. Links are stored together, apart from the blocks: the owner walks a list
/// from other threads link by link, and a link inside its block would cost one line from another core each.
pub(in crate::store) struct BlockLink<M> {
    /// The next free block's link while this block is in a free list; unused while it is out.
    next: UnsafeCell<*mut BlockLink<M>>,
    head: NonNull<BlockHead<M>>,
}

/// Returns the bytes from a head to its samples.
pub(in crate::store) const fn data_offset<M>() -> usize {
    size_of::<BlockHead<M>>().next_multiple_of(64)
}

/// Function called at the return of a block that the owner [wanted](Home::want).
pub(in crate::store) type OnReturn = Arc<dyn Fn() + Send + Sync>;

pub(in crate::store) struct Home<M> {
    /// Number of the thread that owns the local list; 0 before the home is opened and after it is closed.
    pub(in crate::store) owner: AtomicU32,
    pub(in crate::store) blocks: usize,
    pub(in crate::store) bytes: usize,
    memory: HomeMemory,
    /// One link for each block.
    links: NonNull<[BlockLink<M>]>,
    /// Only the owning thread touches it.
    local: UnsafeCell<Local<M>>,
    /// Set before the home is opened, constant from then on.
    on_return: Option<OnReturn>,
    /// Blocks dropped on other threads, newest first; [`wanted`] while there is none and the owner waits for
    /// one; [`closed`] once the store is gone. On its own line: the owner uses `local`, others push here.
    remote: CachePadded<AtomicPtr<BlockLink<M>>>,
    /// Blocks still out; only used after the end of the store. Drops that come before the store has counted
    /// make it negative for a moment. The thread that brings it to 0 frees the memory.
    remaining: AtomicIsize,
}

struct Local<M> {
    /// Free blocks; the block returned last comes first.
    free: *mut BlockLink<M>,
    /// Number of blocks in `free`.
    count: usize,
    /// Fewest blocks that it ever had.
    fewest: usize,
}

/// Mark in `remote`: the store is gone; count down instead.
fn closed<M>() -> *mut BlockLink<M> {
    std::ptr::without_provenance_mut(1)
}

/// Mark in `remote`: no block here, and the owner wants a notification of the next one.
fn wanted<M>() -> *mut BlockLink<M> {
    std::ptr::without_provenance_mut(2)
}

impl<M: Meta> Home<M> {
    /// Makes the calling thread the owner.
    ///
    /// # Safety
    /// Called once, by the only handle to a home; no block is out.
    pub(in crate::store) unsafe fn open(mut this: NonNull<Self>, on_return: Option<OnReturn>) {
        // SAFETY: nobody else has the home.
        let home = unsafe { this.as_mut() };
        home.on_return = on_return;
        // Relaxed: a thread that reads its own number there has stored it.
        home.owner.store(sync::thread_number(), Ordering::Relaxed);
    }

    /// Takes a free block, or `None`.
    ///
    /// # Safety
    /// On the owning thread, with the store alive.
    #[inline]
    pub(in crate::store) unsafe fn take(this: NonNull<Self>) -> Option<NonNull<BlockHead<M>>> {
        // SAFETY: the store is alive, so the home is.
        let home = unsafe { this.as_ref() };
        home.local.with_mut(|local| {
            // SAFETY: only the owning thread touches the local list, and this code calls no foreign code.
            let local = unsafe { &mut *local };
            if local.free.is_null() {
                home.fetch(local);
            }
            let link = NonNull::new(local.free)?;
            // SAFETY: links live as long as the home.
            let link = unsafe { link.as_ref() };
            local.free = link.next.with(|next| {
                // SAFETY: a link in the free list belongs to the list.
                unsafe { *next }
            });
            local.count -= 1;
            if local.count < local.fewest {
                local.fewest = local.count;
            }
            Some(link.head)
        })
    }

    /// Takes the block `index` out of the free list; `None` if it is not there.
    ///
    /// # Safety
    /// On the owning thread, with the store alive.
    pub(in crate::store) unsafe fn take_at(
        this: NonNull<Self>,
        index: usize,
    ) -> Option<NonNull<BlockHead<M>>> {
        // SAFETY: the store is alive, so the home is.
        let home = unsafe { this.as_ref() };
        if index >= home.blocks {
            return None;
        }
        // SAFETY: `index` is below the number of links.
        let wanted = unsafe { home.links.cast::<BlockLink<M>>().add(index) };
        home.local.with_mut(|local| {
            // SAFETY: only the owning thread touches the local list, and this code calls no foreign code.
            let local = unsafe { &mut *local };
            home.fetch(local);
            // The word that leads to a link: the list's beginning, or the `next` of the link before.
            let mut leads: *mut *mut BlockLink<M> = &raw mut local.free;
            loop {
                // SAFETY: it is a word of the list, which belongs to this thread.
                let link = NonNull::new(unsafe { *leads })?;
                // SAFETY: links live as long as the home.
                let next = unsafe { link.as_ref() }.next.with_mut(|next| next);
                if link == wanted {
                    // SAFETY: as above: the word belongs to the list.
                    let after = unsafe { *next };
                    // SAFETY: as above.
                    unsafe { *leads = after };
                    local.count -= 1;
                    local.fewest = local.fewest.min(local.count);
                    // SAFETY: as above.
                    return Some(unsafe { link.as_ref() }.head);
                }
                leads = next;
            }
        })
    }

    /// Whether the block `index` is in the free list.
    ///
    /// # Safety
    /// On the owning thread, with the store alive.
    pub(in crate::store) unsafe fn is_free(this: NonNull<Self>, index: usize) -> bool {
        // SAFETY: as promised by the caller; the block goes back at once.
        let Some(head) = (unsafe { Self::take_at(this, index) }) else { return false };
        // SAFETY: it has no handle.
        unsafe { Self::give_back(head) };
        true
    }

    /// The file, and the number of a block in it; `None` if no other process can map it.
    pub(in crate::store) fn place_of(&self, head: &BlockHead<M>) -> Option<(BorrowedFd<'_>, usize)> {
        // A lent block can be lent on: its handle is kept meanwhile.
        let (HomeMemory::Owned(mapping) | HomeMemory::Lent(mapping)) = &self.memory else { return None };
        let first = self.links.cast::<BlockLink<M>>().as_ptr() as usize;
        let index = (head.link.as_ptr() as usize - first) / size_of::<BlockLink<M>>();
        Some((mapping.file(), index))
    }

    /// Fetches blocks that other threads dropped, oldest first: it has had the most time to leave their
    /// caches.
    #[cold]
    fn fetch(&self, local: &mut Local<M>) {
        // Relaxed: a check first, so that a mark stays. Only this thread puts a mark there, so the exchange
        // finds none either.
        if !self.has_remote() {
            return;
        }
        // Acquire, partner: the Release of the push in `give_back_from_afar`. The dropping threads' accesses
        // to the blocks, and their writes of `next`, are visible here.
        let mut top = self.remote.swap(null_mut(), Ordering::Acquire);
        while let Some(link) = NonNull::new(top) {
            // SAFETY: links live as long as the home.
            top = unsafe { link.as_ref() }.next.with_mut(|next| {
                // SAFETY: after the swap these blocks and their links are ours alone.
                unsafe { std::mem::replace(&mut *next, local.free) }
            });
            local.free = link.as_ptr();
            local.count += 1;
        }
    }

    /// Whether the remote list has blocks. Owner only; a hint: `fetch` synchronises.
    fn has_remote(&self) -> bool {
        // Relaxed: nothing is read through it.
        let top = load_before_rmw(&self.remote);
        !top.is_null() && top != wanted()
    }

    /// Takes back a block whose last handle is gone. Any thread.
    ///
    /// # Safety
    /// `head` is a block of a live home, and has no handle left.
    #[inline]
    pub(in crate::store) unsafe fn give_back(head: NonNull<BlockHead<M>>) {
        // SAFETY: heads are valid while their home is, and this block still counts as out.
        let block = unsafe { head.as_ref() };
        block.meta.with_mut(|meta| {
            // SAFETY: no handle is left, so this is the only access.
            unsafe { (*meta).reset() }
        });
        // SAFETY: the home lives as long as one of its blocks is out.
        let home = unsafe { block.home.as_ref() };
        // Relaxed: the comparison holds only on the one thread that stored its own number there.
        if home.owner.load(Ordering::Relaxed) == sync::thread_number() {
            home.local.with_mut(|local| {
                // SAFETY: this is the owning thread, and this code calls no foreign code.
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
        // SAFETY: heads are valid while their home is, and this block still counts as out.
        let block = unsafe { head.as_ref() };
        let (this, link) = (block.home, block.link);
        // SAFETY: the home lives as long as one of its blocks is out.
        let home = unsafe { this.as_ref() };
        // Relaxed: only the value is compared; the list is not read here.
        let mut top = load_before_rmw(&home.remote);
        while top != closed() {
            let is_wanted = top == wanted();
            // A clone, made before the exchange: after it the owner can close the store and free the home.
            let on_return = if is_wanted { home.on_return.clone() } else { None };
            // SAFETY: links live as long as the home.
            unsafe { link.as_ref() }.next.with_mut(|next| {
                // SAFETY: no handle is left, and the block is in no list yet.
                unsafe { *next = if is_wanted { null_mut() } else { top } }
            });
            // Release, partner: the Acquire swap in `fetch` and the AcqRel swap in `close`.
            match home.remote.compare_exchange_weak(top, link.as_ptr(), Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => {
                    if let Some(on_return) = on_return {
                        on_return();
                    }
                    return;
                }
                Err(now) => top = now,
            }
        }
        // SAFETY: the list is closed, so this block counts down instead.
        unsafe { Self::count_down(this, -1) };
    }

    /// Closes the home of a store that ends: frees the memory, now or when the last block is returned.
    ///
    /// # Safety
    /// Called once, by the only handle, on the owning thread (or before there is one).
    pub(in crate::store) unsafe fn close(this: NonNull<Self>) {
        // SAFETY: the handle still exists, so the home does.
        let home = unsafe { this.as_ref() };
        // Relaxed: the next reader is this thread, or one whose number was never there.
        home.owner.store(0, Ordering::Relaxed);
        // AcqRel, partner: the Release of the pushes (their blocks are counted as returned), and the loads
        // that then find the list closed.
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
                // SAFETY: after the swap these blocks and their links are ours alone.
                unsafe { *next }
            });
        }
        // SAFETY: each block that is out counts down exactly once, so the sum reaches 0 once.
        unsafe { Self::count_down(this, (home.blocks - at_home) as isize) };
    }

    /// # Safety
    /// After `close` has closed the list: called once with the number of blocks still out, and once with -1
    /// for each of them.
    unsafe fn count_down(this: NonNull<Self>, change: isize) {
        // SAFETY: the sum is not 0 before this change, or the change is the one of `close`: the home is
        // alive.
        let home = unsafe { this.as_ref() };
        // AcqRel, partner: itself. The thread that reaches 0 has seen the effects of all others that counted.
        let before = home.remaining.fetch_add(change, Ordering::AcqRel);
        if before + change == 0 {
            // SAFETY: no other access follows: the store and all blocks are gone.
            unsafe { Self::free(this) };
        }
    }

    /// Number of free blocks, including those that other threads have returned by now.
    ///
    /// # Safety
    /// On the owning thread, with the store alive.
    pub(in crate::store) unsafe fn count_free(this: NonNull<Self>) -> usize {
        // SAFETY: the store is alive, so the home is.
        let home = unsafe { this.as_ref() };
        home.local.with_mut(|local| {
            // SAFETY: only the owning thread touches the local list, and this code calls no foreign code.
            let local = unsafe { &mut *local };
            home.fetch(local);
            local.count
        })
    }

    /// Returns whether fewer than `blocks` are free; then the next return from another thread notifies the
    /// owner.
    ///
    /// # Safety
    /// On the owning thread, with the store alive.
    pub(in crate::store) unsafe fn want(this: NonNull<Self>, blocks: usize) -> bool {
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
            // Relaxed: the mark carries no data. Mark and push are read-modify-writes of one word: either the
            // push came first and this fails, or it comes later and finds the mark.
            match home.remote.compare_exchange(null_mut(), wanted(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) if now == wanted() => return true,
                // A block was returned just now: it may be enough.
                // SAFETY: as promised by the caller.
                Err(_) if unsafe { Self::count_free(this) } >= blocks => return false,
                Err(_) => {}
            }
        }
    }

    /// # Safety
    /// On the owning thread, with the store alive.
    pub(in crate::store) unsafe fn in_use_max(this: NonNull<Self>) -> usize {
        // SAFETY: the store is alive, so the home is.
        let home = unsafe { this.as_ref() };
        home.local.with(|local| {
            // SAFETY: on the owning thread.
            home.blocks - unsafe { (*local).fewest }
        })
    }
}
