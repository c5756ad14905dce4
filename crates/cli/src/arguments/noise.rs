//! What may be typed after `onbeat noise`. Letters and meanings are rtla's.

use super::Format;
use super::times::Time;
use clap::{Args, Subcommand, ValueEnum};
use onbeat_noise::{Backend, Settings};
use onbeat_os::{CoreSet, Policy};
use std::path::PathBuf;

const EXAMPLES: &str = "\
EXAMPLES
  onbeat noise top                                      all CPUs, until Ctrl-C
  onbeat noise hist -c 1,3 -d 20s                       a histogram of two CPUs, and what took the time
  onbeat noise hist -c 1 -P f:1 -d 1m                   of a real-time thread
  onbeat noise top -c 1 -a 100                          stop at the first gap above 100 us, and say what it was
  onbeat noise hist -d 10s --record idle.json           keep it, for programs and to compare";

const EXIT_STATUS: &str = "\
EXIT STATUS
  0  measured
  1  an error, a wrong command line included
  2  a limit was exceeded: -s, -S or -a";

#[derive(Debug, Subcommand)]
pub enum NoiseCommand {
    /// A row per CPU, again and again; the sorted causes below
    #[command(before_help = EXAMPLES, after_help = EXIT_STATUS)]
    Top(TopArguments),
    /// A histogram of what was taken, a column per CPU, and the sorted causes
    #[command(before_help = EXAMPLES, after_help = EXIT_STATUS)]
    Hist(HistArguments),
}

#[derive(Debug, Args)]
pub struct TopArguments {
    #[command(flatten)]
    pub noise: NoiseArguments,
}

#[derive(Debug, Args)]
pub struct HistArguments {
    #[command(flatten)]
    pub noise: NoiseArguments,
    #[command(flatten)]
    pub shape: ShapeArguments,
}

/// How a histogram is laid out.
#[derive(Debug, Args)]
pub struct ShapeArguments {
    /// Width of a bucket in us
    #[arg(long, short = 'b', value_name = "US", default_value = "1", allow_hyphen_values = true, value_parser = Time::micros())]
    pub bucket_size: u64,
    /// Number of buckets
    #[arg(long, short = 'E', value_name = "N", default_value_t = 256, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(10..=9_999_999))]
    pub entries: u32,
    /// No lines above the histogram
    #[arg(long)]
    pub no_header: bool,
    /// No lines below it: over, count, min, avg, max
    #[arg(long)]
    pub no_summary: bool,
    /// No column with the time of a bucket
    #[arg(long)]
    pub no_index: bool,
    /// Empty buckets, too
    #[arg(long)]
    pub with_zeros: bool,
}

#[derive(Debug, Args)]
pub struct NoiseArguments {
    /// Stop at the first gap above so many us, as -s US -T 1
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = Time::micros(),
          conflicts_with_all = ["stop", "threshold"])]
    pub auto: Option<u64>,
    /// From measurement to measurement, in us
    #[arg(long, short, value_name = "US", default_value = "1000000", allow_hyphen_values = true, value_parser = Time::micros())]
    pub period: u64,
    /// How long each measurement takes, in us; for the rest of the period the CPU is left alone [default: the period]
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = Time::micros())]
    pub runtime: Option<u64>,
    /// Stop when a single gap is longer, in us
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = Time::micros())]
    pub stop: Option<u64>,
    /// Stop when a measurement has more noise in all, in us
    #[arg(long, short = 'S', value_name = "US", allow_hyphen_values = true, value_parser = Time::micros())]
    pub stop_total: Option<u64>,
    /// What is shorter is no noise, in us
    #[arg(long, short = 'T', value_name = "US", default_value = "5", allow_hyphen_values = true, value_parser = Time::micros())]
    pub threshold: u64,
    #[command(flatten)]
    pub session: SessionArguments,
}

/// What noise and timerlat have in common.
#[derive(Debug, Args)]
pub struct SessionArguments {
    /// CPUs to measure: 1,4-7 [default: all]
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<CoreSet>,
    /// CPUs for everything else of ours [default: those that are not measured]
    #[arg(long, short = 'H', value_name = "LIST", allow_hyphen_values = true)]
    pub house_keeping: Option<CoreSet>,
    /// What the scheduler gives to the measuring threads: o:NICE, f:PRIO, r:PRIO, d:RUNTIME:PERIOD
    #[arg(long, short = 'P', value_name = "POLICY", allow_hyphen_values = true)]
    pub priority: Option<Policy>,
    /// How long: 20s, 5m, 1h [default: until Ctrl-C]
    #[arg(long, short, value_name = "TIME", allow_hyphen_values = true, value_parser = Time::seconds())]
    pub duration: Option<u64>,
    /// So much at the begin is not counted: 5s
    #[arg(long, value_name = "TIME", default_value = "0", allow_hyphen_values = true, value_parser = Time::seconds().or_none())]
    pub warm_up: u64,
    /// Where the causes come from
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendName,
    /// How many of the worst cases are told one by one
    #[arg(long, value_name = "N", default_value_t = 5, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(0..=10_000))]
    pub samples: u16,
    /// Write everything to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// No progress and no tables; errors and --format json|csv are still written
    #[arg(long, short)]
    pub quiet: bool,
    /// What goes to stdout: tables, the record, or the tables as CSV
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// The best that this machine allows
    #[default]
    Auto,
    /// The kernel's tracepoints: every event with its name and time
    Perf,
    /// Without any right: classes only
    Proc,
}

impl BackendName {
    pub fn backend(self) -> Backend {
        match self {
            BackendName::Auto => Backend::Auto,
            BackendName::Perf => Backend::Perf,
            BackendName::Proc => Backend::Proc,
        }
    }
}

impl NoiseArguments {
    pub fn settings(&self, shape: Option<&ShapeArguments>) -> Settings {
        let session = &self.session;
        let usual = Settings::default();
        Settings {
            cpus: session.cpus.clone(),
            house_keeping: session.house_keeping.clone(),
            policy: session.priority,
            period_ns: self.period,
            runtime_ns: self.runtime.unwrap_or(self.period),
            threshold_ns: if self.auto.is_some() { 1_000 } else { self.threshold },
            stop_single_ns: self.auto.or(self.stop),
            stop_total_ns: self.stop_total,
            duration_ns: session.duration,
            warm_up_ns: session.warm_up,
            bucket_ns: shape.map_or(usual.bucket_ns, |shape| shape.bucket_size),
            entries: shape.map_or(usual.entries, |shape| shape.entries as usize),
            samples: usize::from(session.samples),
            backend: session.backend.backend(),
            ring_bytes: usual.ring_bytes,
            keep_events: 0,
        }
    }
}
