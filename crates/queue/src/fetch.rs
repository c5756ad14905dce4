//! Prefetching of cache lines.

/// Bytes of a cache line.
const LINE: usize = 64;

/// A range of memory addresses. Nothing is read or written through it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryRange {
    address: usize,
    bytes: usize,
}

impl MemoryRange {
    /// Returns the range of this value.
    pub fn of<T: ?Sized>(value: &T) -> Self {
        MemoryRange { address: std::ptr::from_ref(value).addr(), bytes: size_of_val(value) }
    }

    /// Returns the `bytes` bytes from `begin` on.
    pub fn at<T>(begin: *const T, bytes: usize) -> Self {
        MemoryRange { address: begin.addr(), bytes }
    }

    /// Returns the first `bytes` bytes of the range.
    pub fn at_most(self, bytes: usize) -> Self {
        MemoryRange { bytes: self.bytes.min(bytes), ..self }
    }

    /// Prefetches the cache lines for writing. They arrive together while the caller goes on, and each comes
    /// from the other core once: writable at once, instead of first readable. A hint: it is valid for any
    /// address, also of freed memory.
    #[inline(always)]
    pub fn fetch_to_write(self) {
        self.each_line(fetch_line_to_write);
    }

    /// Prefetches the cache lines for reading. Other cores keep their copies.
    #[inline(always)]
    pub fn fetch_to_read(self) {
        self.each_line(fetch_line_to_read);
    }

    #[inline(always)]
    fn each_line(self, act: impl Fn(usize)) {
        let end = self.address + self.bytes;
        let mut line = if self.bytes == 0 { end } else { self.address & !(LINE - 1) };
        while line < end {
            act(line);
            line += LINE;
        }
    }
}

/// Most bytes of one value that are prefetched.
const MOST: usize = 256;

/// Prefetches the cache lines of a value that another core wrote last and this core writes next (256 bytes at
/// most). The lines arrive together while the caller goes on, instead of one after the other on first use. A
/// hint.
#[inline(always)]
pub fn fetch_to_write<V: ?Sized>(value: &V) {
    MemoryRange::of(value).at_most(MOST).fetch_to_write();
}

/// As [`fetch_to_write`], for reading: lines that this core has stay as they are, also when other cores have
/// them.
#[inline(always)]
pub fn fetch_to_read<V: ?Sized>(value: &V) {
    MemoryRange::of(value).at_most(MOST).fetch_to_read();
}

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
#[inline(always)]
fn fetch_line_to_read(address: usize) {
    // SAFETY: as below.
    unsafe {
        std::arch::asm!("prefetcht0 [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
}

#[cfg(all(target_arch = "aarch64", not(miri), not(loom)))]
#[inline(always)]
fn fetch_line_to_read(address: usize) {
    // SAFETY: as below.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri), not(loom))))]
fn fetch_line_to_read(_: usize) {}

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
#[inline(always)]
fn fetch_line_to_write(address: usize) {
    // Not the intrinsic: without knowledge of the processor the compiler turns it into a prefetch for
    // reading.
    // SAFETY: the instruction changes no register, flag or memory, and never faults, whatever the address.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
}

#[cfg(all(target_arch = "aarch64", not(miri), not(loom)))]
#[inline(always)]
fn fetch_line_to_write(address: usize) {
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri), not(loom))))]
fn fetch_line_to_write(_: usize) {}
