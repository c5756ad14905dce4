//! `onbeat doctor`

use super::{host, show};
use crate::arguments::KindsFormat;
use crate::arguments::host::DoctorArguments;
use crate::costs;
use crate::documents::{self, FindingsView};
use crate::error::CommandError;
use crate::interrupt::CtrlC;
use crate::progress::StatusLine;
use crate::{output, stderr};
use onbeat::Registry;
use onbeat_host::measured::MeasurementWatch;
use onbeat_host::verify::{self, Agreement};
use onbeat_host::{Attempts, Causes, MachineCase, Measurements, Root, checks, examine};
use std::io::{self, IsTerminal};

pub fn doctor(
    arguments: &DoctorArguments,
    registry: &Registry,
    abort: fn() -> !,
) -> Result<u8, CommandError> {
    if let Some(id) = &arguments.explain {
        return explain(id);
    }
    if arguments.list {
        return list(arguments.format);
    }
    let format = arguments.format.tables().ok_or_else(|| {
        CommandError::new("--format markdown: only the list of checks is available as Markdown")
            .help("use onbeat doctor --list --format markdown")
    })?;
    let root = host::root(&arguments.case)?;
    let record = arguments.record.as_deref().map(costs::read_record).transpose()?;
    let causes = record.as_ref().map(Causes::of);
    let mut case = MachineCase { causes, ..host::case(&arguments.case, &root, registry)? };
    if arguments.verify {
        let rows = verify::parameters(&case.facts);
        let misspelt = case.facts.kernel.command_line.known().map(verify::misspelt).unwrap_or_default();
        let is_wrong = !misspelt.is_empty() || rows.iter().any(|row| row.agreement == Agreement::Differs);
        show(&documents::verified(&rows, &misspelt), format)?;
        return Ok(if is_wrong { 2 } else { 0 });
    }
    observe(&mut case, &root, arguments, abort)?;
    let report = examine(&case);
    let shown = FindingsView { report: &report, case: &case, all: arguments.all };
    match format {
        crate::arguments::OutputFormat::Human => {
            let is_terminal = io::stdout().is_terminal();
            let width =
                terminal_size::terminal_size().filter(|_| is_terminal).map(|(width, _)| usize::from(width.0));
            output::to_stdout(&shown.text(width, stderr::may_colour(is_terminal)))?;
        }
        format => show(&documents::findings(&shown), format)?,
    }
    let is_found = report.bad(arguments.fail_on.severity()).next().is_some();
    Ok(if is_found { 2 } else { 0 })
}

/// Tests rights and measures, if the files are those of this machine.
fn observe(
    case: &mut MachineCase,
    root: &Root,
    arguments: &DoctorArguments,
    abort: fn() -> !,
) -> Result<(), CommandError> {
    if !root.is_this_machine() {
        case.tried = Attempts::not("only files of another machine are read");
        case.measured = Measurements::not("only files of another machine are read");
        return Ok(());
    }
    let priority = case.pipeline.as_ref().map_or(80, |pipeline| pipeline.priority().max(1));
    case.tried = Attempts::now(priority, &case.cpus);
    if arguments.no_measure {
        case.measured = Measurements::not("nothing was measured (--no-measure)");
        return Ok(());
    }
    let mut live = DoctorProgress { ctrl_c: CtrlC::listen(abort), line: StatusLine::new("doctor") };
    case.measured = Measurements::now(&case.cpus, &mut live);
    live.line.clear();
    match live.ctrl_c.is_asked() {
        true => Err(CommandError::new("interrupted before all measurements were done")
            .help("--no-measure checks files and rights only")),
        false => Ok(()),
    }
}

struct DoctorProgress {
    ctrl_c: CtrlC,
    line: StatusLine,
}

impl MeasurementWatch for DoctorProgress {
    fn now(&mut self, what: &'static str) {
        self.line.draw(&format!("measuring {what}"));
    }

    fn is_stopped(&self) -> bool {
        self.ctrl_c.is_asked()
    }
}

fn explain(id: &str) -> Result<u8, CommandError> {
    let Some(check) = checks::named(id) else {
        return Err(unknown(id));
    };
    let colour = stderr::may_colour(io::stdout().is_terminal());
    output::to_stdout(&documents::explained(check, colour))?;
    Ok(0)
}

/// Returns the error for an unknown check.
pub fn unknown(id: &str) -> CommandError {
    let near = checks::all().map(|check| (distance(id, check.id), check.id)).min();
    let near =
        near.filter(|(distance, _)| *distance <= 3).map(|(_, near)| format!("; did you mean `{near}`?"));
    CommandError::new(format!("there is no check `{id}`{}", near.unwrap_or_default()))
        .help("onbeat doctor --list shows all checks")
}

/// Returns the edit distance: the number of letters changed, added or left out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

fn list(format: KindsFormat) -> Result<u8, CommandError> {
    match format.tables() {
        Some(format) => show(&documents::FindingsView::list(), format)?,
        None => output::to_stdout(&documents::findings_page())?,
    }
    Ok(0)
}
