//! What a read of each clock costs: `cargo run --release -p onbeat-os --example clock_cost`.

#![allow(clippy::disallowed_macros, reason = "an example prints")]

use std::hint::black_box;

use onbeat_os::clock::{monotonic_ns, sleep_until};
use onbeat_os::tsc::Clock;

const READS: u32 = 10_000_000;
const ROUNDS: usize = 5;
const RENEWALS: usize = 101;

fn main() {
    let start_ns = monotonic_ns();
    let (ours, kernel) = (Clock::new(), Clock::kernel());
    println!("source {}, made in {:.1} ms", ours.source(), (monotonic_ns() - start_ns) as f64 / 1e6);

    println!("{:<28} {:>6.1} ns", "Clock::new()", cost_ns(|| ours.now_ns()));
    println!("{:<28} {:>6.1} ns", "Clock::kernel()", cost_ns(|| kernel.now_ns()));
    println!("{:<28} {:>6.1} ns", "clock_gettime", cost_ns(monotonic_ns));
    println!("{:<28} {:>6} ns", "Clock::new(), a new anchor", renewal_ns(&ours));
}

/// The fastest of a few rounds: the rest is what the machine did besides.
fn cost_ns(read: impl Fn() -> u64) -> f64 {
    let round = |_| {
        let start_ns = monotonic_ns();
        for _ in 0..READS {
            black_box(read());
        }
        (monotonic_ns() - start_ns) as f64 / f64::from(READS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// The median of the first read after a pause longer than an anchor's life, the kernel's read included.
fn renewal_ns(clock: &Clock) -> u64 {
    let mut costs_ns: Vec<u64> = (0..RENEWALS)
        .map(|_| {
            sleep_until(monotonic_ns() + 5_000_000);
            let start_ns = monotonic_ns();
            black_box(clock.now_ns());
            monotonic_ns() - start_ns
        })
        .collect();
    costs_ns.sort_unstable();
    costs_ns[RENEWALS / 2]
}
