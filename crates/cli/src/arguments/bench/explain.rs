//! What may be typed after `onbeat bench explain`.

use crate::arguments::Format;
use clap::Args;
use onbeat::Bytes;
use onbeat_bench::explain::ExplainSettings;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench explain                                  what it costs to say why something was late, with it and without in turn
  onbeat bench explain --kernels 3 --pairs 9            less exact, in some seconds";

#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// How many saxpy operators, one number after the other
    #[arg(long, value_delimiter = ',', value_name = "N,...", default_values_t = [3, 6],
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    kernels: Vec<u16>,
    /// Bytes in a chunk
    #[arg(long, value_name = "SIZE", default_value = "16KiB", value_parser = bytes)]
    quantum: usize,
    /// How often each chain is run with and without; shown is the median of the differences
    #[arg(long, value_name = "N", default_value_t = 41, value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,
    /// How long each of these runs takes
    #[arg(long, value_name = "S", default_value_t = 0.05, allow_hyphen_values = true)]
    seconds: f64,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

fn bytes(text: &str) -> Result<usize, String> {
    let bytes: Bytes = text.parse()?;
    bytes
        .as_usize()
        .filter(|bytes| (4..=1 << 30).contains(bytes))
        .ok_or_else(|| "from 4 B to 1 GiB".to_owned())
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
