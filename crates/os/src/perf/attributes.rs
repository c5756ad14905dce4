//! `struct perf_event_attr` and the call that takes it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Fields of `struct perf_event_attr` up to its third version, the first one with a choice of the clock; the
/// kernel takes the rest as zero.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes {
    pub kind: u32,
    pub size: u32,
    pub config: u64,
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup: u32,
    pub bp_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clockid: i32,
}

pub(crate) const TYPE_TRACEPOINT: u32 = 2;

/// Bits of [`Attributes::sample_type`].
pub(crate) mod sample {
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const RAW: u64 = 1 << 10;
}

/// Bits of [`Attributes::flags`].
pub(crate) mod flag {
    pub const DISABLED: u64 = 1;
    /// Also count the threads that are started later.
    pub const INHERIT: u64 = 1 << 1;
    /// `wakeup` is a number of bytes.
    pub const WATERMARK: u64 = 1 << 14;
    pub const USE_CLOCKID: u64 = 1 << 25;
}

/// `PERF_FLAG_FD_CLOEXEC`
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Calls `perf_event_open(2)` without a group. A `pid` of 0 is the calling thread and -1 all threads; a `cpu`
/// of -1 is all cores.
pub(crate) fn open(attributes: &Attributes, pid: libc::pid_t, cpu: libc::c_int) -> io::Result<OwnedFd> {
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..*attributes };
    let no_group: libc::c_int = -1;
    // SAFETY: the kernel reads `size` bytes from the pointer, which is all of `attributes`, and keeps no
    // pointer to it; all other arguments are numbers.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, pid, cpu, no_group, CLOSE_ON_EXEC)
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, so no other code uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
}
