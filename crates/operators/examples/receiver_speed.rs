//! Measures the FM receiver of `examples/fm_receiver.toml` as a whole: its speed as a multiple of real time,
//! and nanoseconds per sample of the recording, by operator.
//!
//! `cargo run --release -p onbeat-operators --example receiver_speed`
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use onbeat_operators::recording::{RATE_HZ, SAMPLES};
use onbeat_operators::registry;
use onbeat_runtime::{Overrides, Pipeline};
use onbeat_trace::Record;

/// Number of passes per run, and number of runs. The best run counts, because other programs can only add
/// time.
const REPEAT: usize = 20;
const RUNS: usize = 7;

fn run() -> Result<Record, Box<dyn std::error::Error>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fm_receiver.toml");
    let folder = std::env::temp_dir().join(format!("receiver-speed-{}", std::process::id()));
    let mut overrides = Overrides::default();
    overrides.set(format!("output='{}'", folder.display()));
    overrides.set("pace=fast");
    overrides.set(format!("iq.repeat={REPEAT}"));
    let record = Pipeline::read(file, &registry(), &overrides)?.start()?.wait();
    std::fs::remove_dir_all(folder)?;
    Ok(record?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let samples = (REPEAT * SAMPLES) as f64;
    let mut best = run()?;
    for _ in 1..RUNS {
        let record = run()?;
        if record.result.duration_ns < best.result.duration_ns {
            best = record;
        }
    }
    println!("{:<12} {:>8} {:>14}", "operator", "steps", "ns/sample");
    for operator in &best.operators {
        println!("{:<12} {:>8} {:>14.2}", operator.name, operator.steps, operator.busy_ns as f64 / samples);
    }
    let ns = best.result.duration_ns as f64;
    println!("{:<12} {:>8} {:>14.2}", "in all", "", ns / samples);
    println!("{:.0} times real time", samples / RATE_HZ * 1e9 / ns);
    Ok(())
}
