//! Arguments of `onbeat ctl SOCKET`.

use super::OutputFormat;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat run fm.toml --control fm.ctl                   start a run with a control socket
  onbeat ctl fm.ctl status --watch                      show operators and edges, once a second
  onbeat ctl fm.ctl top                                 show rates, latencies and misses, live
  onbeat ctl fm.ctl set squelch.open=-40                change a parameter, from the next sample on
  onbeat ctl fm.ctl set tune.shift=\"-40 kHz\" --at 96000
                                                        change a parameter at one input sample
  onbeat ctl fm.ctl get squelch                         show the parameters that can be changed
  onbeat ctl cam.ctl fetch view frame.png                save the latest frame of the tap.image `view`
  onbeat ctl fm.ctl pause                               pause all sources; `resume` continues them
  onbeat ctl 192.168.0.7:7400/fm.radio top              watch a part of a deployment
  onbeat ctl fm.ctl stop                                end the run and finish its files";

#[derive(Debug, Args)]
pub struct CtlArguments {
    /// Control socket of the run, as given by --control or by `control` in the pipeline file; or the address
    /// of an `onbeat node` and the name of the run there, ADDRESS/NAME
    pub socket: PathBuf,
    /// Folder with authority.pem, certificate.pem and key.pem of the caller, for a node that has an identity
    #[arg(long, value_name = "DIR")]
    pub identity: Option<PathBuf>,
    /// Name of that node, as in its certificate
    #[arg(long, value_name = "NAME", requires = "identity")]
    pub node: Option<String>,
    #[command(subcommand)]
    pub order: CtlOrder,
}

#[derive(Debug, Subcommand)]
pub enum CtlOrder {
    /// Show the state of every operator and the depth of every edge
    Status(StatusArguments),
    /// Show rates, latencies, depths, misses and their causes, updated every second
    Top,
    /// Pause all sources, or one operator
    Pause(OperatorArgument),
    /// Resume all sources, or one operator
    Resume(OperatorArgument),
    /// Change a parameter of an operator
    Set(SetArguments),
    /// Show the parameters that can be changed, and their values
    Get(GetArguments),
    /// Stop the run, as Ctrl-C does, or one operator
    Stop(OperatorArgument),
    /// Open or close a gate
    Gate(GateArguments),
    /// Save what an operator hands out: a tap.image its latest frame, as PNG
    Fetch(FetchArguments),
    /// Trigger an event
    Ring {
        /// Name of the event, as in `when = { event = NAME }`
        event: String,
    },
}

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
    /// Repeat every second until the run ends; with --format json, one line per second
    #[arg(long, short)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct OperatorArgument {
    /// Operator, or SUBGRAPH/OPERATOR inside a subgraph [default: the whole run]
    pub operator: Option<String>,
}

#[derive(Debug, Args)]
pub struct SetArguments {
    /// New value of a parameter, e.g. radio/demod.gain=2
    #[arg(value_name = "OPERATOR.PARAMETER=VALUE")]
    pub assignment: String,
    /// Sample of the operator's input at which the value changes, counted from 0 [default: the next one]
    #[arg(long, value_name = "SAMPLE", allow_hyphen_values = true)]
    pub at: Option<u64>,
}

#[derive(Debug, Args)]
pub struct GetArguments {
    /// One operator, or one of its parameters [default: all]
    #[arg(value_name = "OPERATOR[.PARAMETER]")]
    pub of: Option<String>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

#[derive(Debug, Args)]
pub struct FetchArguments {
    /// Operator, or SUBGRAPH/OPERATOR inside a subgraph
    pub operator: String,
    /// File to write; `-` is stdout
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct GateArguments {
    /// Name of the gate, as in `when = { gate = NAME }`
    pub gate: String,
    /// New position of the gate
    #[arg(value_enum)]
    pub position: GatePosition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GatePosition {
    /// Let operators with this gate run
    Open,
    /// Make operators with this gate wait
    Close,
}
