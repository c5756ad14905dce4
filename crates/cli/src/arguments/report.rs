//! What may be typed after `onbeat report`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat report out/fm.record.json -o report.html       a page that opens offline: plots, causes, plan, host
  onbeat report before.json after.json -o both.html     two runs beside each other
  onbeat report run.json --format markdown              tables for a comment or a wiki
  onbeat report run.json --format csv | head            figures by name, for programs";

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Records of runs, as `onbeat run` writes them; up to 8 are shown beside each other
    #[arg(required = true, value_name = "RECORD")]
    pub records: Vec<PathBuf>,
    /// Write to this file, `-` for stdout [default: stdout, where that is no terminal]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What is written
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReportFormat {
    /// One page with everything in it
    #[default]
    Html,
    /// Verdict and figures of each run
    Json,
    /// A line for each figure, a column for each run
    Csv,
    /// Verdicts and a table
    Markdown,
}
