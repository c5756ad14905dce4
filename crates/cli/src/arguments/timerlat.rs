//! What may be typed after `onbeat timerlat`. Letters and meanings are rtla's.

use super::noise::{BackendName, SessionArguments, ShapeArguments};
use super::times::Time;
use clap::{Args, Subcommand, ValueEnum};
use onbeat_noise::timerlat::{LatencySettings, Workload};

const EXAMPLES: &str = "\
EXAMPLES
  onbeat timerlat top                                   all CPUs, until Ctrl-C
  onbeat timerlat hist -c 1,3 -d 20s                    histograms of two CPUs
  onbeat timerlat top -c 1 -a 100                       stop at the first wake-up later than 100 us, and say why it was
  onbeat timerlat hist -d 1m --dma-latency 0            with idle states that are left at once
  onbeat timerlat top -c 1 -a 100 --backend tracer      by the kernel's tracer, with the stack at the interrupt";

const EXIT_STATUS: &str = "\
EXIT STATUS
  0  measured
  1  an error, a wrong command line included
  2  a limit was exceeded: -i, -T, -a or --aa-only";

#[derive(Debug, Subcommand)]
pub enum TimerlatCommand {
    /// A row per CPU, again and again: last, least, mean and most
    #[command(before_help = EXAMPLES, after_help = EXIT_STATUS)]
    Top(TopArguments),
    /// Histograms of how late timers were, columns per CPU
    #[command(before_help = EXAMPLES, after_help = EXIT_STATUS)]
    Hist(HistArguments),
}

#[derive(Debug, Args)]
pub struct TopArguments {
    #[command(flatten)]
    pub timer: TimerArguments,
}

#[derive(Debug, Args)]
pub struct HistArguments {
    #[command(flatten)]
    pub timer: TimerArguments,
    #[command(flatten)]
    pub shape: ShapeArguments,
    /// No columns for the interrupt
    #[arg(long)]
    pub no_irq: bool,
    /// No columns for the thread
    #[arg(long)]
    pub no_thread: bool,
    /// No columns for the return to the program
    #[arg(long)]
    pub no_user: bool,
}

#[derive(Debug, Args)]
pub struct TimerArguments {
    /// Stop at the first wake-up later than so many us, and say why it was: as -T US
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = Time::micros(),
          conflicts_with_all = ["thread", "aa_only"])]
    pub auto: Option<u64>,
    /// The same, and nothing but the analysis
    #[arg(long, value_name = "US", allow_hyphen_values = true, value_parser = Time::micros(),
          conflicts_with_all = ["thread", "no_aa"])]
    pub aa_only: Option<u64>,
    /// No analysis of what delayed a wake-up
    #[arg(long)]
    pub no_aa: bool,
    /// From wake-up to wake-up, in us
    #[arg(long, short, value_name = "US", default_value = "1000", allow_hyphen_values = true, value_parser = Time::micros())]
    pub period: u64,
    /// Each CPU's wake-ups come so many us after those of the CPU before it
    #[arg(long, short = 'A', value_name = "US", allow_hyphen_values = true, value_parser = Time::micros().or_none())]
    pub aligned: Option<u64>,
    /// Stop when the timer's interrupt is later, in us
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = Time::micros())]
    pub irq: Option<u64>,
    /// Stop when the thread is later, in us
    #[arg(long, short = 'T', value_name = "US", allow_hyphen_values = true, value_parser = Time::micros())]
    pub thread: Option<u64>,
    /// Measure with threads of this program, which is what happens anyway; with --backend tracer they wait on the kernel's timerlat_fd
    #[arg(long, short)]
    pub user_threads: bool,
    /// Measure with the kernel's own threads: what --backend tracer does
    #[arg(long, short = 'k', conflicts_with = "user_threads")]
    pub kernel_threads: bool,
    /// With --backend tracer: measure threads of yours, each bound to a measured CPU, that read its
    /// /sys/kernel/tracing/osnoise/per_cpu/cpuN/timerlat_fd again and again; the kernel kills them at the end
    #[arg(long, short = 'U', conflicts_with_all = ["user_threads", "kernel_threads"])]
    pub user_load: bool,
    /// With --backend tracer: the kernel's stack at the interrupt, where the thread came later than this, in us
    #[arg(long, short = 's', value_name = "US", allow_hyphen_values = true, value_parser = Time::micros())]
    pub stack: Option<u64>,
    /// What to do with frames of a stack that have no name
    #[arg(long, value_enum, default_value_t)]
    pub stack_format: StackFormat,
    /// Say which threads had the measured CPUs when a limit was hit
    #[arg(long)]
    pub dump_tasks: bool,
    /// Switch off idle states deeper than this on the measured CPUs while it runs; all of them with -1
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-1..=20))]
    pub deepest_idle_state: Option<i32>,
    /// Times in ns
    #[arg(long, short)]
    pub nano: bool,
    /// How long idle cores may take to wake up while it runs, in us: 0 keeps them awake
    #[arg(long, value_name = "US", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub dma_latency: Option<u32>,
    #[command(flatten)]
    pub session: SessionArguments,
}

/// Frames without a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum StackFormat {
    /// The stack ends there
    #[default]
    Truncate,
    /// They are left out
    Skip,
    /// Their addresses are shown
    Full,
}

impl TimerArguments {
    /// What was asked for and only the kernel's tracer can do.
    pub fn tracer_only(&self) -> Option<&'static str> {
        let is_tracer = self.session.backend == BackendName::Tracer;
        let flags = [(self.kernel_threads, "-k"), (self.user_load, "-U"), (self.stack.is_some(), "-s")];
        flags.into_iter().find_map(|(is_asked, flag)| (is_asked && !is_tracer).then_some(flag))
    }

    fn workload(&self) -> Workload {
        match (self.user_threads, self.user_load) {
            (true, _) => Workload::Threads,
            (_, true) => Workload::Users,
            _ => Workload::Kernel,
        }
    }

    pub fn settings(&self, shape: Option<&ShapeArguments>) -> LatencySettings {
        let session = &self.session;
        let usual = LatencySettings::default();
        LatencySettings {
            cpus: session.cpus.clone(),
            house_keeping: session.house_keeping.clone(),
            policy: session.priority.or(usual.policy),
            period_ns: self.period,
            aligned_ns: self.aligned,
            stop_irq_ns: self.irq,
            goes_on: session.goes_on(),
            deepest_idle_state: self.deepest_idle_state,
            stop_thread_ns: self.auto.or(self.aa_only).or(self.thread),
            duration_ns: session.duration,
            warm_up_ns: session.warm_up,
            dma_latency_us: self.dma_latency,
            bucket_ns: shape.map_or(usual.bucket_ns, |shape| shape.bucket_size),
            entries: shape.map_or(usual.entries, |shape| shape.entries as usize),
            samples: usize::from(session.samples),
            backend: session.backend.backend(),
            keep_events: session.keep_events(),
            workload: self.workload(),
            stack_ns: self.stack.or(self.auto),
            ring_bytes: session.ring_bytes(usual.ring_bytes),
        }
    }
}
