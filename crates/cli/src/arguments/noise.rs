//! What may be typed after `onbeat noise`. Letters and meanings are rtla's.

use super::Format;
use super::actions::Action;
use super::events::EventArguments;
use super::times::Time;
use clap::{Args, Subcommand, ValueEnum};
use onbeat_noise::{Backend, NoiseSettings};
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
    /// With interrupts off, so that only hardware and NMIs are left: needs the kernel's osnoise tracer
    #[command(after_help = EXIT_STATUS)]
    Hw(TopArguments),
    /// Compare records: a table, and the two figures of the published experiment
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareArguments),
    /// Measure as things are and as a real-time thread, in turn, and compare
    Experiment(ExperimentArguments),
    /// What the noise of a record would do to a job whose many nodes wait for each other after every step
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
  Every node works for a step and then waits for the slowest. Gaps come at the measured rate, at random moments, each as long as
  one that was measured; nodes are independent of each other. The longest gap is the longest that was measured.";

#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Records of `onbeat noise`, one per set-up
    #[arg(required = true, value_name = "RECORD")]
    pub records: Vec<PathBuf>,
    /// Draw the figures into this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct ExperimentArguments {
    /// CPUs to measure: 1,4-7 [default: all]
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<CoreSet>,
    /// How long each set-up is measured
    #[arg(long, short, value_name = "TIME", default_value = "10s", allow_hyphen_values = true, value_parser = Time::seconds())]
    pub duration: u64,
    /// Folder for the records and the plot
    #[arg(long, value_name = "FOLDER", default_value = "noise")]
    pub output: PathBuf,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct ProjectArguments {
    /// A record of `onbeat noise`
    pub record: PathBuf,
    /// How many nodes: one row each
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,16,1024,65536", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub nodes: Vec<u64>,
    /// Work of each node between two waits
    #[arg(long, value_name = "TIME", default_value = "1ms", allow_hyphen_values = true, value_parser = Time::micros())]
    pub step: u64,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
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
    /// Write the kernel's last events and the worst cases to this file, as lines like those of rtla
    /// [default without a name: COMMAND_trace.txt]
    #[arg(long, short, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub trace: Option<Option<PathBuf>>,
    /// Write them to this file for ui.perfetto.dev
    #[arg(long, value_name = "FILE.json")]
    pub perfetto: Option<PathBuf>,
    /// Do this when a limit is hit: trace[,file=FILE], signal,num=N,pid=PID|parent, shell,command=COMMAND, or continue with the
    /// measurement; may be given again
    #[arg(long, value_name = "ACTION")]
    pub on_threshold: Vec<Action>,
    /// Do this at the end, whatever came of it
    #[arg(long, value_name = "ACTION")]
    pub on_end: Vec<Action>,
    /// Put the measuring threads into this control group, a folder below /sys/fs/cgroup; without a name they stay in that of this
    /// command, where they are anyway
    #[arg(long, short = 'C', value_name = "FOLDER", num_args = 0..=1)]
    pub cgroup: Option<Option<PathBuf>>,
    /// Say what the kernel does not tell
    #[arg(long, short = 'D')]
    pub debug: bool,
    #[command(flatten)]
    pub extra: EventArguments,
    /// How much of the kernel's records a CPU's ring holds, in KiB [default: 4096]
    #[arg(long, value_name = "KIB", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    trace_buffer_size: Option<u32>,
    #[arg(long, hide = true, value_name = "FILE")]
    bpf_action: Option<PathBuf>,
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
    /// The kernel's tracepoints by a trace instance: every event with its name and time
    Ftrace,
    /// The same by perf, for three times the price; needs CAP_PERFMON only
    Perf,
    /// Without any right: classes only
    Proc,
    /// The kernel's osnoise and timerlat tracers and their threads, where the kernel has them
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
    /// What was asked for and is not to be had, and what there is instead.
    pub fn not_here(&self) -> Option<(&'static str, &'static str)> {
        let bpf = self.bpf_action.is_some();
        bpf.then_some((
            "--bpf-action",
            "no BPF is used here: take --on-threshold shell,command=... or signal,num=...,pid=...",
        ))
    }

    /// How much of the kernel's records a ring holds.
    pub fn ring_bytes(&self, usual: usize) -> usize {
        self.trace_buffer_size.map_or(usual, |kib| kib as usize * 1024)
    }

    /// Whether lines or counts of further events would be seen by anybody.
    pub fn has_trace(&self) -> bool {
        let is_action = |action: &Action| matches!(action, Action::Trace(_));
        self.trace.is_some() || self.on_threshold.iter().chain(&self.on_end).any(is_action)
    }

    /// Whether a limit ends it.
    pub fn goes_on(&self) -> bool {
        self.on_threshold.contains(&Action::Continue)
    }

    /// How many of a CPU's last events a trace has.
    pub fn keep_events(&self) -> usize {
        const EVENTS: usize = 20_000;
        if self.has_trace() || self.perfetto.is_some() { EVENTS } else { 0 }
    }

    /// Where lines go to.
    pub fn trace_path(&self, usual: &str) -> Option<PathBuf> {
        self.trace.as_ref().map(|path| path.clone().unwrap_or_else(|| format!("{usual}_trace.txt").into()))
    }
}

impl NoiseArguments {
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
