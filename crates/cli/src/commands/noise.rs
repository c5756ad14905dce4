//! `onbeat noise`

pub mod actions;
mod compare;
mod live;
pub mod trace;

use super::show;
use crate::arguments::noise::{HistArguments, NoiseCommand, SessionArguments, ShapeArguments, TopArguments};
use crate::documents::{self, NoiseView};
use crate::error::CommandError;
use crate::{output, stderr};
use onbeat::trace::KernelEvent;
use onbeat::trace::replace::replace;
use onbeat_noise::LimitHit;
use onbeat_noise::{CpuNoise, NoiseError, NoiseRecord, NoiseSettings, Observer, measure, tracer};
use std::path::Path;

pub use live::LiveMeasurement;
use trace::Traced;

pub fn noise(command: &NoiseCommand, abort: fn() -> !) -> Result<u8, CommandError> {
    match command {
        NoiseCommand::Top(arguments) => top(arguments, abort),
        NoiseCommand::Hist(arguments) => hist(arguments, abort),
        NoiseCommand::Hw(arguments) => hw(arguments, abort),
        NoiseCommand::Compare(arguments) => compare::compare(arguments),
        NoiseCommand::Experiment(arguments) => compare::experiment(arguments, abort),
        NoiseCommand::Project(arguments) => compare::projected(arguments),
    }
}

fn top(arguments: &TopArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    let session = &arguments.noise.session;
    run(&arguments.noise.settings(None), session, None, &measure, abort)
}

fn hw(arguments: &TopArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    let session = &arguments.noise.session;
    let by_tracer =
        |settings: &NoiseSettings, watch: &mut dyn Observer<CpuNoise>| tracer::measure(settings, true, watch);
    run(&arguments.noise.settings(None), session, None, &by_tracer, abort)
}

fn hist(arguments: &HistArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    let session = &arguments.noise.session;
    let settings = arguments.noise.settings(Some(&arguments.shape));
    run(&settings, session, Some(&arguments.shape), &measure, abort)
}

/// Function that measures.
type MeasureFn<'m> =
    dyn Fn(&NoiseSettings, &mut dyn Observer<CpuNoise>) -> Result<NoiseRecord, NoiseError> + 'm;

fn run(
    settings: &NoiseSettings,
    session: &SessionArguments,
    shape: Option<&ShapeArguments>,
    by: &MeasureFn<'_>,
    abort: fn() -> !,
) -> Result<u8, CommandError> {
    prepare(session, "noise")?;
    let mut live = LiveMeasurement::new("noise", session, shape.is_none(), abort)?;
    let record = by(settings, &mut live);
    let more = live.end()?;
    let mut record = record.map_err(|error| CommandError::new(error.to_string()))?;
    record.name = record_name(session, "noise");
    if !session.quiet {
        documents::noise_notes(&record).iter().for_each(|line| stderr::to_stderr(&format!("{line}\n")));
    }
    if let Some(path) = &session.record {
        write_record(path, &record)?;
    }
    debug(session, &record.source.missing);
    let (events, lines) = (&record.events, &record.lines);
    let traced = Traced { session, usual: "noise", events, record: Some(&record), lines, more: &more };
    traced.write()?;
    actions::act(record.stopped.is_some(), &traced)?;
    let view = match shape {
        Some(shape) => NoiseView::Hist(shape),
        None => NoiseView::Top,
    };
    show(&documents::noise(&record, view), session.format)?;
    Ok(if record.stopped.is_some() || record.hits > 0 { 2 } else { 0 })
}

/// Returns the name of a record in comparisons.
pub fn record_name(session: &SessionArguments, usual: &str) -> String {
    let stem = session.record.as_deref().and_then(Path::file_stem);
    stem.map_or_else(|| usual.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Checks the arguments before a long measurement, and enters the control group.
pub fn prepare(session: &SessionArguments, usual: &str) -> Result<(), CommandError> {
    if let Some((flag, instead)) = session.not_here() {
        return Err(CommandError::new(format!("{flag} is not available")).help(instead));
    }
    if let Some(path) = &session.record {
        check_record(path)?;
    }
    trace::check(session, usual)?;
    if let Some(Some(folder)) = &session.cgroup {
        // `join` keeps an absolute path.
        let folder = Path::new("/sys/fs/cgroup").join(folder);
        let procs = folder.join("cgroup.procs");
        std::fs::write(&procs, std::process::id().to_string()).map_err(|error| {
            CommandError::new(format!("-C {}: {}: {error}", folder.display(), procs.display()))
                .help("name the folder of a writable control group, e.g. /sys/fs/cgroup/NAME")
        })?;
    }
    Ok(())
}

/// With `--debug`, lists the data that the kernel does not provide.
pub fn debug(session: &SessionArguments, missing: &[String]) {
    if session.debug {
        missing.iter().for_each(|line| stderr::to_stderr(&format!("debug: not available: {line}\n")));
    }
}

fn check_record(path: &Path) -> Result<(), CommandError> {
    let cannot = |why: &dyn std::fmt::Display| {
        CommandError::new(format!("--record {}: cannot be written: {why}", path.display()))
            .help("name a file in a writable folder")
    };
    let is_other = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
        && !std::fs::read_to_string(path)
            .is_ok_and(|text| text.contains("\"onbeat.noise\"") || text.contains("\"onbeat.timerlat\""));
    if is_other {
        return Err(cannot(&"the file exists, is not a noise record and would be overwritten"));
    }
    output::can_be_written(path).map_err(|error| cannot(&error))
}

fn write_record(path: &Path, record: &NoiseRecord) -> Result<(), CommandError> {
    replace(path, record.to_json().as_bytes())
        .map_err(|error| CommandError::new(format!("--record: {error}")))
}

impl Observer<CpuNoise> for LiveMeasurement<'_> {
    fn at(&mut self, so_far: &dyn Fn() -> Vec<CpuNoise>, elapsed_ns: u64) {
        LiveMeasurement::at(self, elapsed_ns, &|| documents::noise_screen(&so_far(), elapsed_ns));
    }

    fn is_stopped(&self) -> bool {
        LiveMeasurement::is_stopped(self)
    }

    fn hit(&mut self, _: &LimitHit, events: &[KernelEvent]) {
        LiveMeasurement::hit(self, events);
    }
}
