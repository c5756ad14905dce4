//! Mode S: what aircraft say about themselves at 1090 MHz, from samples to text.
//!
//! | type | does |
//! |---|---|
//! | [`Search`] | finds frames in magnitudes, without chunks |
//! | [`Demod`] | the same as an operator: `mode_s.demod` |
//! | [`Frame`] | one frame, its parity and its address |
//! | [`Decode`] | what a frame says, as a line of JSON: `mode_s.decode` |
//!
//! Fields of frames are read by the crate adsb (MIT or Apache-2.0, pure Rust, two dependencies). It knows
//! fewer messages than its rivals, but adsb_deku 0.8 does not build with the versions of deku that are not
//! withdrawn, and rs1090 0.7 brings 157 packages, among them an async runtime and a compiler of protocol
//! buffers.

mod decode;
mod demod;
mod fields;
mod frame;
mod known;
mod position;
mod search;
mod slicer;

pub use decode::Decode;
pub use demod::Demod;
pub use frame::Frame;
pub use search::{RATE_HZ, Search};

use crate::NullSink;
use num_complex::Complex;
use onbeat_runtime::{Error, Folders, Kind, Registry, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A search for frames.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DemodParameters {
    /// How long an aircraft counts as known after it was heard. Most kinds of frames have their address laid
    /// over the parity and are only believed from known aircraft; at 0 only DF 11, 17 and 18 are given.
    #[serde(default = "minute")]
    remember: Seconds,
}

fn minute() -> Seconds {
    Seconds(60.0)
}

fn demod<T: demod::Magnitude>(p: &DemodParameters, _: &Folders) -> Result<Demod<T>, Error> {
    Demod::new(p.remember.0)
}

/// There is nothing to set.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoParameters {}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "finds the frames of aircraft transponders, at 2 MS/s";
    registry.add(Kind::new("mode_s.demod", text, "", demod::<f32>));
    registry.add(Kind::new("mode_s.demod.complex", text, "", demod::<Complex<f32>>));
    let text = "what frames say, as lines of JSON";
    registry.add(Kind::new("mode_s.decode", text, "", |_: &NoParameters, _| Ok(Decode::default())));
    let text = "takes frames and lets go of them";
    registry.add(Kind::new("mode_s.null", text, "", |_: &NoParameters, _| Ok(NullSink::<Frame>::default())));
}
