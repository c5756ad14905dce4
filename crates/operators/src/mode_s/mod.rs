//! Mode S: broadcasts and replies of aircraft at 1090 MHz, from samples to text.
//!
//! | type | description |
//! |---|---|
//! | [`FrameSearch`] | finds frames in magnitudes, without chunks |
//! | [`Demod`] | the search as an operator: `mode_s.demod` |
//! | [`Frame`] | one frame, its parity and its address |
//! | [`Decode`] | decodes frames to lines of JSON: `mode_s.decode` |
//!
//! The crate adsb reads the fields of frames (MIT or Apache-2.0, pure Rust, two dependencies). It knows fewer
//! messages than its rivals, but adsb_deku 0.8 does not build with the versions of deku that are not
//! withdrawn, and rs1090 0.7 brings 157 packages, among them an async runtime and a compiler of protocol
//! buffers.

mod decode;
mod demod;
mod fields;
mod frame;
mod known;
#[cfg(test)]
mod plain;
mod position;
mod preambles;
mod search;
mod slicer;
mod starts;

pub use decode::Decode;
pub use demod::Demod;
pub use frame::Frame;
pub use search::{FrameSearch, RATE_HZ};

use crate::NullSink;
use num_complex::Complex;
use onbeat_runtime::{Error, Folders, Kind, Registry, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A search for Mode S frames.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModeSDemodParameters {
    /// How long an aircraft counts as known after its last frame. Most frames have their address overlaid on
    /// the parity and are accepted only from known aircraft; with 0, only DF 11, 17 and 18 are accepted.
    #[serde(default = "minute")]
    remember: Seconds,
}

fn minute() -> Seconds {
    Seconds(60.0)
}

fn demod<T: demod::MagnitudeSample>(p: &ModeSDemodParameters, _: &Folders) -> Result<Demod<T>, Error> {
    Demod::new(p.remember.0)
}

/// These kinds have no parameters.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModeSNoParameters {}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "finds the frames of aircraft transponders (Mode S), at 2 MS/s";
    registry.add(Kind::new("mode_s.demod", text, "", demod::<f32>));
    registry.add(Kind::new("mode_s.demod.complex", text, "", demod::<Complex<f32>>));
    let text = "decodes Mode S frames to lines of JSON";
    registry.add(Kind::new("mode_s.decode", text, "", |_: &ModeSNoParameters, _| Ok(Decode::default())));
    let text = "discards Mode S frames";
    registry
        .add(Kind::new("mode_s.null", text, "", |_: &ModeSNoParameters, _| Ok(NullSink::<Frame>::default())));
}
