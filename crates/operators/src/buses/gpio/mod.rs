//! Lines of GPIO chips, by the kernel's character devices: buttons, pulses of sensors, relays, lamps.
//!
//! | module | contents |
//! |---|---|
//! | `line` | which line, and its request |
//! | `source`, `sink` | the operators |

mod line;
mod sink;
mod source;

pub use line::{GpioBias, GpioDrive, GpioEdges};
pub use sink::GpioSink;
pub use source::GpioSource;

use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<GpioSource>());
    registry.add(Kind::operator::<GpioSink>());
}
