//! The time stamp counter of x86-64, and whether the kernel's time is derived from it.

/// Reads the counter, in any order with respect to the instructions around it.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(super) fn read() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it accesses no memory. A process that has
    // disabled it for itself (PR_SET_TSC) has disabled the vDSO's clock_gettime as well.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Reads the counter after all earlier instructions have completed, and before any later one begins.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) fn read_in_order() -> u64 {
    fence();
    let ticks = read();
    fence();
    ticks
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn fence() {
    // SAFETY: `lfence` is part of SSE2, which every x86-64 processor has.
    unsafe { core::arch::x86_64::_mm_lfence() }
}

/// Whether the kernel derives `CLOCK_MONOTONIC` from this counter.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) fn makes_the_kernels_time() -> bool {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(CURRENT).is_ok_and(|name| name.trim_end() == "tsc")
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) use absent::{makes_the_kernels_time, read, read_in_order};

/// Machines without such a counter. Nothing reads it, because no clock has it as its source.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod absent {
    pub(in super::super) fn read() -> u64 {
        0
    }

    pub(in super::super) fn read_in_order() -> u64 {
        0
    }

    pub(in super::super) fn makes_the_kernels_time() -> bool {
        false
    }
}
