//! Arguments of `onbeat bench echo`.

use super::once;
use crate::arguments::OutputFormat;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use onbeat::Seconds;
use onbeat_bench::echo::{EchoSettings, EchoTransport, EchoWait};
use std::ffi::OsString;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench echo                                     measure all transports, in about a minute
  onbeat bench echo --transports udp --intervals 1ms --rounds 9
                                                        measure one case more exactly
  onbeat bench echo --client park                       let the client sleep until an echo comes";

#[derive(Debug, Args)]
pub struct EchoArguments {
    /// Transports of the messages [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = transports())]
    transports: Vec<EchoTransport>,
    /// Times from one message to the next, measured one after the other
    #[arg(long, value_delimiter = ',', value_name = "TIME,...", default_values = ["12.3ms", "1ms"],
          allow_hyphen_values = true, value_parser = interval)]
    intervals: Vec<u64>,
    /// Size of a message in bytes
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u16).range(4..))]
    bytes: u16,
    /// Number of rounds, in which each server is measured once; the result is the median
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Duration of each measurement, in seconds
    #[arg(long, value_name = "S", default_value_t = EchoSettings::default().seconds, allow_hyphen_values = true)]
    seconds: f64,
    /// How the client waits for an echo: spin (keeps its core, so its own cost is small) or park (sleeps)
    #[arg(long, value_name = "HOW", default_value = "spin", value_parser = waits())]
    client: EchoWait,
    /// Core of the client [default: the first one]
    #[arg(long, value_name = "CORE")]
    client_core: Option<usize>,
    /// Core of the servers [default: the last one]
    #[arg(long, value_name = "CORE")]
    server_core: Option<usize>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

impl EchoArguments {
    /// Settings whose servers are this program with these arguments.
    pub fn settings(&self, server: Vec<OsString>) -> EchoSettings {
        EchoSettings {
            transports: if self.transports.is_empty() {
                EchoTransport::ALL.to_vec()
            } else {
                once(&self.transports)
            },
            intervals_ns: once(&self.intervals),
            bytes: usize::from(self.bytes),
            rounds: usize::from(self.rounds),
            seconds: self.seconds,
            client: self.client,
            client_core: self.client_core,
            server_core: self.server_core,
            server,
        }
    }
}

fn interval(text: &str) -> Result<u64, String> {
    text.parse::<Seconds>()?.as_ns().ok_or_else(|| "write a time such as 12.3ms".to_owned())
}

fn transports() -> impl TypedValueParser<Value = EchoTransport> {
    PossibleValuesParser::new(EchoTransport::ALL.map(EchoTransport::name))
        .try_map(|name| EchoTransport::from_name(&name).ok_or("unknown transport"))
}

fn waits() -> impl TypedValueParser<Value = EchoWait> {
    PossibleValuesParser::new(EchoWait::ALL.map(EchoWait::name))
        .try_map(|name| EchoWait::from_name(&name).ok_or("unknown way to wait"))
}
