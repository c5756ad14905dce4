//! `onbeat noise`

use super::show;
use crate::arguments::Format;
use crate::arguments::noise::{HistArguments, NoiseCommand, SessionArguments, ShapeArguments, TopArguments};
use crate::documents::{self, NoiseView};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::output::{self, Screen};
use crate::progress::StatusLine;
use onbeat::trace::replace::replace;
use onbeat_noise::{CpuNoise, NoiseRecord, Settings, Watch, measure};
use std::io::{self, IsTerminal};
use std::path::Path;

pub fn noise(command: &NoiseCommand, abort: fn() -> !) -> Result<u8, Failure> {
    match command {
        NoiseCommand::Top(arguments) => top(arguments, abort),
        NoiseCommand::Hist(arguments) => hist(arguments, abort),
    }
}

fn top(arguments: &TopArguments, abort: fn() -> !) -> Result<u8, Failure> {
    let session = &arguments.noise.session;
    let settings = arguments.noise.settings(None);
    let is_live = io::stdout().is_terminal() && session.format == Format::Human && !session.quiet;
    let mut watch = Watched {
        interrupts: Interrupts::listen(abort),
        line: StatusLine::new("noise"),
        is_talking: !session.quiet && !is_live,
        screen: is_live.then(Screen::new),
        drawn_ns: 0,
        duration_ns: settings.duration_ns,
        failure: None,
    };
    run(&settings, session, None, &mut watch)
}

fn hist(arguments: &HistArguments, abort: fn() -> !) -> Result<u8, Failure> {
    let session = &arguments.noise.session;
    let settings = arguments.noise.settings(Some(&arguments.shape));
    let mut watch = Watched {
        interrupts: Interrupts::listen(abort),
        line: StatusLine::new("noise"),
        is_talking: !session.quiet,
        screen: None,
        drawn_ns: 0,
        duration_ns: settings.duration_ns,
        failure: None,
    };
    run(&settings, session, Some(&arguments.shape), &mut watch)
}

fn run(
    settings: &Settings,
    session: &SessionArguments,
    shape: Option<&ShapeArguments>,
    watch: &mut Watched,
) -> Result<u8, Failure> {
    if let Some(path) = &session.record {
        check_record(path)?;
    }
    let record = measure(settings, watch);
    watch.line.clear();
    let mut record = record.map_err(|error| Failure::new(error.to_string()))?;
    if let Some(failure) = watch.failure.take() {
        return Err(failure);
    }
    record.name = name(session);
    if !session.quiet {
        documents::noise_notes(&record).iter().for_each(|line| output::to_stderr(&format!("{line}\n")));
    }
    if let Some(path) = &session.record {
        write_record(path, &record)?;
    }
    let view = match shape {
        Some(shape) => NoiseView::Hist(shape),
        None => NoiseView::Top,
    };
    if session.format != Format::Human || !session.quiet {
        show(&documents::noise(&record, view), session.format)?;
    }
    Ok(if record.stopped.is_some() { 2 } else { 0 })
}

/// What it is called where it is compared.
fn name(session: &SessionArguments) -> String {
    let stem = session.record.as_deref().and_then(Path::file_stem);
    stem.map_or_else(|| "noise".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Before minutes are spent on measuring.
pub fn check_record(path: &Path) -> Result<(), Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::new(format!("--record {}: cannot be written: {why}", path.display()))
            .help("name a file in a folder of yours")
    };
    let is_other = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
        && !std::fs::read_to_string(path)
            .is_ok_and(|text| text.contains("\"onbeat.noise\"") || text.contains("\"onbeat.timerlat\""));
    if is_other {
        return Err(cannot(&"there is a file that is no record of noise, and it would be lost"));
    }
    output::can_be_written(path).map_err(|error| cannot(&error))
}

fn write_record(path: &Path, record: &NoiseRecord) -> Result<(), Failure> {
    replace(path, record.to_json().as_bytes()).map_err(|error| Failure::new(format!("--record: {error}")))
}

struct Watched {
    interrupts: Interrupts,
    line: StatusLine,
    is_talking: bool,
    /// Where the rows are drawn again and again.
    screen: Option<Screen>,
    drawn_ns: u64,
    duration_ns: Option<u64>,
    failure: Option<Failure>,
}

/// From drawing to drawing.
const EVERY_NS: u64 = 1_000_000_000;

impl Watch for Watched {
    fn at(&mut self, so_far: &dyn Fn() -> Vec<CpuNoise>, elapsed_ns: u64) {
        if elapsed_ns < self.drawn_ns + EVERY_NS {
            return;
        }
        self.drawn_ns = elapsed_ns;
        if let Some(screen) = &mut self.screen {
            let text = documents::noise_screen(&so_far(), elapsed_ns);
            self.failure = self.failure.take().or(screen.draw(&text).err());
        } else if self.is_talking {
            self.line.draw(&documents::elapsed(elapsed_ns, self.duration_ns));
        }
    }

    fn is_stopped(&self) -> bool {
        self.interrupts.is_asked()
            || self.failure.is_some()
            || self.screen.as_ref().is_some_and(Screen::is_gone)
    }
}
