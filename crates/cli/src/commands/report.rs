//! `onbeat report RECORD...`

use crate::arguments::report::{ReportArguments, ReportFormat};
use crate::costs;
use crate::error::CommandError;
use crate::output;
use onbeat::Record;
use onbeat::trace::replace::replace;
use onbeat_report::page::{self, LabelledRun};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

pub fn report(arguments: &ReportArguments) -> Result<u8, CommandError> {
    let given = arguments.records.len();
    if given > page::MOST {
        return Err(CommandError::new(format!("{given} records: at most {} can be compared", page::MOST))
            .help("name fewer, or make one report for each"));
    }
    let to = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    if to.is_none()
        && arguments.output.is_none()
        && arguments.format == ReportFormat::Html
        && io::stdout().is_terminal()
    {
        return Err(CommandError::new("the report is an HTML page, and stdout is a terminal")
            .help("write it to a file: -o report.html"));
    }
    if let Some(to) = to {
        check_output(to, &arguments.records)?;
    }
    let records =
        arguments.records.iter().map(|path| costs::read_record(path)).collect::<Result<Vec<Record>, _>>()?;
    let labels = labels(&arguments.records);
    let runs: Vec<LabelledRun<'_>> =
        labels.iter().zip(&records).map(|(label, record)| LabelledRun { label, record }).collect();
    let text = match arguments.format {
        ReportFormat::Html => page::page(&runs),
        ReportFormat::Json => page::json(&runs),
        ReportFormat::Csv => page::csv(&runs),
        ReportFormat::Markdown => page::markdown(&runs),
    };
    let Some(to) = to else {
        output::to_stdout(&text)?;
        return Ok(0);
    };
    replace(to, text.as_bytes()).map_err(|error| {
        CommandError::new(format!("report {error}")).help("choose another file with -o FILE")
    })?;
    Ok(0)
}

/// Checks the path of the report, which must not overwrite a record.
fn check_output(to: &Path, records: &[PathBuf]) -> Result<(), CommandError> {
    let place = fs::canonicalize(to).ok();
    if place.is_some() && records.iter().any(|record| fs::canonicalize(record).ok() == place) {
        return Err(CommandError::new(format!(
            "report `{}`: it is one of the records and would be overwritten",
            to.display()
        ))
        .help("choose another file with -o FILE"));
    }
    output::can_be_replaced(to).map_err(|error| {
        CommandError::new(format!("report `{}`: cannot be written: {error}", to.display()))
            .help("choose another file with -o FILE")
    })
}

/// Returns a label for each record: its file name, or its path if several have that name.
fn labels(paths: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let names: Vec<String> = paths.iter().map(name).collect();
    let is_twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let label = |(path, name): (&PathBuf, &String)| {
        if is_twice(name) { path.display().to_string() } else { name.clone() }
    };
    paths.iter().zip(&names).map(label).collect()
}
