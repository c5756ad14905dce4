//! `onbeat timerlat`

use super::noise::trace::Traced;
use super::noise::{LiveMeasurement, actions, debug, prepare, record_name};
use super::show;
use crate::arguments::timerlat::{TimerArguments, TimerlatCommand, TimerlatHistArguments};
use crate::documents;
use crate::error::CommandError;
use crate::stderr;
use onbeat::trace::KernelEvent;
use onbeat::trace::replace::replace;
use onbeat_noise::LimitHit;
use onbeat_noise::Observer;
use onbeat_noise::timerlat::{CpuLatency, LatencyRecord, measure};

pub fn timerlat(command: &TimerlatCommand, abort: fn() -> !) -> Result<u8, CommandError> {
    match command {
        TimerlatCommand::Top(arguments) => run(&arguments.timer, None, abort),
        TimerlatCommand::Hist(arguments) => run(&arguments.timer, Some(arguments), abort),
    }
}

fn run(
    arguments: &TimerArguments,
    hist: Option<&TimerlatHistArguments>,
    abort: fn() -> !,
) -> Result<u8, CommandError> {
    let record = measured(arguments, hist, abort)?;
    show(&documents::timerlat(&record, arguments, hist), arguments.session.format)?;
    Ok(status(&record))
}

/// The exit status after a measurement.
pub fn status(record: &LatencyRecord) -> u8 {
    if record.stopped.is_some() || record.hits > 0 { 2 } else { 0 }
}

/// Measures, and does all that was asked for but showing the results.
pub fn measured(
    arguments: &TimerArguments,
    hist: Option<&TimerlatHistArguments>,
    abort: fn() -> !,
) -> Result<LatencyRecord, CommandError> {
    let session = &arguments.session;
    if let Some(flag) = arguments.tracer_only() {
        return Err(CommandError::new(format!("{flag}: only the kernel's timerlat tracer can do that"))
            .help("add --backend tracer, on a kernel that has it (CONFIG_TIMERLAT_TRACER)"));
    }
    prepare(session, "timerlat")?;
    let settings = arguments.settings(hist.map(|hist| &hist.shape));
    let is_drawn = hist.is_none() && arguments.aa_only.is_none();
    let mut watch = TimerlatProgress {
        live: LiveMeasurement::new("timerlat", session, is_drawn, abort)?,
        nano: arguments.nano,
    };
    let record = measure(&settings, &mut watch);
    let more = watch.live.end()?;
    let mut record = record.map_err(|error| CommandError::new(error.to_string()))?;
    record.name = record_name(session, "timerlat");
    if !session.quiet {
        documents::timerlat_notes(&record).iter().for_each(|line| stderr::to_stderr(&format!("{line}\n")));
    }
    if let Some(path) = &session.record {
        replace(path, record.to_json().as_bytes())
            .map_err(|error| CommandError::new(format!("--record: {error}")))?;
    }
    debug(session, &record.source.missing);
    let (events, lines) = (&record.events, &record.lines);
    let traced = Traced { session, usual: "timerlat", events, record: None, lines, more: &more };
    traced.write()?;
    actions::act(record.stopped.is_some(), &traced)?;
    Ok(record)
}

struct TimerlatProgress<'s> {
    live: LiveMeasurement<'s>,
    nano: bool,
}

impl Observer<CpuLatency> for TimerlatProgress<'_> {
    fn at(&mut self, so_far: &dyn Fn() -> Vec<CpuLatency>, elapsed_ns: u64) {
        let nano = self.nano;
        self.live.at(elapsed_ns, &|| documents::timerlat_screen(&so_far(), elapsed_ns, nano));
    }

    fn is_stopped(&self) -> bool {
        self.live.is_stopped()
    }

    fn hit(&mut self, _: &LimitHit, events: &[KernelEvent]) {
        self.live.hit(events);
    }
}
