//! Arguments of `onbeat bench explain`.

use crate::arguments::OutputFormat;
use clap::Args;
use onbeat::Bytes;
use onbeat_bench::explain::ExplainSettings;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench explain                                  measure chains with and without explaining
  onbeat bench explain --kernels 3 --pairs 9            measure less exactly, in a few seconds";

#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// Numbers of saxpy operators in a chain, measured one after the other
    #[arg(long, value_delimiter = ',', value_name = "N,...", default_values_t = [3, 6],
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    kernels: Vec<u16>,
    /// Size of a chunk
    #[arg(long, value_name = "SIZE", default_value = "16KiB", value_parser = bytes)]
    quantum: usize,
    /// Number of runs of each chain with and without explaining; the result is the median of the differences
    #[arg(long, value_name = "N", default_value_t = 41, value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,
    /// Duration of each run, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.05, allow_hyphen_values = true)]
    seconds: f64,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

fn bytes(text: &str) -> Result<usize, String> {
    let bytes: Bytes = text.parse()?;
    bytes
        .as_usize()
        .filter(|bytes| (4..=1 << 30).contains(bytes))
        .ok_or_else(|| "write a size from 4 B to 1 GiB".to_owned())
}

impl ExplainArguments {
    pub fn settings(&self) -> ExplainSettings {
        ExplainSettings {
            kernels: self.kernels.iter().map(|&kernels| usize::from(kernels)).collect(),
            quantum: self.quantum,
            pairs: usize::from(self.pairs),
            seconds: self.seconds,
        }
    }
}
