//! Ring of one core.

#![allow(clippy::disallowed_types, reason = "these words are shared with the kernel")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::attributes::{Attributes, TYPE_TRACEPOINT, flag, open, sample};

/// Ring of one core.
///
/// Its records have the header of `perf_event_open(2)`; a sample (type 9) then has `pid` and `tid` (u32
/// each), the time in nanoseconds on `CLOCK_MONOTONIC` (u64), the length of what follows (u32), and the bytes
/// of the tracepoint, which begin with its number (u16). A lost record (type 2) has an id and how many were
/// lost (u64 each).
#[derive(Debug)]
pub struct PerfRing {
    cpu: usize,
    /// The first event owns the ring, the others write to it.
    events: Vec<OwnedFd>,
    /// Numbers of the tracepoints.
    tracepoints: Vec<u64>,
    map: RingMap,
}

/// An opened ring.
#[derive(Debug)]
pub struct OpenRing {
    /// The ring, disabled.
    pub ring: PerfRing,
    /// Tracepoints that the kernel refuses, with the reason.
    pub refused: Vec<(u64, io::Error)>,
}

/// The kernel's page before the data, and the data.
#[derive(Debug)]
struct RingMap {
    base: NonNull<u8>,
    data_bytes: usize,
}

/// Offsets in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// Minimum size of a ring; a smaller one is useless.
const LEAST_BYTES: usize = 64 << 10;

// SAFETY: the memory belongs to the ring alone and does not depend on the thread; the kernel's side of it is
// only accessed through atomics.
unsafe impl Send for RingMap {}

impl PerfRing {
    /// Opens a ring on core `cpu` for the records of these tracepoints, of all threads. Its size is `bytes`,
    /// rounded up to a power of two, or less if the limit on locked memory requires it:
    /// [`bytes`](Self::bytes) returns the actual size.
    ///
    /// # Errors
    /// If the kernel refuses all tracepoints, the reason for the first; if it has no memory for the ring,
    /// that. `ENODEV` means that the core is offline.
    ///
    /// # Panics
    /// If `tracepoints` is empty.
    pub fn open(cpu: usize, tracepoints: &[u64], bytes: usize) -> io::Result<OpenRing> {
        let (mut events, mut refused): (Vec<OwnedFd>, Vec<(u64, io::Error)>) = (Vec::new(), Vec::new());
        let core = libc::c_int::try_from(cpu).unwrap_or(libc::c_int::MAX);
        let mut taken = Vec::new();
        for &id in tracepoints {
            match open(&sampled(id), -1, core) {
                Ok(event) => {
                    events.push(event);
                    taken.push(id);
                }
                Err(error) => refused.push((id, error)),
            }
        }
        let Some(first) = events.first() else {
            assert!(!refused.is_empty(), "a ring is for tracepoints");
            return Err(refused.swap_remove(0).1);
        };
        let map = RingMap::largest(first, bytes)?;
        for event in &events[1..] {
            control(event, SET_OUTPUT, first.as_raw_fd() as libc::c_ulong)?;
        }
        Ok(OpenRing { ring: PerfRing { cpu, events, tracepoints: taken, map }, refused })
    }

    /// The core.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Size of the ring in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.map.data_bytes
    }

    /// Limits a tracepoint to the records that pass a filter in the kernel's filter language: `prev_pid == 5
    /// || next_pid == 5`.
    ///
    /// # Errors
    /// `InvalidInput` for a filter with a zero byte, `NotFound` for a tracepoint that was refused, and what
    /// the kernel reports.
    pub fn filter(&self, tracepoint: u64, filter: &str) -> io::Result<()> {
        let filter =
            CString::new(filter).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let at = self.tracepoints.iter().position(|&known| known == tracepoint);
        let event = at.map(|at| &self.events[at]).ok_or(io::ErrorKind::NotFound)?;
        // SAFETY: the kernel copies the text at the pointer, which ends with a zero byte and lives as long as
        // the call.
        let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER as _, filter.as_ptr()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Starts writing records. This interrupts the core once per tracepoint.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn enable(&self) -> io::Result<()> {
        self.events.iter().try_for_each(|event| control(event, ENABLE, 0))
    }

    /// Stops writing records. This interrupts the core once per tracepoint.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn disable(&self) -> io::Result<()> {
        self.events.iter().try_for_each(|event| control(event, DISABLE, 0))
    }

    /// Appends all complete records to `into` and frees their room in the ring. Returns the number of bytes.
    pub fn drain(&mut self, into: &mut Vec<u8>) -> usize {
        self.map.drain(into)
    }
}

fn sampled(id: u64) -> Attributes {
    Attributes {
        kind: TYPE_TRACEPOINT,
        config: id,
        sample_period: 1,
        sample_type: sample::TID | sample::TIME | sample::RAW,
        flags: flag::DISABLED | flag::WATERMARK | flag::USE_CLOCKID,
        // The kernel reduces it to the size of the ring: a wake-up would interrupt the traced core.
        wakeup: u32::MAX,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

// _IO('$', 0), _IO('$', 1), _IO('$', 5), _IOW('$', 6, char *)
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_OUTPUT: libc::c_ulong = 0x2405;
const SET_FILTER: libc::c_ulong = 0x4000_2406 | (size_of::<usize>() as libc::c_ulong) << 16;

fn control(event: &OwnedFd, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these requests take a number and touch no memory of ours.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl RingMap {
    /// Maps the size asked for, or the largest that the kernel allows.
    fn largest(event: &OwnedFd, bytes: usize) -> io::Result<Self> {
        let mut bytes = bytes.clamp(LEAST_BYTES, 1 << 30).next_power_of_two();
        loop {
            match RingMap::new(event, bytes) {
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && bytes > LEAST_BYTES => bytes /= 2,
                other => return other,
            }
        }
    }

    fn new(event: &OwnedFd, data_bytes: usize) -> io::Result<Self> {
        let length = page_bytes() + data_bytes;
        // SAFETY: the kernel chooses the address, so no memory of ours is replaced; the descriptor is open.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).expect("a mapping is not at 0");
        Ok(RingMap { base, data_bytes })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offset is within the first page of the mapping.
        let word = unsafe { self.base.add(offset) };
        // SAFETY: it is 8-byte aligned (the page is, and both offsets are), lives as long as `self`, and the
        // kernel, the only other party, accesses it as whole words.
        unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }
    }

    fn drain(&mut self, into: &mut Vec<u8>) -> usize {
        // Pairs with the kernel's store of the head after it has written the records.
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let tail = self.word(DATA_TAIL).load(Ordering::Relaxed);
        // The kernel moves the head by whole records, and never further than the ring is long.
        let length = (head.wrapping_sub(tail) as usize).min(self.data_bytes);
        let begin = (tail as usize) & (self.data_bytes - 1);
        let first = length.min(self.data_bytes - begin);
        for (offset, part) in [(begin, first), (0, length - first)] {
            // SAFETY: offset and part are within the data, which begins one page after the base.
            let from = unsafe { self.base.add(page_bytes() + offset) };
            // SAFETY: the kernel does not write between tail and head, so these bytes are ours until the tail
            // moves.
            let bytes = unsafe { std::slice::from_raw_parts(from.as_ptr(), part) };
            into.extend_from_slice(bytes);
        }
        // Pairs with the kernel's load of the tail before it writes again: our reads are done.
        self.word(DATA_TAIL).store(tail.wrapping_add(length as u64), Ordering::Release);
        length
    }
}

impl Drop for RingMap {
    fn drop(&mut self) {
        // SAFETY: base and length are those of the mapping, and no reference into it is left.
        let result = unsafe { libc::munmap(self.base.as_ptr().cast(), page_bytes() + self.data_bytes) };
        debug_assert_eq!(result, 0, "a mapping of ours can be unmapped");
    }
}

fn page_bytes() -> usize {
    rustix::param::page_size()
}
