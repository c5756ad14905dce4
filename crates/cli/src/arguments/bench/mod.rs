//! Arguments of `onbeat bench`.

mod echo;
mod explain;
mod jobs;
mod pipeline;
mod realtime;
mod saxpy;

pub use echo::EchoArguments;
pub use explain::ExplainArguments;
pub use jobs::JobsArguments;
pub use pipeline::{BenchPipelineArguments, BenchPlanArguments};
pub use realtime::RealtimeArguments;
pub use saxpy::SaxpyArguments;

use super::OutputFormat;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use onbeat::Idle;
use onbeat_bench::overhead::{Method, OverheadCase, OverheadPeer, OverheadSettings, SchedulerVariant};
use onbeat_bench::queue;
use onbeat_os::CoreSet;
use std::path::PathBuf;

const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench overhead                                 measure the overhead per iteration
  onbeat bench overhead --cases tx_rx --format json     measure one case, and print JSON
  onbeat bench overhead --plot overhead.svg             also write a plot
  onbeat bench overhead --peer holoscan --python holoscan/bin/python
                                                        compare with Holoscan, alternating";

const QUEUE_EXAMPLES: &str = "\
EXAMPLES
  onbeat bench queue                                    measure as in the published benchmark
  onbeat bench queue --plot queue.svg                   also write a plot
  onbeat bench queue 30000 60000 4 3 --format json      measure fewer items, and print JSON";

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Overhead of the engine per iteration: operators that do nothing, under each scheduler
    #[command(before_help = EXAMPLES)]
    Overhead(OverheadArguments),
    /// Cost of the work queue per item, compared with channels and models of a kernel's queue
    #[command(before_help = QUEUE_EXAMPLES)]
    Queue(QueueArguments),
    /// Benchmark of radio runtimes: a chain of y = a · x + b on one or more cores, compared with plain loops
    #[command(before_help = saxpy::EXAMPLES)]
    Saxpy(SaxpyArguments),
    /// Whole jobs from file to file: FM receiver, ADS-B receiver, spectra; compared with plain loops
    #[command(before_help = jobs::EXAMPLES)]
    Jobs(JobsArguments),
    /// Rates, latencies and bottlenecks of your own pipeline, under each scheduler that can run it
    #[command(before_help = pipeline::EXAMPLES)]
    Pipeline(BenchPipelineArguments),
    /// Accuracy of `plan --measure`: predicted and measured speed of random graphs
    #[command(before_help = pipeline::PLAN_EXAMPLES)]
    Plan(BenchPlanArguments),
    /// Frame jitter next to a competing load on the same core, per scheduling policy, with causes
    #[command(before_help = realtime::EXAMPLES)]
    Realtime(RealtimeArguments),
    /// Cost of explaining late messages: the same chains alternately with and without explaining
    #[command(before_help = explain::EXAMPLES)]
    Explain(ExplainArguments),
    /// Time of an echo as a client sees it, through a pipeline and through a bare loop, next to the record
    #[command(before_help = echo::EXAMPLES)]
    Echo(EchoArguments),
    /// Server of `bench echo`, which starts it
    #[command(hide = true)]
    EchoServer,
}

#[derive(Debug, Args)]
pub struct QueueArguments {
    /// Number of items with one producer
    #[arg(default_value_t = 300_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    single: u32,
    /// Total number of items with several producers
    #[arg(default_value_t = 600_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    multi: u32,
    /// Number of producers, one thread each
    #[arg(default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    producers: u16,
    /// Placement of the threads: apart (worker on the first core, producers on the others) or free (placed by
    /// the kernel). With apart, bursts are measured both ways
    #[arg(long, value_name = "HOW", default_value = "apart", value_parser = placements())]
    place: queue::Placement,
    /// Number of measurements of each design, alternating; the result is the median
    #[arg(default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,
    /// Rounds of the lost-event test, per design; 0 skips it
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    lost_rounds: u64,
    /// Samples of the wake-up latency of a sleeping worker, per waiting method; 0 skips them
    #[arg(long, value_name = "N", default_value_t = 300)]
    latencies: u16,
    /// Bursts per round; 0 skips them
    #[arg(long, value_name = "N", default_value_t = 300)]
    bursts: u16,
    /// Items per burst
    #[arg(long, value_name = "K", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    burst_items: u16,
    /// Period of the bursts, in microseconds
    #[arg(long, value_name = "US", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    burst_period_us: u32,
    /// Write a plot of the results to this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

impl QueueArguments {
    pub fn settings(&self) -> queue::QueueSettings {
        queue::QueueSettings {
            single: self.single as usize,
            multi: self.multi as usize,
            producers: usize::from(self.producers),
            placement: self.place,
            repeats: usize::from(self.repeats),
            lost_rounds: self.lost_rounds,
            latencies: usize::from(self.latencies),
            bursts: usize::from(self.bursts),
            burst_items: usize::from(self.burst_items),
            burst_period_ns: u64::from(self.burst_period_us) * 1000,
        }
    }
}

#[derive(Debug, Args)]
pub struct OverheadArguments {
    /// Graphs to measure [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = cases())]
    cases: Vec<OverheadCase>,
    /// Schedulers to measure; event_shared is event with `share = "always"` [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = kinds())]
    schedulers: Vec<SchedulerVariant>,
    /// Numbers of workers of event and pinned, measured one after the other [default: 1,2 for event, 2 for
    /// pinned]
    #[arg(long, value_delimiter = ',', value_name = "N,...", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    workers: Vec<u16>,
    /// Cores for the workers [default: the first ones for pinned, any for the others]
    #[arg(long, short, visible_alias = "cpus", value_name = "LIST", allow_hyphen_values = true)]
    cores: Option<CoreSet>,
    /// How idle workers wait: park, spin, spin:20us (then park) or early:150us (before a source is due)
    #[arg(long, value_name = "HOW", default_value = "park", value_parser = idle)]
    idle: Idle,
    /// Measured iterations per run [default: 100000 for process, as many as take 50 ms for steady]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count())]
    iterations: Option<u64>,
    /// Warm-up iterations per run
    #[arg(long, value_name = "N", default_value_t = OverheadSettings::default().warm_up, allow_hyphen_values = true, value_parser = count())]
    warm_up: u64,
    /// Number of measurements of each case, alternating; the result is the median
    #[arg(long, value_name = "N", default_value_t = 9, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Measured time span: process (from building to the end, including start and stop), steady (within the
    /// run, after the warm-up) or both
    #[arg(long, value_name = "HOW", default_value = "both", value_parser = methods())]
    method: Method,
    /// Other runtime to compare with, which runs the same cases alternately
    #[arg(long, value_name = "NAME", value_parser = ["holoscan"])]
    peer: Option<String>,
    /// The same cases with operators in Python, too: an interpreter that can import onbeat, and the peer
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = "python3")]
    python: Option<PathBuf>,
    /// Iterations per run of the peer
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "peer", allow_hyphen_values = true, value_parser = count())]
    peer_iterations: u64,
    /// Write a plot of the results to this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

impl OverheadArguments {
    pub fn settings(&self) -> OverheadSettings {
        let or_all = |chosen: &[OverheadCase]| {
            if chosen.is_empty() { OverheadCase::ALL.to_vec() } else { once(chosen) }
        };
        let schedulers =
            if self.schedulers.is_empty() { SchedulerVariant::ALL.to_vec() } else { once(&self.schedulers) };
        let workers: Vec<usize> = self.workers.iter().map(|&workers| usize::from(workers)).collect();
        OverheadSettings {
            cases: or_all(&self.cases),
            schedulers,
            workers: once(&workers),
            cores: self.cores.as_ref().map_or(Vec::new(), |cores| cores.iter().collect()),
            idle: self.idle,
            iterations: self.iterations,
            warm_up: self.warm_up,
            runs: usize::from(self.runs),
            method: self.method,
            python: self.python.clone(),
            peer: self.peer.as_ref().map(|_| OverheadPeer {
                python: self.python.clone().unwrap_or_else(|| "python3".into()),
                iterations: self.peer_iterations,
            }),
        }
    }
}

/// Removes duplicates, so that each item is measured once.
fn once<T: PartialEq + Copy>(chosen: &[T]) -> Vec<T> {
    let mut once = Vec::new();
    for item in chosen {
        if !once.contains(item) {
            once.push(*item);
        }
    }
    once
}

fn cases() -> impl TypedValueParser<Value = OverheadCase> {
    PossibleValuesParser::new(OverheadCase::ALL.map(OverheadCase::name))
        .try_map(|name| OverheadCase::from_name(&name).ok_or("unknown case"))
}

fn kinds() -> impl TypedValueParser<Value = SchedulerVariant> {
    PossibleValuesParser::new(SchedulerVariant::ALL.map(SchedulerVariant::name))
        .try_map(|name| SchedulerVariant::from_name(&name).ok_or("unknown scheduler"))
}

fn methods() -> impl TypedValueParser<Value = Method> {
    let all = [Method::Process, Method::Steady, Method::Both];
    PossibleValuesParser::new(all.map(Method::name))
        .try_map(|name| Method::from_name(&name).ok_or("unknown method"))
}

fn placements() -> impl TypedValueParser<Value = queue::Placement> {
    let all = [queue::Placement::Apart, queue::Placement::Free];
    PossibleValuesParser::new(all.map(queue::Placement::name))
        .try_map(move |name| all.into_iter().find(|place| place.name() == name).ok_or("unknown placement"))
}

/// Parser of a count, whose upper bound catches typing errors.
fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=1_000_000_000_000)
}

fn idle(text: &str) -> Result<Idle, String> {
    text.parse()
}
