//! Injects known noise, 300 µs every 5 ms by a FIFO thread, and reports how much of it is found.
//!
//! ```console
//! $ sudo cargo run --release -p onbeat-noise --example injected -- CPU SECONDS
//! ```
#![expect(clippy::disallowed_macros, reason = "a program that prints")]

use onbeat_noise::{Backend, CpuNoise, NoiseSettings, Observer, measure};
use onbeat_os::policy::PolicyFlags;
use onbeat_os::{CoreSet, Policy, clock, thread};
use onbeat_trace::Class;
use std::error::Error;
use std::sync::mpsc;

const BUSY_NS: u64 = 300_000;
const EVERY_NS: u64 = 5_000_000;

struct Nobody;

impl Observer<CpuNoise> for Nobody {
    fn at(&mut self, _: &dyn Fn() -> Vec<CpuNoise>, _: u64) {}
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Keeps the core busy periodically until the signal to end. Returns the start and end of each activation.
fn inject(cpu: usize, end: &mpsc::Receiver<()>) -> Vec<(u64, u64)> {
    thread::set_cores(&CoreSet::from_cores([cpu]).expect("a core")).expect("on that core");
    Policy::Fifo(50).set(PolicyFlags::default()).expect("the right to be FIFO");
    let mut all = Vec::new();
    let mut next_ns = clock::monotonic_ns() + EVERY_NS;
    while end.try_recv() == Err(mpsc::TryRecvError::Empty) {
        clock::sleep_until(next_ns);
        let begin_ns = clock::monotonic_ns();
        while clock::monotonic_ns() < begin_ns + BUSY_NS {}
        all.push((begin_ns, clock::monotonic_ns()));
        next_ns = (next_ns + EVERY_NS).max(clock::monotonic_ns());
    }
    all
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let cpu: usize = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let (stop, stopped) = mpsc::channel();
    let injector = thread::spawn("injector", move || inject(cpu, &stopped))?;
    let settings = NoiseSettings {
        cpus: Some(CoreSet::from_cores([cpu])?),
        duration_ns: Some(seconds * 1_000_000_000),
        samples: usize::MAX,
        backend: Backend::Auto,
        ..NoiseSettings::default()
    };
    let record = measure(&settings, &mut Nobody)?;
    let (begin_ns, end_ns) = (record.begin_ns, record.begin_ns + record.duration_ns);
    stop.send(())?;
    let all = injector.join().expect("no panic");
    // Only activations during the measurement count: a short time at its start and its end is left out.
    let inside: Vec<_> =
        all.iter().filter(|(from, to)| *from > begin_ns + 20_000_000 && *to < end_ns - 20_000_000).collect();
    let noise = &record.cpus[0];
    let mut found = Vec::new();
    let mut true_ns = 0;
    let (mut time_ns, mut rest_ns) = (0, 0);
    for (from, to) in &inside {
        let gap = noise.samples.iter().find(|v| v.gap.start_ns <= *from && v.gap.end_ns >= *to);
        let Some(verdict) = gap else { continue };
        let ns: u64 =
            verdict.interferences.iter().filter(|i| i.name == "injector").map(|i| i.duration_ns).sum();
        if ns > 0 {
            found.push(ns);
            true_ns += to - from;
            time_ns += verdict.gap.duration_ns();
            rest_ns += verdict.hardware_ns + verdict.unexplained_ns;
        }
    }
    let mean_ns = found.iter().sum::<u64>() / found.len().max(1) as u64;
    println!(
        "activations {}, found {} = {:.2} %",
        inside.len(),
        found.len(),
        100.0 * found.len() as f64 / inside.len() as f64
    );
    let own_ns = true_ns / found.len().max(1) as u64;
    println!("busy by its own clock for {own_ns} ns on average, including interruptions");
    println!(
        "mean under its name {mean_ns} ns, busy for {BUSY_NS} ns: {:+.2} %",
        100.0 * (mean_ns as f64 / BUSY_NS as f64 - 1.0)
    );
    println!(
        "gaps with it {time_ns} ns, hardware or unexplained there {rest_ns} ns = {:.2} %",
        100.0 * rest_ns as f64 / time_ns as f64
    );
    println!(
        "noise {} ns, sum of parts {} ns, lost {}, breaks {}",
        noise.noise_ns,
        noise.parts.sum_ns(),
        noise.events_lost,
        noise.breaks
    );
    println!("{:#?}", noise.parts);
    for cause in noise.causes.iter().take(12) {
        let class = if cause.class == Class::Thread { "thread" } else { "interrupt" };
        println!(
            "{class:10} {:24} {:6} times {:12} ns, most {:9} ns",
            cause.name, cause.count, cause.total_ns, cause.max_ns
        );
    }
    for note in &record.notes {
        println!("note: {note}");
    }
    Ok(())
}
