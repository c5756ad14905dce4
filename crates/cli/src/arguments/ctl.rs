//! What may be typed after `onbeat ctl SOCKET`.

use super::Format;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat run fm.toml --control fm.ctl                   a run that can be watched and steered
  onbeat ctl fm.ctl status --watch                      what everything does, once a second
  onbeat ctl fm.ctl top                                 rates, latencies, misses and their causes, live
  onbeat ctl fm.ctl set squelch.open=-40           another value, from the next sample on
  onbeat ctl fm.ctl set tune.shift=\"-40 kHz\" --at 96000 at just that sample of its input
  onbeat ctl fm.ctl pause                               all sources; resume lets them go on
  onbeat ctl fm.ctl stop                                the end, files finished";

#[derive(Debug, Args)]
pub struct CtlArguments {
    /// The control socket of the run: what --control or the key `control` of its file says
    pub socket: PathBuf,
    #[command(subcommand)]
    pub order: CtlOrder,
}

#[derive(Debug, Subcommand)]
pub enum CtlOrder {
    /// Show what every operator does, and what is in every edge
    Status(StatusArguments),
    /// Show rates, latencies, depths, misses and what made them, again every second
    Top,
    /// Pause all sources, or one operator
    Pause(OperatorArgument),
    /// Let everything go on, or one operator
    Resume(OperatorArgument),
    /// Give a parameter of an operator another value
    Set(SetArguments),
    /// End the run as Ctrl-C does, or one operator
    Stop(OperatorArgument),
    /// Open or close a gate
    Gate(GateArguments),
    /// Ring an event
    Ring {
        /// Its name, as in `when = { event = NAME }`
        event: String,
    },
}

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Again every second until the run ends; as JSON, one line each
    #[arg(long, short)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct OperatorArgument {
    /// The operator, in a subgraph SUBGRAPH/OPERATOR [default: the whole run]
    pub operator: Option<String>,
}

#[derive(Debug, Args)]
pub struct SetArguments {
    /// `operator.parameter=value`, `radio/demod.gain=2`
    #[arg(value_name = "OPERATOR.PARAMETER=VALUE")]
    pub assignment: String,
    /// At this sample of the operator's input, counted from 0 [default: the next one]
    #[arg(long, value_name = "SAMPLE", allow_hyphen_values = true)]
    pub at: Option<u64>,
}

#[derive(Debug, Args)]
pub struct GateArguments {
    /// Its name, as in `when = { gate = NAME }`
    pub gate: String,
    /// What becomes of it
    #[arg(value_enum)]
    pub position: GatePosition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GatePosition {
    /// Operators may pass
    Open,
    /// None may
    Close,
}
