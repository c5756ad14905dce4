//! What may be typed after `onbeat bench pipeline` and `onbeat bench plan`.

use super::{Format, idle, once};
use crate::arguments::PipelineArguments;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use onbeat::{Idle, Scheduler};
use onbeat_bench::{pipeline, shapes};

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench pipeline fm.toml                         under each scheduler that can run it, as fast as it can
  onbeat bench pipeline fm.toml --mode greedy,pinned --cores 0,1
  onbeat bench pipeline fm.toml --pace real --seconds 5 with the time that its sources keep";

pub const PLAN_EXAMPLES: &str = "\
EXAMPLES
  onbeat bench plan                                     ten graphs drawn at random: is what the plan recommends the fastest?
  onbeat bench plan --shapes 30 --seed 7                thirty others";

#[derive(Debug, Args)]
pub struct BenchPipelineArguments {
    #[command(flatten)]
    pub pipeline: PipelineArguments,
    /// Under which schedulers [default: all that can run it]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = schedulers())]
    mode: Vec<Scheduler>,
    /// How long one run takes at most
    #[arg(long, value_name = "S", default_value_t = pipeline::PipelineSettings::default().seconds, allow_hyphen_values = true)]
    seconds: f64,
    /// How often it is run under each scheduler, all in turn; shown is the median
    #[arg(long, value_name = "N", default_value_t = 5, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
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
    /// How many graphs
    #[arg(long, value_name = "N", default_value_t = 10, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    shapes: u16,
    /// Where the drawing begins: the same number draws the same graphs
    #[arg(long, value_name = "NUMBER", default_value_t = shapes::ShapesSettings::default().seed)]
    seed: u64,
    /// How workers wait for something to do: park, spin, spin:20us, or early:150us
    #[arg(long, value_name = "HOW", default_value = "spin", value_parser = idle)]
    idle: Idle,
    /// How long one run takes
    #[arg(long, value_name = "S", default_value_t = shapes::ShapesSettings::default().seconds, allow_hyphen_values = true)]
    seconds: f64,
    /// How often each graph is run under each scheduler, all in turn
    #[arg(long, value_name = "N", default_value_t = 5, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Measure this machine again, whatever is kept of it
    #[arg(long)]
    pub fresh: bool,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
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
            .ok_or("no scheduler")
    })
}
