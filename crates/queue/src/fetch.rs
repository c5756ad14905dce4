//! Cache lines that are asked for before they are needed.

/// Bytes of a cache line.
const LINE: usize = 64;

/// A piece of memory, by where it lies. Nothing is ever read or written through it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryRange {
    address: usize,
    bytes: usize,
}

impl MemoryRange {
    /// Where this value lies.
    pub fn of<T: ?Sized>(value: &T) -> Self {
        MemoryRange { address: std::ptr::from_ref(value).addr(), bytes: size_of_val(value) }
    }

    /// So many bytes from there on.
    pub fn at<T>(begin: *const T, bytes: usize) -> Self {
        MemoryRange { address: begin.addr(), bytes }
    }

    /// At most so many bytes of it.
    pub fn at_most(self, bytes: usize) -> Self {
        MemoryRange { bytes: self.bytes.min(bytes), ..self }
    }

    /// Asks for its cache lines, to write there: they come all at once, while the caller goes on, and each makes the way from the core
    /// that had it once, not first to be read and then to be written. A hint: nothing goes by it, also where nothing lies there any more.
    #[inline(always)]
    pub fn fetch_to_write(self) {
        self.each_line(fetch_line_to_write);
    }

    /// Asks for its cache lines, to read there: who else has them keeps them.
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

/// Most bytes of one value that are asked for.
const MOST: usize = 256;

/// Asks for the cache lines of a value that was last written by another core and is about to be written by this one (256 bytes of it at
/// most): they come over while the caller goes on, instead of one after the other when it comes to them. A hint.
#[inline(always)]
pub fn fetch_to_write<V: ?Sized>(value: &V) {
    MemoryRange::of(value).at_most(MOST).fetch_to_write();
}

/// As [`fetch_to_write`], to read there: lines that this core has stay as they are, also where others have them.
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
    // Not by the intrinsic: that asks for the right to read where the compiler does not know better of the processor.
    // SAFETY: the instruction changes no register, no flag and no memory, and never faults, whatever the address is.
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
