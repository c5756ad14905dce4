//! Cost of tracing for the traced core: per event, in interrupts of this program, and without any event.
//!
//! ```console
//! $ sudo cargo run --release -p onbeat-noise --example cost -- CPU
//! ```
//!
//! Bare and traced stretches take turns, and medians are compared: of single switches between two threads
//! (one event each), and of single gaps that an interrupt from another core leaves (two events each, begin
//! and end).
#![expect(clippy::disallowed_macros, reason = "a program that prints")]

use onbeat_noise::source::{CoreCounters, RingShape, SourceRefusal, Tracepoints};
use onbeat_os::{CoreSet, clock, thread};
use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use rustix::thread::{MembarrierCommand, membarrier};
use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Barrier};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Number of stretches of each kind, bare and traced.
const TURNS: usize = 20;

fn on(cpu: usize) -> Result<impl Fn() + Send + 'static> {
    let core = CoreSet::from_cores([cpu])?;
    Ok(move || {
        thread::set_cores(&core).expect("that core");
        // So that no normal thread interferes.
        let _refused = "f:10"
            .parse::<onbeat_os::Policy>()
            .expect("a policy")
            .set(onbeat_os::policy::PolicyFlags::default());
    })
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

/// Median cost of a switch between two threads that hand one core to each other, in nanoseconds.
fn switch_ns(cpu: usize) -> Result<u64> {
    const YIELDS: usize = 2_000;
    let begin = Arc::new(Barrier::new(2));
    let yields = |name| {
        let (place, begin) = (on(cpu)?, Arc::clone(&begin));
        let body = move || {
            place();
            begin.wait();
            let mut last_ns = clock::monotonic_ns();
            let one = |_| {
                std::thread::yield_now();
                let now_ns = clock::monotonic_ns();
                now_ns - std::mem::replace(&mut last_ns, now_ns)
            };
            (0..YIELDS).map(one).collect::<Vec<u64>>()
        };
        Ok::<_, Box<dyn Error>>(thread::spawn(name, body)?)
    };
    let (one, other) = (yields("one")?, yields("other")?);
    other.join().expect("no panic");
    Ok(median(one.join().expect("no panic")) / 2)
}

/// Median gap, in nanoseconds, of a thread that reads the clock while another core interrupts it.
fn interrupt_ns(cpu: usize) -> Result<u64> {
    const LENGTH_NS: u64 = 30_000_000;
    const EVERY_NS: u64 = 25_000;
    let is_over = Arc::new(AtomicBool::new(false));
    let (place, over) = (on(cpu)?, Arc::clone(&is_over));
    let looks = thread::spawn("looks", move || {
        place();
        let (begin_ns, mut gaps) = (clock::monotonic_ns(), Vec::with_capacity(10_000));
        let mut last_ns = begin_ns;
        while last_ns < begin_ns + LENGTH_NS {
            let now_ns = clock::monotonic_ns();
            if now_ns - last_ns > 500 {
                gaps.push(now_ns - last_ns);
            }
            last_ns = now_ns;
        }
        over.store(true, Ordering::Relaxed);
        gaps
    })?;
    while !is_over.load(Ordering::Relaxed) {
        membarrier(MembarrierCommand::PrivateExpedited)?;
        let begin_ns = clock::monotonic_ns();
        while clock::monotonic_ns() < begin_ns + EVERY_NS {}
    }
    Ok(median(looks.join().expect("no panic")))
}

/// Cost of a clock read in nanoseconds: the fastest quarter of many short stretches.
fn look_ns(cpu: usize) -> Result<f64> {
    let place = on(cpu)?;
    let looks = thread::spawn("looks", move || {
        place();
        let stretch = |_| {
            let begin_ns = clock::monotonic_ns();
            (0..10_000).for_each(|_| _ = black_box(clock::monotonic_ns()));
            clock::monotonic_ns() - begin_ns
        };
        let mut all: Vec<u64> = (0..1_000).map(stretch).collect();
        all.sort_unstable();
        all[all.len() / 4] as f64 / 10_000.0
    })?;
    Ok(looks.join().expect("no panic"))
}

type Open = dyn Fn() -> std::result::Result<Tracepoints, SourceRefusal>;

/// Bare and traced in turns: the median of all bare ones, the median of all differences. Bare is without any
/// ring: one that is switched off has a price, too.
fn turns(open: &Open, measure: impl Fn() -> Result<u64>) -> Result<(u64, i64)> {
    let (mut bare, mut more) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let bare_ns = measure()?;
        let mut tracepoints = open().map_err(|refused| format!("{}; {}", refused.why, refused.fix))?;
        tracepoints.enable()?;
        let traced_ns = measure()?;
        tracepoints.disable()?;
        tracepoints.drain(0, 0, &[]);
        if tracepoints.core(0).lost() > 0 {
            return Err(format!("{} records were lost", tracepoints.core(0).lost()).into());
        }
        bare.push(bare_ns);
        more.push(traced_ns as i64 - bare_ns as i64);
    }
    more.sort_unstable();
    Ok((median(bare), more[TURNS / 2]))
}

fn measured(name: &str, cpu: usize, open: &Open) -> Result<()> {
    if let Err(refused) = open() {
        println!("{name:7} {}; {}", refused.why, refused.fix);
        return Ok(());
    }
    let (switch_ns, switch_more_ns) = turns(open, || switch_ns(cpu))?;
    let (gap_ns, gap_more_ns) = turns(open, || interrupt_ns(cpu))?;
    let bare_ns = look_ns(cpu)?;
    let tracepoints = open().map_err(|refused| refused.why)?;
    tracepoints.enable()?;
    let before = CoreCounters::read(cpu);
    let traced_ns = look_ns(cpu)?;
    let after = CoreCounters::read(cpu).since(&before);
    println!(
        "{name:7} a switch {switch_ns} ns, {switch_more_ns:+} ns for its event; an interrupt {gap_ns} ns, {gap_more_ns:+} ns for its \
         two, {:+} ns each; a look at the clock {bare_ns:.2} ns, {:+.2} %, and meanwhile {} interrupts by irq_work",
        gap_more_ns / 2,
        100.0 * (traced_ns / bare_ns - 1.0),
        after.interrupts.get("IWI").copied().unwrap_or(0)
    );
    Ok(())
}

fn main() -> Result<()> {
    let cpu: usize = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    let others = CoreSet::from_cores(thread::cores()?.iter().filter(|core| *core != cpu))?;
    if others.is_empty() {
        return Err("it takes two CPUs: one to trace, and one to interrupt it".into());
    }
    thread::set_cores(&others)?;
    membarrier(MembarrierCommand::RegisterPrivateExpedited)?;
    for round in 1..=5 {
        println!("round {round}");
        measured("ftrace", cpu, &move || Tracepoints::ftrace(&[cpu], RingShape::default()))?;
        measured("perf", cpu, &move || Tracepoints::perf(&[cpu], RingShape::default()))?;
    }
    Ok(())
}
