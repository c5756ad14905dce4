//! What watching a core costs it: per traced event, in interrupts of ours, and where nothing happens.
//!
//! ```console
//! $ sudo cargo run --release -p onbeat-noise --example cost -- CPU [RING_KIB]
//! ```
#![expect(clippy::disallowed_macros, reason = "a program that prints")]

use onbeat_noise::source::{Counters, Perf};
use onbeat_os::{CoreSet, clock, thread};
use std::error::Error;
use std::sync::{Arc, Barrier};

/// Two threads on one core that leave it to each other: nanoseconds of so many yields each.
fn yields_ns(cpu: usize, rounds: u64) -> Result<u64, Box<dyn Error>> {
    let begin = Arc::new(Barrier::new(2));
    let yields = |name| {
        let (core, begin) = (CoreSet::from_cores([cpu])?, Arc::clone(&begin));
        let body = move || {
            thread::set_cores(&core).expect("that core");
            begin.wait();
            let begin_ns = clock::monotonic_ns();
            (0..rounds).for_each(|_| std::thread::yield_now());
            clock::monotonic_ns() - begin_ns
        };
        Ok::<_, Box<dyn Error>>(thread::spawn(name, body)?)
    };
    let (one, other) = (yields("one")?, yields("other")?);
    Ok(one.join().expect("no panic").max(other.join().expect("no panic")))
}

/// The fastest that a busy loop looks at the clock: nanoseconds per look, the least of many short stretches.
fn look_ns(cpu: usize) -> Result<f64, Box<dyn Error>> {
    let core = CoreSet::from_cores([cpu])?;
    let looks = thread::spawn("looks", move || {
        thread::set_cores(&core).expect("that core");
        let stretch = || {
            let begin_ns = clock::monotonic_ns();
            let mut last_ns = begin_ns;
            for _ in 0..10_000 {
                last_ns = std::hint::black_box(clock::monotonic_ns());
            }
            last_ns - begin_ns
        };
        let mut all: Vec<u64> = (0..2_000).map(|_| stretch()).collect();
        all.sort_unstable();
        all[all.len() / 4] as f64 / 10_000.0
    })?;
    Ok(looks.join().expect("no panic"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let cpu: usize = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    let others = CoreSet::from_cores(thread::cores()?.iter().filter(|core| *core != cpu))?;
    if !others.is_empty() {
        thread::set_cores(&others)?;
    }
    const ROUNDS: u64 = 5_000;
    let mut perf =
        Perf::open(&[cpu], 4 << 20, 0).map_err(|refused| format!("{}; {}", refused.why, refused.fix))?;
    for round in 1..=5 {
        let look_bare_ns = look_ns(cpu)?;
        let (mut bare_ns, mut traced_ns, mut events) = (0, 0, 0);
        let before = Counters::read(cpu);
        // In turns, and in pieces that fit into the ring, which is read in between, from another core.
        for _ in 0..40 {
            bare_ns += yields_ns(cpu, ROUNDS)?;
            perf.enable()?;
            perf.drain(0, 0, &[]);
            let known = perf.core(0).total();
            traced_ns += yields_ns(cpu, ROUNDS)?;
            perf.drain(0, 0, &[]);
            perf.core_mut(0).forget_before(u64::MAX);
            events += perf.core(0).total() - known;
            perf.disable()?;
        }
        perf.enable()?;
        let look_traced_ns = look_ns(cpu)?;
        perf.disable()?;
        let after = Counters::read(cpu).since(&before);
        let switches = 40 * 2 * ROUNDS;
        println!(
            "round {round}: a switch {:.0} ns, traced {:.0} ns, {:.2} events each: {:+.0} ns per event; a look at the clock \
             {look_bare_ns:.2} ns, traced {look_traced_ns:.2} ns: {:+.2} %",
            bare_ns as f64 / switches as f64,
            traced_ns as f64 / switches as f64,
            events as f64 / switches as f64,
            (traced_ns as f64 - bare_ns as f64) / events as f64,
            100.0 * (look_traced_ns / look_bare_ns - 1.0)
        );
        let ours = |name: &str| after.interrupts.get(name).copied().unwrap_or(0);
        println!(
            "  interrupts meanwhile: IWI {} (irq_work, by which rings wake readers), lost {}",
            ours("IWI"),
            perf.core(0).lost()
        );
    }
    Ok(())
}
