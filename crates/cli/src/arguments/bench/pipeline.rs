//! Arguments of `onbeat bench pipeline` and `onbeat bench plan`.

use super::{OutputFormat, idle, once};
use crate::arguments::PipelineArguments;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use onbeat::{Idle, Scheduler};
use onbeat_bench::{pipeline, shapes};

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench pipeline fm.toml                         measure under each scheduler
  onbeat bench pipeline fm.toml --mode greedy,pinned --cores 0,1
                                                        measure two schedulers, on two cores
  onbeat bench pipeline fm.toml --pace real --seconds 5 measure at the sample rates of its sources";

pub const PLAN_EXAMPLES: &str = "\
EXAMPLES
  onbeat bench plan                                     check recommendations for ten random graphs
  onbeat bench plan --shapes 30 --seed 7                check it for thirty other graphs";

#[derive(Debug, Args)]
pub struct BenchPipelineArguments {
    #[command(flatten)]
    pub pipeline: PipelineArguments,
    /// Schedulers to measure [default: all that can run the pipeline]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = schedulers())]
    mode: Vec<Scheduler>,
    /// Longest duration of one run, in seconds
    #[arg(long, value_name = "S", default_value_t = pipeline::PipelineSettings::default().seconds, allow_hyphen_values = true)]
    seconds: f64,
    /// Number of runs under each scheduler, alternating; the result is the median
    #[arg(long, value_name = "N", default_value_t = 5, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

impl BenchPipelineArguments {
    pub fn settings(&self) -> pipeline::PipelineSettings {
        pipeline::PipelineSettings {
            schedulers: once(&self.mode),
            seconds: self.seconds,
            rounds: usize::from(self.rounds),
        }
    }
}

#[derive(Debug, Args)]
pub struct BenchPlanArguments {
    /// Number of graphs
    #[arg(long, value_name = "N", default_value_t = 10, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    shapes: u16,
    /// Seed of the random numbers; the same seed gives the same graphs
    #[arg(long, value_name = "NUMBER", default_value_t = shapes::ShapesSettings::default().seed)]
    seed: u64,
    /// How idle workers wait: park, spin, spin:20us (then park) or early:150us (before a source is due)
    #[arg(long, value_name = "HOW", default_value = "spin", value_parser = idle)]
    idle: Idle,
    /// Duration of one run, in seconds
    #[arg(long, value_name = "S", default_value_t = shapes::ShapesSettings::default().seconds, allow_hyphen_values = true)]
    seconds: f64,
    /// Number of runs of each graph under each scheduler, alternating
    #[arg(long, value_name = "N", default_value_t = 5, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Measure this machine again, ignoring cached results
    #[arg(long)]
    pub fresh: bool,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

impl BenchPlanArguments {
    pub fn settings(&self) -> shapes::ShapesSettings {
        shapes::ShapesSettings {
            shapes: usize::from(self.shapes),
            seed: self.seed,
            idle: self.idle,
            seconds: self.seconds,
            rounds: usize::from(self.rounds),
        }
    }
}

fn schedulers() -> impl TypedValueParser<Value = Scheduler> {
    const ALL: [(&str, Scheduler); 5] = [
        ("greedy", Scheduler::Greedy),
        ("event", Scheduler::Event),
        ("pinned", Scheduler::Pinned),
        ("replicated", Scheduler::Replicated),
        ("custom", Scheduler::Custom),
    ];
    PossibleValuesParser::new(ALL.map(|(name, _)| name)).try_map(|name| {
        ALL.into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, scheduler)| scheduler)
            .ok_or("unknown scheduler")
    })
}
