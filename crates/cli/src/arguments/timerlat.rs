//! Arguments of `onbeat timerlat`. Flags have the letters and meanings of rtla.

use super::noise::{BackendName, SessionArguments, ShapeArguments};
use super::times::TimeParser;
use clap::{Args, Subcommand, ValueEnum};
use onbeat_noise::timerlat::{LatencySettings, Workload};

const EXAMPLES: &str = "\
EXAMPLES
  onbeat timerlat top                                   measure all CPUs until Ctrl-C
  onbeat timerlat hist -c 1,3 -d 20s                    print histograms of two CPUs
  onbeat timerlat top -c 1 -a 100                       stop at a latency above 100 us, explain it
  onbeat timerlat hist -d 1m --dma-latency 0            measure without deep idle states
  onbeat timerlat top -c 1 -a 100 --backend tracer      use the kernel's tracer, with a stack";

const EXIT_STATUS: &str = "\
EXIT STATUS
  0  success
  1  error, including a wrong command line
  2  limit exceeded: -i, -T, -a or --aa-only";

#[derive(Debug, Subcommand)]
pub enum TimerlatCommand {
    /// Show a live table: one row per CPU with the last, least, mean and largest latency
    #[command(before_help = EXAMPLES, after_help = EXIT_STATUS, args_override_self = true)]
    Top(TimerlatTopArguments),
    /// Print histograms of the latencies, with columns per CPU
    #[command(before_help = EXAMPLES, after_help = EXIT_STATUS, args_override_self = true)]
    Hist(TimerlatHistArguments),
}

#[derive(Debug, Args)]
pub struct TimerlatTopArguments {
    #[command(flatten)]
    pub timer: TimerArguments,
}

#[derive(Debug, Args)]
pub struct TimerlatHistArguments {
    #[command(flatten)]
    pub timer: TimerArguments,
    #[command(flatten)]
    pub shape: ShapeArguments,
    /// Omit the columns with latencies of the timer interrupt
    #[arg(long)]
    pub no_irq: bool,
    /// Omit the columns with latencies of the thread
    #[arg(long)]
    pub no_thread: bool,
    /// Omit the columns with latencies of the return to user space
    #[arg(long)]
    pub no_user: bool,
}

#[derive(Debug, Args)]
pub struct TimerArguments {
    /// Stop at the first wake-up later than this, in us, show its cause and write the trace; same as -T US -t
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros(),
          conflicts_with_all = ["thread", "aa_only"])]
    pub auto: Option<u64>,
    /// Same as -a, but print only the analysis
    #[arg(long, value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros(),
          conflicts_with_all = ["thread", "no_aa"])]
    pub aa_only: Option<u64>,
    /// Omit the analysis of the causes
    #[arg(long)]
    pub no_aa: bool,
    /// Period of the wake-ups, in us
    #[arg(long, short, value_name = "US", default_value = "1000", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub period: u64,
    /// Number of wake-ups of each CPU, including those of a warm-up [default: no limit]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub wakeups: Option<u64>,
    /// Delay of each CPU's wake-ups after those of the previous CPU, in us
    #[arg(long, short = 'A', value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros().or_none())]
    pub aligned: Option<u64>,
    /// Stop when the latency of the timer interrupt exceeds this, in us
    #[arg(long, short, value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub irq: Option<u64>,
    /// Stop when the latency of the thread exceeds this, in us
    #[arg(long, short = 'T', value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub thread: Option<u64>,
    /// Measure with threads of this program (the default); with --backend tracer they wait on the kernel's
    /// timerlat_fd
    #[arg(long, short)]
    pub user_threads: bool,
    /// Measure with kernel threads; needs --backend tracer, and is its default
    #[arg(long, short = 'k', conflicts_with = "user_threads")]
    pub kernel_threads: bool,
    /// With --backend tracer: measure threads of your own program. Each is bound to a measured CPU and
    /// repeatedly reads its /sys/kernel/tracing/osnoise/per_cpu/cpuN/timerlat_fd; the kernel kills them at
    /// the end
    #[arg(long, short = 'U', conflicts_with_all = ["user_threads", "kernel_threads"])]
    pub user_load: bool,
    /// With --backend tracer: print the kernel stack at the interrupt if the thread is later than this, in us
    #[arg(long, short = 's', value_name = "US", allow_hyphen_values = true, value_parser = TimeParser::micros())]
    pub stack: Option<u64>,
    /// Handling of stack frames without a name
    #[arg(long, value_enum, default_value_t)]
    pub stack_format: StackFormat,
    /// Print the threads that ran on the measured CPUs when a limit was hit
    #[arg(long)]
    pub dump_tasks: bool,
    /// Disable idle states deeper than N on the measured CPUs during the measurement; -1 disables all
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-1..=20))]
    pub deepest_idle_state: Option<i32>,
    /// Print times in ns
    #[arg(long, short)]
    pub nano: bool,
    /// Longest time that idle cores may take to wake up during the measurement, in us; 0 keeps them awake
    #[arg(long, value_name = "US", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub dma_latency: Option<u32>,
    #[command(flatten)]
    pub session: SessionArguments,
}

/// Handling of stack frames without a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum StackFormat {
    /// End the stack at the first such frame
    #[default]
    Truncate,
    /// Leave them out
    Skip,
    /// Print their addresses
    Full,
}

impl TimerArguments {
    /// `-a` stands for several other flags.
    pub fn settle(&mut self) {
        self.session.trace_if(self.auto.is_some());
    }

    /// Returns the flag that was given although only the kernel's tracer supports it.
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
            wakeups: self.wakeups,
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
