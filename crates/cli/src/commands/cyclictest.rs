//! `onbeat cyclictest`: `onbeat timerlat` with the options and the output of cyclictest.

use super::timerlat;
use crate::arguments::cyclictest::CyclictestArguments;
use crate::arguments::timerlat::TimerlatCommand;
use crate::arguments::{Arguments, Command};
use crate::documents;
use crate::error::CommandError;
use crate::output::{self, to_stdout};
use crate::stderr::to_stderr;
use clap::Parser;
use onbeat::trace::replace::replace;
use onbeat_os::CoreSet;
use onbeat_os::memory::MemoryLock;
use std::path::Path;

pub fn cyclictest(arguments: &CyclictestArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    let cannot = |error: std::io::Error| CommandError::new(format!("the CPUs are unknown: {error}"));
    let (words, mut notes) = arguments.translated(&CoreSet::allowed().map_err(cannot)?)?;
    for path in arguments.histfile.iter().chain(&arguments.json) {
        output::can_be_written(path)
            .map_err(|error| CommandError::new(format!("{}: cannot be written: {error}", path.display())))?;
    }
    let same = format!("onbeat {}", words.join(" "));
    notes.insert(0, format!("in words of onbeat: {same}"));
    let parsed = Arguments::try_parse_from(std::iter::once("onbeat".to_owned()).chain(words))
        .map_err(|error| CommandError::new(format!("{same}: {error}")))?;
    let lock = arguments.mlockall.then(|| MemoryLock::take(true));
    if let Some(Err(error)) = &lock {
        notes.push(format!("not obtained: -m, locked memory: {error}"));
    }
    let Command::Timerlat(command) = &parsed.command else { return Ok(0) };
    let (timer, hist) = match command {
        TimerlatCommand::Top(top) => (&top.timer, None),
        TimerlatCommand::Hist(hist) => (&hist.timer, Some(hist)),
    };
    if !timer.session.quiet {
        notes.iter().for_each(|note| to_stderr(&format!("note: {note}\n")));
    }
    let record = timerlat::measured(timer, hist, abort)?;
    let status = timerlat::status(&record);
    let (buckets, has_all) = arguments.buckets().unwrap_or_default();
    let (priority, interval_us) = (arguments.priority, arguments.interval_us());
    let mut lines = match arguments.has_summary() {
        true => documents::cyclictest_threads(&record, priority, interval_us, arguments.nsecs),
        false => Vec::new(),
    };
    if buckets > 0 {
        let histogram = documents::cyclictest_histogram(&record, buckets, has_all);
        match &arguments.histfile {
            Some(path) => write(path, &histogram.join("\n"))?,
            None => lines.extend(histogram),
        }
    }
    if let Some(path) = &arguments.json {
        let line: Vec<String> = std::env::args().collect();
        let json = documents::cyclictest_json(&record, &line.join(" "), buckets, status);
        write(path, &serde_json::to_string_pretty(&json).expect("it is plain data"))?;
    }
    if record.stopped.is_some() {
        lines.extend(documents::timerlat(&record, timer, None).tail);
    }
    lines.iter_mut().for_each(|line| line.push('\n'));
    to_stdout(&lines.concat())?;
    Ok(status)
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    replace(path, format!("{text}\n").as_bytes()).map_err(|error| CommandError::new(error.to_string()))
}
