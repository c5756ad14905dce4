//! The clocks of the kernel, in nanoseconds.
//!
//! Reads go through the vDSO if the kernel offers it: no system call for the monotonic and the real time, one
//! for the CPU times. Source: `clock_gettime(2)`, `clock_nanosleep(2)`.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;

/// Time on `CLOCK_MONOTONIC` in nanoseconds: since boot, without suspend, never backwards.
#[must_use]
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// CPU time of the calling thread so far, in nanoseconds, user and kernel.
///
/// A system call, 0.1 to 1 µs: for summaries, not for every step.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process so far, in nanoseconds.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

/// Time of day in nanoseconds since 1970-01-01 00:00 UTC. It jumps when the clock is set, so use it to name a
/// time, not to measure.
///
/// A time of day before 1970 reads as 0.
#[must_use]
pub fn realtime_unix_ns() -> u64 {
    read_ns(ClockId::Realtime)
}

/// Sleeps until `CLOCK_MONOTONIC` reads `deadline_ns` or later.
///
/// Returns at once if the deadline has passed. The deadline is absolute: a signal interrupts the sleep but
/// does not lengthen it. How late the thread runs afterwards depends on the timer slack (50 µs unless set
/// otherwise, none for a real-time policy) and on the threads that have the core.
///
/// # Panics
///
/// If the kernel refuses `clock_nanosleep`. It has no documented reason to for this clock, but a seccomp
/// filter may. Going on without sleeping would turn a periodic thread into a busy one.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &deadline) {
            Ok(()) => return,
            Err(Errno::INTR) => {}
            Err(errno) => panic!("clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME) failed: {errno}"),
        }
    }
}

/// Converts nanoseconds to the kernel's format. Exact for every `u64`; the kernel clamps values beyond its
/// range of 292 years.
pub(crate) fn timespec(ns: u64) -> Timespec {
    let seconds = (ns / NS_PER_S).try_into().expect("2^64 ns are fewer than 2^35 seconds");
    let nanoseconds = (ns % NS_PER_S).try_into().expect("below 10^9");
    Timespec { tv_sec: seconds, tv_nsec: nanoseconds }
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    // The kernel keeps tv_nsec in 0..10^9.
    seconds * NS_PER_S + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_never_runs_backwards() {
        let mut last_ns = monotonic_ns();
        for _ in 0..10_000 {
            let now_ns = monotonic_ns();
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
        }
    }

    #[test]
    fn a_sleep_ends_after_its_deadline() {
        let deadline_ns = monotonic_ns() + 3_000_000;
        sleep_until(deadline_ns);
        assert!(monotonic_ns() >= deadline_ns);
    }

    #[test]
    fn a_deadline_in_the_past_returns() {
        sleep_until(0);
        sleep_until(monotonic_ns().saturating_sub(1));
    }

    #[test]
    fn work_costs_cpu_time_of_thread_and_process() {
        // The process is read first and last, so that its time includes the thread's.
        let process_ns = process_cpu_ns();
        let thread_ns = thread_cpu_ns();
        let mut x = 1_u64;
        while thread_cpu_ns() - thread_ns < 1_000_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(process_cpu_ns() - process_ns >= 1_000_000);
    }

    #[test]
    fn the_time_of_day_is_after_2020() {
        assert!(realtime_unix_ns() > 1_577_836_800 * NS_PER_S);
    }

    #[test]
    fn every_u64_has_a_timespec() {
        for (ns, s, rest) in
            [(0, 0, 0), (1_999_999_999, 1, 999_999_999), (u64::MAX, 18_446_744_073, 709_551_615)]
        {
            let time = timespec(ns);
            assert_eq!((time.tv_sec, time.tv_nsec), (s, rest));
        }
    }
}
