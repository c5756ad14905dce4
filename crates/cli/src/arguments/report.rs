//! Arguments of `onbeat report`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat report out/fm.record.json -o report.html       make a page with plots, causes, plan, host
  onbeat report before.json after.json -o both.html     compare two runs on one page
  onbeat report run.json --format markdown              print tables for a comment or a wiki
  onbeat report run.json --format csv | head            print figures by name, for programs";

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Records of runs, written by `onbeat run`; up to 8 are compared side by side
    #[arg(required = true, value_name = "RECORD")]
    pub records: Vec<PathBuf>,
    /// Output file; `-` for stdout [default: stdout, unless it is a terminal]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReportFormat {
    /// Self-contained HTML page
    #[default]
    Html,
    /// Verdict and figures of each run
    Json,
    /// One line per figure, one column per run
    Csv,
    /// Verdicts and a table of figures
    Markdown,
}
