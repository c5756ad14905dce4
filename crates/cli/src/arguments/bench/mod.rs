//! What may be typed after `onbeat bench`.

mod explain;
mod pipeline;
mod realtime;
mod saxpy;

pub use explain::ExplainArguments;
pub use pipeline::{BenchPipelineArguments, BenchPlanArguments};
pub use realtime::RealtimeArguments;
pub use saxpy::SaxpyArguments;

use super::Format;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use onbeat::Idle;
use onbeat_bench::overhead::{Method, OverheadCase, OverheadPeer, OverheadSettings, SchedulerVariant};
use onbeat_bench::queue;
use onbeat_os::CoreSet;
use std::path::PathBuf;

const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench overhead                                 what the engine costs per iteration, and where the break-even is
  onbeat bench overhead --cases tx_rx --format json     one case, for programs
  onbeat bench overhead --plot overhead.svg             as a picture, too
  onbeat bench overhead --peer holoscan --python holoscan/bin/python
                                                        beside Holoscan, in turn";

const QUEUE_EXAMPLES: &str = "\
EXAMPLES
  onbeat bench queue                                    as published: 300000 items, 600000 from 8 producers, 10 rounds
  onbeat bench queue --plot queue.svg                   as a picture, too
  onbeat bench queue 30000 60000 4 3 --format json      smaller, for programs";

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// What the engine costs per iteration: operators that do nothing, under each scheduler
    #[command(before_help = EXAMPLES)]
    Overhead(OverheadArguments),
    /// What the work queue costs per item, beside models of a kernel's queue and channels
    #[command(before_help = QUEUE_EXAMPLES)]
    Queue(QueueArguments),
    /// The benchmark of radio runtimes: a chain of y = a · x + b on one core and several, beside the same without an engine
    #[command(before_help = saxpy::EXAMPLES)]
    Saxpy(SaxpyArguments),
    /// A pipeline of yours under each scheduler that can run it: rates, latencies, and what limits them
    #[command(before_help = pipeline::EXAMPLES)]
    Pipeline(BenchPipelineArguments),
    /// Whether `plan --measure` recommends the fastest: graphs drawn at random, expected and measured
    #[command(before_help = pipeline::PLAN_EXAMPLES)]
    Plan(BenchPlanArguments),
    /// How regularly frames come beside a load on the same core, under each policy, and why they do not
    #[command(before_help = realtime::EXAMPLES)]
    Realtime(RealtimeArguments),
    /// What it costs to say why something was late: the same chains with it and without, in turn
    #[command(before_help = explain::EXAMPLES)]
    Explain(ExplainArguments),
}

#[derive(Debug, Args)]
pub struct QueueArguments {
    /// Items of one producer
    #[arg(default_value_t = 300_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    single: u32,
    /// Items of all producers together
    #[arg(default_value_t = 600_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    multi: u32,
    /// How many producers, each a thread
    #[arg(default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    producers: u16,
    /// Which cores the threads have: apart gives the worker the first one and the producers the others, free leaves it to the kernel. Bursts
    /// are measured both ways, unless it is free
    #[arg(long, value_name = "HOW", default_value = "apart", value_parser = placements())]
    place: queue::Placement,
    /// How often everything is measured, all designs in turn; shown is the median
    #[arg(default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,
    /// Rounds in which an event may be lost, per design; 0 leaves that out
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    lost_rounds: u64,
    /// Looks at how late a sleeping worker is, per way to wait; 0 leaves that out
    #[arg(long, value_name = "N", default_value_t = 300)]
    latencies: u16,
    /// Bursts per round; 0 leaves that out
    #[arg(long, value_name = "N", default_value_t = 300)]
    bursts: u16,
    /// Items in a burst
    #[arg(long, value_name = "K", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    burst_items: u16,
    /// Microseconds from burst to burst
    #[arg(long, value_name = "US", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    burst_period_us: u32,
    /// Draw the figures into this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
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
    /// Which graphs [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = cases())]
    cases: Vec<OverheadCase>,
    /// Which schedulers; event_shared is event with every worker made to take part [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = kinds())]
    schedulers: Vec<SchedulerVariant>,
    /// How many workers event and pinned have, one number after the other [default: 1,2 for event, 2 for pinned]
    #[arg(long, value_delimiter = ',', value_name = "N,...", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    workers: Vec<u16>,
    /// Cores for the workers [default: pinned takes the first ones, the others run anywhere]
    #[arg(long, short, visible_alias = "cpus", value_name = "LIST", allow_hyphen_values = true)]
    cores: Option<CoreSet>,
    /// How workers wait for something to do: park, spin, spin:20us, or early:150us
    #[arg(long, value_name = "HOW", default_value = "park", value_parser = idle)]
    idle: Idle,
    /// Iterations that are measured in a run [default: 100000 for process, as many as take 50 ms for steady]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count())]
    iterations: Option<u64>,
    /// Iterations before that
    #[arg(long, value_name = "N", default_value_t = OverheadSettings::default().warm_up, allow_hyphen_values = true, value_parser = count())]
    warm_up: u64,
    /// How often everything is measured, all cases in turn; shown is the median
    #[arg(long, value_name = "N", default_value_t = 9, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// process: around building and running, start and stop included; steady: inside the run, after the warm-up
    #[arg(long, value_name = "HOW", default_value = "both", value_parser = methods())]
    method: Method,
    /// Another runtime that runs the same cases in turn with ours
    #[arg(long, value_name = "NAME", value_parser = ["holoscan"])]
    peer: Option<String>,
    /// The Python that has the peer
    #[arg(long, value_name = "PATH", default_value = "python3", requires = "peer")]
    python: PathBuf,
    /// Iterations of one run of the peer
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "peer", allow_hyphen_values = true, value_parser = count())]
    peer_iterations: u64,
    /// Draw the figures into this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
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
            peer: self
                .peer
                .as_ref()
                .map(|_| OverheadPeer { python: self.python.clone(), iterations: self.peer_iterations }),
        }
    }
}

/// What is named twice is measured once.
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
        .try_map(|name| OverheadCase::from_name(&name).ok_or("no case"))
}

fn kinds() -> impl TypedValueParser<Value = SchedulerVariant> {
    PossibleValuesParser::new(SchedulerVariant::ALL.map(SchedulerVariant::name))
        .try_map(|name| SchedulerVariant::from_name(&name).ok_or("no scheduler"))
}

fn methods() -> impl TypedValueParser<Value = Method> {
    let all = [Method::Process, Method::Steady, Method::Both];
    PossibleValuesParser::new(all.map(Method::name))
        .try_map(|name| Method::from_name(&name).ok_or("no method"))
}

fn placements() -> impl TypedValueParser<Value = queue::Placement> {
    let all = [queue::Placement::Apart, queue::Placement::Free];
    PossibleValuesParser::new(all.map(queue::Placement::name))
        .try_map(move |name| all.into_iter().find(|place| place.name() == name).ok_or("no place"))
}

/// More would take years.
fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=1_000_000_000_000)
}

fn idle(text: &str) -> Result<Idle, String> {
    text.parse()
}
