//! Arguments of `onbeat bench jobs`.

use super::saxpy::{NumberList, numbers};
use super::{OutputFormat, once};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use onbeat_bench::jobs::{Job, JobsSettings};
use onbeat_os::CoreSet;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench jobs                                     measure all jobs on one and two cores
  onbeat bench jobs --jobs fm --cores 1 --seconds 20    measure one job with a shorter input
  onbeat bench jobs --adsb modes1.bin                   also measure the ADS-B receiver
  onbeat bench jobs --plot jobs.svg                     also write a plot
  onbeat bench jobs --peers=peers                       compare with others (see peers/README.md)";

#[derive(Debug, Args)]
pub struct JobsArguments {
    /// Jobs to measure [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = jobs())]
    jobs: Vec<Job>,
    /// Numbers of cores, e.g. 1-2 or 1,2,4: greedy runs on one, event and replicated on several
    #[arg(long, value_name = "LIST", default_value = "1-2", allow_hyphen_values = true, value_parser = numbers)]
    cores: NumberList,
    /// Cores to run on [default: the first ones that the process may use]
    #[arg(long, value_name = "LIST", visible_alias = "cpus", allow_hyphen_values = true)]
    on: Option<CoreSet>,
    /// Length of the input signal, in seconds [default: 100; adsb 17.84, audio 300, image 30]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    seconds: Option<f64>,
    /// Number of measurements of each case, alternating; the result is the median
    #[arg(long, value_name = "N", default_value_t = 7, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Capture for the job adsb, repeated up to the given length: unsigned bytes (cu8) at 2 MS/s
    #[arg(long, value_name = "FILE")]
    adsb: Option<PathBuf>,
    /// Compare with other programs, alternating on the same input; DIR is the project's folder `peers`
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "peers")]
    peers: Option<PathBuf>,
    /// Write a plot of the results to this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

impl JobsArguments {
    pub fn settings(&self) -> JobsSettings {
        JobsSettings {
            jobs: if self.jobs.is_empty() { Job::ALL.to_vec() } else { once(&self.jobs) },
            cores: self.cores.0.clone(),
            on: self.on.as_ref().map_or(Vec::new(), |cores| cores.iter().collect()),
            seconds: self.seconds,
            rounds: usize::from(self.rounds),
            adsb: self.adsb.clone(),
            peers: self.peers.clone(),
        }
    }
}

fn jobs() -> impl TypedValueParser<Value = Job> {
    PossibleValuesParser::new(Job::ALL.iter().map(|job| job.name()))
        .try_map(|name| Job::from_name(&name).ok_or("unknown job"))
}
