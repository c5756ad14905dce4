//! The fast clock against the kernel's.
//!
//! `ONBEAT_CLOCK_SECONDS` says for how long to compare them; 3 unless set.

#![allow(clippy::disallowed_macros, reason = "reports what it measured, or why it was skipped")]
#![allow(clippy::disallowed_types, reason = "the threads meet on one atomic word")]

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use onbeat_os::clock::{monotonic_ns, sleep_until};
use onbeat_os::thread;
use onbeat_os::tsc::{BOUND_NS, Clock, ClockSource};

const NS_PER_MS: u64 = 1_000_000;

/// A clock that reads the counter, or the reason that there is none.
fn tsc_clock() -> Result<Clock, &'static str> {
    let clock = Clock::new();
    match clock.source() {
        ClockSource::Tsc => Ok(clock),
        ClockSource::Kernel => Err("the kernel's time is not made from the time stamp counter here"),
    }
}

fn watched_ns() -> u64 {
    let seconds = std::env::var("ONBEAT_CLOCK_SECONDS").unwrap_or_else(|_| "3".to_owned());
    let seconds: u64 = seconds
        .parse()
        .unwrap_or_else(|_| panic!("ONBEAT_CLOCK_SECONDS={seconds:?} is not a whole number of seconds"));
    seconds * 1_000 * NS_PER_MS
}

#[derive(Default)]
struct Seen {
    reads: u64,
    pauses: u64,
    /// Nanoseconds outside of the two readings of the kernel around ours.
    outside_ns: u64,
    /// Nanoseconds from the middle of those two, where they were close together.
    from_the_middle_ns: u64,
}

impl Seen {
    /// Reads the kernel, ours, the kernel.
    fn compare(&mut self, clock: &Clock, last_ns: &mut u64) {
        let before_ns = monotonic_ns();
        let ours_ns = clock.now_ns();
        let after_ns = monotonic_ns();
        assert!(ours_ns >= *last_ns, "went back from {last_ns} to {ours_ns}");
        *last_ns = ours_ns;

        let outside_ns = before_ns.saturating_sub(ours_ns).max(ours_ns.saturating_sub(after_ns));
        assert!(
            outside_ns <= BOUND_NS,
            "{ours_ns} ns is {outside_ns} ns outside of {before_ns} to {after_ns}; {BOUND_NS} are allowed"
        );
        self.reads += 1;
        self.outside_ns = self.outside_ns.max(outside_ns);
        if after_ns - before_ns <= 200 {
            let middle_ns = before_ns.midpoint(after_ns);
            self.from_the_middle_ns = self.from_the_middle_ns.max(ours_ns.abs_diff(middle_ns));
        }
    }
}

#[test]
fn it_stays_within_its_bound_of_the_kernels() {
    let clock = match tsc_clock() {
        Ok(clock) => clock,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let mut seen = Seen::default();
    let mut last_ns = 0;
    let end_ns = monotonic_ns() + watched_ns();
    // Runs of reading, with pauses shorter and longer than the life of an anchor between them; the last
    // is longer than what a rate is taken from.
    for pause_ms in [1, 5, 0, 30, 3, 1_100].into_iter().cycle() {
        let run_end_ns = monotonic_ns() + 100 * NS_PER_MS;
        while last_ns < run_end_ns {
            seen.compare(&clock, &mut last_ns);
        }
        if last_ns >= end_ns {
            break;
        }
        sleep_until(monotonic_ns() + pause_ms * NS_PER_MS);
        seen.pauses += 1;
        // The first read after a pause, and some that use the new anchor.
        for _ in 0..1_000 {
            seen.compare(&clock, &mut last_ns);
        }
    }
    assert_eq!(clock.source(), ClockSource::Tsc);
    let Seen { reads, pauses, outside_ns, from_the_middle_ns } = seen;
    eprintln!(
        "{reads} reads, {pauses} pauses: at most {outside_ns} ns outside of the kernel's readings around it, \
         {from_the_middle_ns} ns from the middle of close ones; the bound is {BOUND_NS} ns"
    );
    eprintln!("{:.1} ns per read", cost_ns(|| clock.now_ns()));
    eprintln!("{:.1} ns per read of the kernel's", cost_ns(monotonic_ns));
}

fn cost_ns(read: impl Fn() -> u64) -> f64 {
    const READS: u32 = 1_000_000;
    let start_ns = monotonic_ns();
    for _ in 0..READS {
        std::hint::black_box(read());
    }
    (monotonic_ns() - start_ns) as f64 / f64::from(READS)
}

#[test]
fn clocks_of_two_threads_agree() {
    const ROUNDS: u64 = 20_000;
    if let Err(why) = tsc_clock() {
        return eprintln!("skipped: {why}");
    }
    // The last reading of the other thread: the helper answers even ones.
    let word = Arc::new(AtomicU64::new(0));
    let helper = {
        let word = Arc::clone(&word);
        thread::spawn("other-clock", move || answer(&word, 1, ROUNDS)).unwrap()
    };
    let behind_ns = answer(&word, 0, ROUNDS).max(helper.join().unwrap());
    eprintln!("at most {behind_ns} ns behind a reading passed by the other thread");
    assert!(behind_ns <= 2 * BOUND_NS);
}

/// Waits until it is the turn of `parity`, reads an own clock and passes the reading on, `rounds` times.
/// Gives how far an own reading was behind the one that it answered.
fn answer(word: &AtomicU64, parity: u64, rounds: u64) -> u64 {
    let clock = Clock::new();
    let mut behind_ns = 0;
    for _ in 0..rounds {
        // The lowest bit says whose turn it is.
        let mut waits = 0_u32;
        let theirs = loop {
            let word = word.load(Acquire);
            if word & 1 == parity {
                break word >> 1;
            }
            waits += 1;
            // Both threads may share one core.
            if waits.is_multiple_of(1_000) { std::thread::yield_now() } else { std::hint::spin_loop() }
        };
        let ours = clock.now_ns();
        behind_ns = behind_ns.max(theirs.saturating_sub(ours));
        word.store(ours << 1 | (1 - parity), Release);
    }
    behind_ns
}

#[test]
fn a_clock_may_change_threads() {
    let clock = Clock::new();
    let before_ns = clock.now_ns();
    let helper = thread::spawn("new-owner", move || clock.now_ns()).unwrap();
    assert!(helper.join().unwrap() >= before_ns);
}

#[test]
fn the_kernels_clock_is_the_kernels() {
    let clock = Clock::kernel();
    assert_eq!(clock.source(), ClockSource::Kernel);
    for _ in 0..10_000 {
        let before_ns = monotonic_ns();
        let ours_ns = clock.now_ns();
        assert!((before_ns..=monotonic_ns()).contains(&ours_ns));
    }
}

#[test]
fn sources_have_names() {
    assert_eq!(ClockSource::Tsc.to_string(), "tsc");
    assert_eq!(ClockSource::Kernel.to_string(), "clock_gettime");
}
