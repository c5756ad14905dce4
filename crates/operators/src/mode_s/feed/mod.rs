//! Frames from and to other programs.
//!
//! | module | contents |
//! |---|---|
//! | `avr`, `beast` | the two formats of frames, read byte by byte, and written |
//! | `sbs` | lines of decoded fields |
//! | `ticks` | the receivers' counters of 12 MHz |
//! | `unit` | messages of a feed, and counts of what is skipped |
//! | `clients` | programs that receive, each with its queue |
//! | `sink`, `source` | the operators |

mod avr;
mod beast;
mod clients;
mod sbs;
mod sink;
mod source;
#[cfg(test)]
mod tests;
mod ticks;
mod unit;

pub use sink::{FrameOutputFormat, FrameSink};
pub use source::{FrameInputFormat, FrameSource};

use onbeat_runtime::{Kind, Registry};

pub(super) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<FrameSink>());
    registry.add(Kind::operator::<FrameSource>());
}
