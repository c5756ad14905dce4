//! CAN buses: frames from and to an interface (SocketCAN), as text, and their signals as values.
//!
//! | module | contents |
//! |---|---|
//! | `frame` | a frame: [`CanFrame`] |
//! | `log` | frames in candump's log format |
//! | `layout`, `place` | where a signal is in a frame: [`SignalLayout`]; and in which frames |
//! | `dbc` | signals of DBC files |
//! | `interface` | an interface from its opening to its end |
//! | `filters`, `errors` | filters of frames; frames that tell of errors |
//! | `source`, `sink`, `convert`, `signals` | the operators |

mod convert;
mod dbc;
mod errors;
mod filters;
mod frame;
mod interface;
mod layout;
mod log;
mod place;
mod signals;
mod sink;
mod source;

pub use convert::{CanParse, CanText};
pub use frame::CanFrame;
pub use layout::{BitsMeaning, ByteOrder, SignalLayout};
pub use signals::{CanFrameMaker, CanSignal};
pub use sink::CanSink;
pub use source::CanSource;

use crate::streams::{time_ns, usual};
use onbeat_runtime::{Bytes, Error, Folders, Kind, Registry, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Frames from a CAN interface.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CanSourceParameters {
    /// The interface, such as `can0`.
    interface: String,
    /// Frames to receive, as in candump: `"123:7FF"` is an identifier and the bits of it that count, in
    /// hexadecimal; 8 digits are an identifier of 29 bits, `~` instead of `:` takes all others. A frame
    /// passes if one of the filters takes it; without filters, all frames pass.
    #[serde(default)]
    filters: Vec<String>,
    /// Whether the time in the frames is that of the controller's own clock, if it has one.
    #[serde(default)]
    hardware_time: bool,
    /// Size of the socket's buffer to request; a frame takes about 0.8 KiB of it.
    #[serde(default)]
    receive_buffer: Option<Bytes>,
    /// With `on_error = "restart"`: how long to wait for an interface that went down.
    #[serde(default = "usual")]
    patience: Seconds,
}

/// Frames to a CAN interface.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CanSinkParameters {
    /// The interface, such as `can0`.
    interface: String,
    /// How long to wait after a stop until the bus has taken the rest. With `on_error = "restart"` also: how
    /// long to wait for an interface that went down.
    #[serde(default = "usual")]
    patience: Seconds,
}

fn source(p: &CanSourceParameters, _: &Folders) -> Result<CanSource, Error> {
    let buffer = match p.receive_buffer {
        Some(Bytes(bytes)) => {
            crate::check::within("receive_buffer", bytes, 1.0, 1e9, "4 MiB hold 5,000 frames")?;
            Some(bytes as usize)
        }
        None => None,
    };
    let source = CanSource::new(&p.interface, filters::filters(&p.filters)?)?;
    let source = source.receive_buffer(buffer).hardware_time(p.hardware_time);
    Ok(source.patience(time_ns("patience", p.patience)?))
}

fn sink(p: &CanSinkParameters, _: &Folders) -> Result<CanSink, Error> {
    Ok(CanSink::new(&p.interface)?.patience(time_ns("patience", p.patience)?))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let about = include_str!("../../about/can.md");
    let example = "interface = \"can0\"";
    registry.add(Kind::new("can.source", "receives frames from a CAN bus", example, source).about(about));
    registry.add(Kind::new("can.sink", "sends frames to a CAN bus", example, sink).about(about));
    registry.add(Kind::operator::<CanText>());
    registry.add(Kind::operator::<CanParse>());
    registry.add(Kind::operator::<CanSignal>());
    registry.add(Kind::operator::<CanFrameMaker>());
    onbeat_link::add_kinds_of::<CanFrame>(registry, "link.sink.can", "link.source.can");
}
