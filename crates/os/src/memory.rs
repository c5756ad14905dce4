//! Memory of the machine and of the process: size, locks, prefaulting, huge pages, nodes.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use crate::cores::CoreSet;
use crate::usage::Usage;

/// Total memory of the machine in bytes (`sysinfo(2)`), used or not.
///
/// ```
/// assert!(onbeat_os::memory::total_bytes() > 1 << 20);
/// ```
#[must_use]
pub fn total_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // Both are unsigned long: 32 bits on some machines.
    #[allow(clippy::unnecessary_cast, reason = "of another width elsewhere")]
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit).max(1))
}

/// Locks the memory of this process in main memory until it is dropped, optionally with later allocations.
#[derive(Debug)]
#[must_use = "dropping it unlocks the memory"]
pub struct MemoryLock(());

struct Locks {
    count: u32,
    /// The program had locked its memory before, so dropping this must not unlock it.
    foreign: bool,
}

static LOCKS: Mutex<Locks> = Mutex::new(Locks { count: 0, foreign: false });

impl MemoryLock {
    /// Locks all memory (`mlockall(2)`), which brings every page in. With a limit on locked memory, leave out
    /// `later` allocations: beyond the limit they would fail.
    ///
    /// # Errors
    /// What the kernel reports: [`explain_lock`](crate::rights::explain_lock) gives the reason, and how to
    /// get the right.
    pub fn take(later: bool) -> io::Result<Self> {
        let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        let foreign = if locks.count == 0 { locked_bytes() > 0 } else { locks.foreign };
        let what = if later { libc::MCL_CURRENT | libc::MCL_FUTURE } else { libc::MCL_CURRENT };
        // SAFETY: it changes where pages are, not their content.
        if unsafe { libc::mlockall(what) } != 0 {
            return Err(io::Error::last_os_error());
        }
        *locks = Locks { count: locks.count + 1, foreign };
        Ok(MemoryLock(()))
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        locks.count -= 1;
        if locks.count == 0 && !locks.foreign {
            // SAFETY: as for locking. It can fail only if locking could not have succeeded.
            unsafe { libc::munlockall() };
        }
    }
}

/// Memory without pages: the first access to each page is a page fault, even if the process locks its memory.
#[derive(Debug)]
pub struct FreshMemory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and any thread may use or unmap it.
unsafe impl Send for FreshMemory {}

impl FreshMemory {
    /// Maps this many bytes.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn map(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1);
        // Without rights to it: the kernel would bring in locked memory at once (`MCL_FUTURE`).
        let (rights, kind) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses the address, so no memory of ours is replaced.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, kind, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = FreshMemory { base: NonNull::new(base.cast()).expect("a mapping is not at 0"), bytes };
        // SAFETY: it is about the mapping alone, which nobody else knows.
        unsafe { libc::munlock(base, bytes) };
        // SAFETY: as above; huge pages would make one fault of 512.
        unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
        // SAFETY: as above.
        if unsafe { libc::mprotect(base, bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(memory)
    }

    /// Writes to each page that begins within this range of bytes.
    pub fn touch(&mut self, bytes: Range<usize>) {
        let page = rustix::param::page_size();
        for at in (bytes.start..bytes.end.min(self.bytes)).step_by(page) {
            // SAFETY: the offset is within the mapping.
            let byte = unsafe { self.base.add(at) };
            // SAFETY: the mapping is readable and writable, lives as long as `self`, and is exclusively ours.
            unsafe { byte.write_volatile(1) };
        }
    }
}

impl Drop for FreshMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Limit on the address space of this process and what it has mapped, in bytes; `None` without a limit, or if
/// `/proc` does not say.
#[must_use]
pub fn address_space() -> Option<(u64, u64)> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    Some((limit, pages * rustix::param::page_size() as u64))
}

/// Locked bytes of this process (`VmLck`); 0 if `/proc` does not say.
#[must_use]
pub fn locked_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmLck:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0) * 1024
}

/// Whether the kernel moves locked pages during compaction (`vm.compact_unevictable_allowed`). A thread that
/// touches such a page meanwhile has a page fault and waits until the move is over; a lock does not prevent
/// that. Kernels without compaction have no such setting, and do not move pages.
#[must_use]
pub fn moves_locked_pages() -> bool {
    let allowed = std::fs::read_to_string("/proc/sys/vm/compact_unevictable_allowed");
    allowed.is_ok_and(|allowed| allowed.trim() != "0")
}

/// Bytes of stack that one recursive call of [`prefault_stack`] brings in.
const STACK_STEP: usize = 16 << 10;

/// Writes to `bytes` of the calling thread's stack below this call, so that later use causes no page fault.
/// Returns the number of faults of a second pass: 0 on success. More than the stack's size would end the
/// process: threads of onbeat have 2 MiB.
#[must_use]
pub fn prefault_stack(bytes: usize) -> u64 {
    touch(bytes);
    let before = Usage::of_thread().unwrap_or_default();
    touch(bytes);
    let faults = Usage::of_thread().unwrap_or_default().since(&before);
    faults.minor_faults + faults.major_faults
}

#[inline(never)]
fn touch(bytes: usize) {
    let mut frame = [0u8; STACK_STEP];
    std::hint::black_box(&mut frame);
    if bytes > STACK_STEP {
        touch(bytes - STACK_STEP);
    }
    // Used after the call, so that it is not a tail call on the same frame.
    std::hint::black_box(&mut frame);
}

/// Asks for huge pages for the whole ones within `memory` (`MADV_HUGEPAGE`). Call it before the first use.
///
/// # Errors
/// What the kernel reports; `EINVAL` if it was built without huge pages.
pub fn advise_huge_pages(memory: &mut [MaybeUninit<u8>]) -> io::Result<()> {
    let (start, length) = pages(memory);
    // SAFETY: the pages are within memory that is exclusively ours during the call, and their content does
    // not change.
    let result = unsafe { libc::madvise(start, length, libc::MADV_HUGEPAGE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Bytes of huge pages that this process has (`AnonHugePages`), to check the result.
#[must_use]
pub fn huge_bytes() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let kib = rollup
        .lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0) * 1024
}

/// Places the pages of `memory` on a node (`mbind(2)`), now and later. Call it before the first use.
///
/// # Errors
/// What the kernel reports.
pub fn place_on_node(memory: &mut [MaybeUninit<u8>], node: usize) -> io::Result<()> {
    const BIND: libc::c_int = 2;
    const MOVE: libc::c_int = 2;
    let mut mask = [0 as libc::c_ulong; 16];
    let bits = libc::c_ulong::BITS as usize;
    let Some(word) = mask.get_mut(node / bits) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no memory node {node}")));
    };
    *word |= 1 << (node % bits);
    let (start, length) = pages(memory);
    // SAFETY: the pages are within memory that is exclusively ours during the call, and their content does
    // not change; the mask has as many bits as the call is told.
    let result = unsafe {
        libc::syscall(libc::SYS_mbind, start, length, BIND, mask.as_ptr(), mask.len() * bits, MOVE)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Node of the first whole page of `memory`.
///
/// # Errors
/// What `get_mempolicy(2)` reports.
pub fn node_of(memory: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    const OF_ADDRESS: libc::c_int = 1 | 2;
    let mut node: libc::c_int = 0;
    let (start, _) = pages(memory);
    // SAFETY: the kernel writes one number to the first pointer, and only looks for the page of the other
    // one.
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            std::ptr::from_mut(&mut node),
            std::ptr::null::<u8>(),
            0,
            start,
            OF_ADDRESS,
        )
    };
    if result == 0 { Ok(usize::try_from(node).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}

/// Whole pages within `memory`.
fn pages(memory: &mut [MaybeUninit<u8>]) -> (*mut libc::c_void, usize) {
    let page = rustix::param::page_size();
    let skip = memory.as_ptr().addr().next_multiple_of(page) - memory.as_ptr().addr();
    let length = memory.len().saturating_sub(skip) / page * page;
    (memory.as_mut_ptr().wrapping_add(skip).cast(), length)
}

/// Memory nodes of the machine; empty if `/sys` does not say.
#[must_use]
pub fn nodes() -> Vec<usize> {
    let online = std::fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
    online.parse::<CoreSet>().map_or(Vec::new(), |nodes| nodes.iter().collect())
}

/// Memory node nearest to a core.
#[must_use]
pub fn node_of_core(core: usize) -> Option<usize> {
    nodes().into_iter().find(|node| {
        let cores = std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist"));
        cores.is_ok_and(|cores| cores.parse::<CoreSet>().is_ok_and(|cores| cores.contains(core)))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

    use super::*;

    #[test]
    fn a_stack_that_was_touched_has_no_faults() {
        let faults = crate::thread::spawn("stack", || prefault_stack(512 << 10)).unwrap().join().unwrap();
        assert_eq!(faults, 0);
    }

    #[test]
    fn fresh_memory_has_a_fault_for_each_page() {
        let faults = |pages: usize| {
            let page = rustix::param::page_size();
            let mut memory = FreshMemory::map(pages * page).unwrap();
            let before = Usage::of_thread().unwrap();
            memory.touch(0..pages * page);
            Usage::of_thread().unwrap().since(&before).minor_faults
        };
        assert!((64..80).contains(&faults(64)), "{}", faults(64));
        // Locking needs a right.
        if let Ok(_locked) = MemoryLock::take(true) {
            assert!((64..80).contains(&faults(64)), "locked: {}", faults(64));
        }
    }

    #[test]
    fn memory_lies_on_a_node() {
        let mut block = vec![MaybeUninit::new(0u8); 1 << 20];
        let Some(&node) = nodes().first() else { return eprintln!("skipped: the kernel has no nodes") };
        match place_on_node(&mut block, node).and_then(|()| node_of(&mut block)) {
            Ok(found) => assert_eq!(found, node),
            Err(error) => eprintln!("skipped: {error}"),
        }
        assert!(place_on_node(&mut block, 5000).is_err());
    }
}
