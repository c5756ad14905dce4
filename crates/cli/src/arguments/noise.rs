//! Arguments of `onbeat noise`. Flags have the letters and meanings of rtla.

use super::OutputFormat;
use super::actions::Action;
use super::events::EventArguments;
use super::times::TimeParser;
use clap::{Args, Subcommand, ValueEnum};
use onbeat_noise::{Backend, NoiseSettings};
use onbeat_os::{CoreSet, Policy};
use std::path::PathBuf;

const EXAMPLES: &str = "\
EXAMPLES
  onbeat noise top                                      measure all CPUs until Ctrl-C
  onbeat noise hist -c 1,3 -d 20s                       print a histogram of two CPUs, and causes
  onbeat noise hist -c 1 -P f:1 -d 1m                   measure with a real-time thread
  onbeat noise top -c 1 -a 100                          stop at a gap above 100 us, show its cause
  onbeat noise hist -d 10s --record idle.json           write a record, for `noise compare`";

const EXIT_STATUS: &str = "\
EXIT STATUS
  0  success
  1  error, including a wrong command line
  2  limit exceeded: -s, -S or -a";

#[derive(Debug, Subcommand)]
pub enum NoiseCommand {
    /// Show a live table: one row per CPU, and the largest causes below
    #[command(before_help = EXAMPLES, after_help = EXIT_STATUS, args_override_self = true)]
    Top(TopArguments),
    /// Print a histogram of the gaps, one column per CPU, and the largest causes
    #[command(before_help = EXAMPLES, after_help = EXIT_STATUS, args_override_self = true)]
    Hist(HistArguments),
    /// Measure with interrupts off, so that only hardware and NMIs remain; needs the kernel's osnoise tracer
    #[command(after_help = EXIT_STATUS)]
    Hw(TopArguments),
    /// Compare records in a table, with the two plots of the published experiment
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareArguments),
    /// Measure alternately with a normal and a real-time thread, and compare
    Experiment(ExperimentArguments),
    /// Project the noise of a record to a parallel job whose nodes wait for each other after every step
    #[command(after_help = PROJECT_HELP)]
    Project(ProjectArguments),
}

const COMPARE_HELP: &str = "\
EXAMPLE
  onbeat noise hist -d 60s --record as-is.json
  onbeat noise hist -d 60s -P f:1 --record fifo.json
  onbeat noise compare as-is.json fifo.json --plot noise.svg";

const PROJECT_HELP: &str = "\
METHOD
  Every node computes for one step, then waits for the slowest node. Gaps occur at random times, at the measured rate and with
  measured lengths, independently on each node. No gap is longer than the longest measured one.";

#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Records of `onbeat noise`, one per setup
    #[arg(required = true, value_name = "RECORD")]
    pub records: Vec<PathBuf>,
    /// Write a plot of the results to this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

#[derive(Debug, Args)]
pub struct ExperimentArguments {
    /// CPUs to measure, e.g. 1,4-7 [default: all]
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<CoreSet>,
    /// Duration of the measurement of each setup
    #[arg(long, short, value_name = "TIME", default_value = "10s", allow_hyphen_values = true, value_parser = TimeParser::seconds())]
    pub duration: u64,
    /// Folder for the records and the plot
    #[arg(long, value_name = "FOLDER", default_value = "noise")]
    pub output: PathBuf,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

#[derive(Debug, Args)]
pub struct ProjectArguments {
    /// Record of `onbeat noise`
    pub record: PathBuf,
    /// Numbers of nodes, one row each
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,16,1024,65536", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub nodes: Vec<u64>,
    /// Computing time of each node per step
    #[arg(long, value_name = "TIME", default_value = "1ms", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub step: u64,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
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

/// Layout of a histogram.
#[derive(Debug, Args)]
pub struct ShapeArguments {
    /// Width of a bucket, in us
    #[arg(long, short = 'b', value_name = "US", default_value = "1", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub bucket_size: u64,
    /// Number of buckets
    #[arg(long, short = 'E', value_name = "N", default_value_t = 256, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(10..=9_999_999))]
    pub entries: u32,
    /// Omit the lines above the histogram
    #[arg(long)]
    pub no_header: bool,
    /// Omit the lines below the histogram: over, count, min, avg, max
    #[arg(long)]
    pub no_summary: bool,
    /// Omit the column with the time of each bucket
    #[arg(long)]
    pub no_index: bool,
    /// Also print empty buckets
    #[arg(long)]
    pub with_zeros: bool,
}

#[derive(Debug, Args)]
pub struct NoiseArguments {
    /// Stop at the first gap above this, in us, and write the trace; same as -s US -T 1 -t
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros(),
          conflicts_with_all = ["stop", "threshold"])]
    pub auto: Option<u64>,
    /// Period of the measurements, in us
    #[arg(long, short, value_name = "US", default_value = "1000000", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub period: u64,
    /// Duration of each measurement, in us; for the rest of the period the CPU is free [default: the period]
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub runtime: Option<u64>,
    /// Stop when a single gap exceeds this, in us
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub stop: Option<u64>,
    /// Stop when the total noise of a measurement exceeds this, in us
    #[arg(long, short = 'S', value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub stop_total: Option<u64>,
    /// Shortest gap that counts as noise, in us
    #[arg(long, short = 'T', value_name = "US", default_value = "5", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub threshold: u64,
    #[command(flatten)]
    pub session: SessionArguments,
}

/// Arguments that noise and timerlat share.
#[derive(Debug, Args)]
pub struct SessionArguments {
    /// CPUs to measure, e.g. 1,4-7 [default: all]
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<CoreSet>,
    /// CPUs for the other threads of this command [default: those that are not measured]
    #[arg(long, short = 'H', value_name = "LIST", allow_hyphen_values = true)]
    pub house_keeping: Option<CoreSet>,
    /// Scheduling policy of the measuring threads: o:NICE (normal), f:PRIO (FIFO), r:PRIO (RR) or
    /// d:RUNTIME:PERIOD (deadline)
    #[arg(long, short = 'P', value_name = "POLICY", allow_hyphen_values = true)]
    pub priority: Option<Policy>,
    /// Duration, e.g. 20s, 5m or 1h [default: until Ctrl-C]
    #[arg(long, short, value_name = "TIME", allow_hyphen_values = true, value_parser = TimeParser::seconds())]
    pub duration: Option<u64>,
    /// Warm-up time to discard, e.g. 5s
    #[arg(long, value_name = "TIME", default_value = "0", allow_hyphen_values = true, value_parser = TimeParser::seconds().or_none())]
    pub warm_up: u64,
    /// Source of the causes
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendName,
    /// Number of worst cases to print one by one
    #[arg(long, value_name = "N", default_value_t = 5, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(0..=10_000))]
    pub samples: u16,
    /// Write a record to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Write the latest kernel events and the worst cases to this file, in rtla's format
    /// [default without a name: COMMAND_trace.txt]
    #[arg(long, short, value_name = "FILE", num_args = 0..=1)]
    pub trace: Option<Option<PathBuf>>,
    /// Write the same events to this file, for ui.perfetto.dev
    #[arg(long, value_name = "FILE.json")]
    pub perfetto: Option<PathBuf>,
    /// Action at a limit: trace[,file=FILE]; signal,num=N,pid=PID|parent; shell,command=COMMAND; continue,
    /// which goes on measuring; repeatable
    #[arg(long, value_name = "ACTION")]
    pub on_threshold: Vec<Action>,
    /// Action at the end of the measurement, whatever the result; repeatable
    #[arg(long, value_name = "ACTION")]
    pub on_end: Vec<Action>,
    /// Control group of the measuring threads, a folder below /sys/fs/cgroup
    /// [default, also without a name: that of this command]
    #[arg(long, short = 'C', value_name = "FOLDER", num_args = 0..=1)]
    pub cgroup: Option<Option<PathBuf>>,
    /// List data that the kernel does not provide
    #[arg(long, short = 'D')]
    pub debug: bool,
    #[command(flatten)]
    pub extra: EventArguments,
    /// Size of the trace buffer of each CPU, in KiB [default: 4096]
    #[arg(long, value_name = "KIB", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    trace_buffer_size: Option<u32>,
    #[arg(long, hide = true, value_name = "FILE")]
    bpf_action: Option<PathBuf>,
    /// Print no progress and no notes, only the tables at the end
    #[arg(long, short)]
    pub quiet: bool,
    /// Output on stdout: tables, the record as JSON, or the tables as CSV
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// Best backend that this machine allows
    #[default]
    Auto,
    /// Kernel tracepoints through an ftrace instance: every event with its name and time
    Ftrace,
    /// Kernel tracepoints through perf: three times the overhead, but needs only CAP_PERFMON
    Perf,
    /// Counters in /proc: needs no privileges, but shows only classes of causes
    Proc,
    /// The kernel's osnoise and timerlat tracers with their own threads, if the kernel has them
    Tracer,
}

impl BackendName {
    pub fn backend(self) -> Backend {
        match self {
            BackendName::Auto => Backend::Auto,
            BackendName::Ftrace => Backend::Ftrace,
            BackendName::Perf => Backend::Perf,
            BackendName::Proc => Backend::Proc,
            BackendName::Tracer => Backend::Tracer,
        }
    }
}

impl SessionArguments {
    /// Returns the unsupported flag that was given, and a replacement.
    pub fn not_here(&self) -> Option<(&'static str, &'static str)> {
        let bpf = self.bpf_action.is_some();
        bpf.then_some((
            "--bpf-action",
            "onbeat uses no BPF: use --on-threshold shell,command=... or signal,num=...,pid=...",
        ))
    }

    /// Returns the size of a CPU's trace buffer.
    pub fn ring_bytes(&self, usual: usize) -> usize {
        self.trace_buffer_size.map_or(usual, |kib| kib as usize * 1024)
    }

    /// Whether a trace is written, so that lines or counts of additional events are visible.
    pub fn has_trace(&self) -> bool {
        let is_action = |action: &Action| matches!(action, Action::Trace(_));
        self.trace.is_some() || self.on_threshold.iter().chain(&self.on_end).any(is_action)
    }

    /// Asks for a trace, unless a file is named for it.
    pub fn trace_if(&mut self, is_wanted: bool) {
        if is_wanted {
            self.trace.get_or_insert(None);
        }
    }

    /// Whether the measurement continues after a limit.
    pub fn goes_on(&self) -> bool {
        self.on_threshold.contains(&Action::Continue)
    }

    /// Returns the number of a CPU's latest events to keep for a trace.
    pub fn keep_events(&self) -> usize {
        const EVENTS: usize = 20_000;
        if self.has_trace() || self.perfetto.is_some() { EVENTS } else { 0 }
    }

    /// Returns the path of the text trace.
    pub fn trace_path(&self, usual: &str) -> Option<PathBuf> {
        self.trace.as_ref().map(|path| path.clone().unwrap_or_else(|| format!("{usual}_trace.txt").into()))
    }
}

impl NoiseArguments {
    /// `-a` stands for several other flags.
    pub fn settle(&mut self) {
        self.session.trace_if(self.auto.is_some());
    }

    pub fn settings(&self, shape: Option<&ShapeArguments>) -> NoiseSettings {
        let session = &self.session;
        let usual = NoiseSettings::default();
        NoiseSettings {
            cpus: session.cpus.clone(),
            house_keeping: session.house_keeping.clone(),
            policy: session.priority,
            period_ns: self.period,
            runtime_ns: self.runtime.unwrap_or(self.period),
            threshold_ns: if self.auto.is_some() { 1_000 } else { self.threshold },
            stop_single_ns: self.auto.or(self.stop),
            stop_total_ns: self.stop_total,
            goes_on: session.goes_on(),
            duration_ns: session.duration,
            warm_up_ns: session.warm_up,
            bucket_ns: shape.map_or(usual.bucket_ns, |shape| shape.bucket_size),
            entries: shape.map_or(usual.entries, |shape| shape.entries as usize),
            samples: usize::from(session.samples),
            backend: session.backend.backend(),
            ring_bytes: session.ring_bytes(usual.ring_bytes),
            keep_events: session.keep_events(),
        }
    }
}
