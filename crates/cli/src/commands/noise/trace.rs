//! Files with the latest kernel events.

use crate::arguments::noise::SessionArguments;
use crate::error::CommandError;
use crate::{output, stderr};
use onbeat::trace::replace::replace;
use onbeat::trace::{Class, KernelEvent};
use onbeat_noise::extra::{EventCounts, EventRequest, Extra, TraceClock};
use onbeat_noise::{Backend, GapVerdict, NoiseRecord, NoiseSettings, place, text};
use onbeat_report::perfetto::{TraceSlice, trace};
use std::collections::BTreeSet;
use std::path::Path;

/// Checks the paths before a long measurement.
pub fn check(session: &SessionArguments, usual: &str) -> Result<(), CommandError> {
    let files = [("--trace", session.trace_path(usual)), ("--perfetto", session.perfetto.clone())];
    for (flag, path) in files {
        if let Some(path) = path {
            output::can_be_written(&path).map_err(|error| cannot(flag, &path, &error))?;
        }
    }
    Ok(())
}

fn cannot(flag: &str, path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::new(format!("{flag} {}: cannot be written: {error}", path.display()))
        .help("name a file in a writable folder")
}

/// Data of a trace.
pub struct Traced<'t> {
    pub session: &'t SessionArguments,
    /// Name of the command, part of the default file name.
    pub usual: &'t str,
    pub events: &'t [KernelEvent],
    pub record: Option<&'t NoiseRecord>,
    /// Lines of the kernel's tracer, which replace our own lines for the same events.
    pub lines: &'t [(u64, String)],
    /// Lines of additional events.
    pub more: &'t [(u64, String)],
}

impl Traced<'_> {
    /// Writes the requested files, and prints their paths.
    pub fn write(&self) -> Result<(), CommandError> {
        if let Some(path) = self.session.trace_path(self.usual) {
            self.write_lines("--trace", &path)?;
        }
        if let Some(path) = &self.session.perfetto {
            replace(path, perfetto(self.events, self.record).as_bytes())
                .map_err(|error| cannot("--perfetto", path, &error))?;
            self.report(self.events.len(), path);
        }
        Ok(())
    }

    pub fn write_lines(&self, flag: &str, path: &Path) -> Result<(), CommandError> {
        let text = if self.lines.is_empty() {
            text::lines(self.events, self.record, self.more)
        } else {
            text::lines(&[], None, &[self.lines, self.more].concat())
        };
        replace(path, text.as_bytes()).map_err(|error| cannot(flag, path, &error))?;
        self.report(text.lines().count(), path);
        Ok(())
    }

    fn report(&self, events: usize, path: &Path) {
        if !self.session.quiet {
            stderr::to_stderr(&format!("{events} events written to {}\n", path.display()));
        }
    }
}

/// Starts to record additional events, if any were requested.
pub fn extra(session: &SessionArguments) -> Result<Option<Extra>, CommandError> {
    let asked = &session.extra.events;
    if asked.is_empty() {
        return Ok(None);
    }
    let counts =
        |event: &EventRequest| event.trigger.as_ref().is_some_and(|trigger| trigger.starts_with("hist:"));
    if !session.has_trace() && !asked.iter().any(counts) {
        return Err(CommandError::new("-e: these events would not be shown")
            .help("also write a trace: -t, --trace=FILE or --on-threshold trace"));
    }
    let cpus = place::cpus(session.cpus.as_ref()).map_err(|error| CommandError::new(error.to_string()))?;
    let is_tracer = session.backend.backend() == Backend::Tracer;
    let clock = if is_tracer { TraceClock::Tracer } else { TraceClock::Monotonic };
    let opened = Extra::open(asked, &cpus, session.ring_bytes(NoiseSettings::default().ring_bytes), clock);
    opened.map(Some).map_err(|error| CommandError::new(error.to_string()))
}

/// Writes the counts of each trigger to a separate file in the current folder.
pub fn write_counted(session: &SessionArguments, extra: &Extra) -> Result<(), CommandError> {
    for EventCounts { file, text } in extra.counted().map_err(|error| CommandError::new(error.to_string()))? {
        let path = Path::new(&file);
        replace(path, text.as_bytes()).map_err(|error| cannot("--trigger", path, &error))?;
        if !session.quiet {
            stderr::to_stderr(&format!("counts written to {file}\n"));
        }
    }
    Ok(())
}

/// Tracks of a core, in order of precedence: later ones interrupt earlier ones.
const TRACKS: [&str; 5] = ["gaps", "threads", "softirqs", "interrupts", "NMIs"];

fn perfetto(events: &[KernelEvent], record: Option<&NoiseRecord>) -> String {
    let cpus: BTreeSet<u32> = events.iter().map(|event| event.cpu).collect();
    let groups: Vec<(u32, String)> = cpus.into_iter().map(|cpu| (cpu, format!("CPU {cpu}"))).collect();
    let tracks: Vec<(u32, String)> = (0..).zip(TRACKS.map(str::to_owned)).collect();
    let mut slices: Vec<TraceSlice> = events.iter().map(slice).collect();
    let samples = record.iter().flat_map(|record| &record.cpus).flat_map(|cpu| &cpu.samples);
    slices.extend(samples.map(gap));
    trace(&groups, &tracks, &slices)
}

fn slice(event: &KernelEvent) -> TraceSlice {
    let track = match event.class {
        Class::Thread | Class::Wakeup | Class::Migration | Class::PageFault => 1,
        Class::Softirq => 2,
        Class::Irq => 3,
        Class::Nmi | Class::Hardware => 4,
    };
    TraceSlice {
        group: event.cpu,
        track,
        name: event.name.clone(),
        start_ns: event.start_ns,
        duration_ns: event.duration_ns,
        details: serde_json::json!({"pid": event.pid, "priority": event.priority}),
    }
}

fn gap(verdict: &GapVerdict) -> TraceSlice {
    TraceSlice {
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
