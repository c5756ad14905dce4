//! The kernel's last events as files.

use crate::arguments::noise::SessionArguments;
use crate::failure::Failure;
use crate::output;
use onbeat::trace::replace::replace;
use onbeat::trace::{Class, KernelEvent};
use onbeat_noise::{NoiseRecord, Verdict, text};
use onbeat_report::perfetto::{Slice, trace};
use std::collections::BTreeSet;
use std::path::Path;

/// Before minutes are spent on measuring.
pub fn check(session: &SessionArguments, usual: &str) -> Result<(), Failure> {
    let files = [("--trace", session.trace_path(usual)), ("--perfetto", session.perfetto.clone())];
    for (flag, path) in files {
        if let Some(path) = path {
            output::can_be_written(&path).map_err(|error| cannot(flag, &path, &error))?;
        }
    }
    Ok(())
}

fn cannot(flag: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{flag} {}: cannot be written: {error}", path.display()))
        .help("name a file in a folder of yours")
}

/// Writes those that were asked for, and says where they are.
pub fn write(
    session: &SessionArguments,
    usual: &str,
    events: &[KernelEvent],
    record: Option<&NoiseRecord>,
) -> Result<(), Failure> {
    if let Some(path) = session.trace_path(usual) {
        write_lines(session, "--trace", &path, events, record)?;
    }
    if let Some(path) = &session.perfetto {
        replace(path, perfetto(events, record).as_bytes())
            .map_err(|error| cannot("--perfetto", path, &error))?;
        tell(session, events.len(), path);
    }
    Ok(())
}

pub fn write_lines(
    session: &SessionArguments,
    flag: &str,
    path: &Path,
    events: &[KernelEvent],
    record: Option<&NoiseRecord>,
) -> Result<(), Failure> {
    replace(path, text::lines(events, record).as_bytes()).map_err(|error| cannot(flag, path, &error))?;
    tell(session, events.len(), path);
    Ok(())
}

fn tell(session: &SessionArguments, events: usize, path: &Path) {
    if !session.quiet {
        output::to_stderr(&format!("{events} events in {}\n", path.display()));
    }
}

/// Tracks of a core, from the one that interrupts least.
const TRACKS: [&str; 5] = ["gaps", "threads", "softirqs", "interrupts", "NMIs"];

fn perfetto(events: &[KernelEvent], record: Option<&NoiseRecord>) -> String {
    let cpus: BTreeSet<u32> = events.iter().map(|event| event.cpu).collect();
    let groups: Vec<(u32, String)> = cpus.into_iter().map(|cpu| (cpu, format!("CPU {cpu}"))).collect();
    let tracks: Vec<(u32, String)> = (0..).zip(TRACKS.map(str::to_owned)).collect();
    let mut slices: Vec<Slice> = events.iter().map(slice).collect();
    let samples = record.iter().flat_map(|record| &record.cpus).flat_map(|cpu| &cpu.samples);
    slices.extend(samples.map(gap));
    trace(&groups, &tracks, &slices)
}

fn slice(event: &KernelEvent) -> Slice {
    let track = match event.class {
        Class::Thread | Class::Wakeup | Class::Migration | Class::PageFault => 1,
        Class::Softirq => 2,
        Class::Irq => 3,
        Class::Nmi | Class::Hardware => 4,
    };
    Slice {
        group: event.cpu,
        track,
        name: event.name.clone(),
        start_ns: event.start_ns,
        duration_ns: event.duration_ns,
        details: serde_json::json!({"pid": event.pid, "priority": event.priority}),
    }
}

fn gap(verdict: &Verdict) -> Slice {
    Slice {
        group: verdict.gap.cpu,
        track: 0,
        name: "gap".to_owned(),
        start_ns: verdict.gap.start_ns,
        duration_ns: verdict.gap.duration_ns(),
        details: serde_json::json!({
            "interferences": verdict.interferences.len(),
            "hardware_ns": verdict.hardware_ns,
            "unexplained_ns": verdict.unexplained_ns,
        }),
    }
}
