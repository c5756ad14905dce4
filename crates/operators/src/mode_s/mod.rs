//! Mode S: broadcasts and replies of aircraft at 1090 MHz, from samples to text.
//!
//! | type | description |
//! |---|---|
//! | [`FrameSearch`] | finds frames in magnitudes, without chunks |
//! | [`Demod`] | the search as an operator: `mode_s.demod` |
//! | [`Frame`] | one frame, its parity and its address |
//! | [`Decode`] | decodes frames to lines of JSON: `mode_s.decode` |
//! | [`FrameSource`] | frames from other programs: `mode_s.source` |
//! | [`FrameSink`] | frames to other programs: `mode_s.sink` |
//!
//! The fields are read by our own code. The crate adsb has no position for a quarter of the eastern
//! hemisphere and no altitude below 0, adsb_deku 0.8 does not build with the versions of deku that are not
//! withdrawn, and rs1090 0.7 brings 157 packages. `ci/formats` compares ours with pyModeS.

mod bits;
mod cpr;
mod decode;
mod demod;
mod feed;
mod fields;
mod frame;
mod known;
#[cfg(test)]
mod plain;
mod position;
mod preambles;
mod read;
mod search;
mod slicer;
mod starts;

pub use decode::Decode;
pub use demod::{Demod, MagnitudeSample};
pub use feed::{FrameInputFormat, FrameOutputFormat, FrameSink, FrameSource};
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

/// A decoder.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModeSDecodeParameters {
    /// Latitude of the receiver in degrees, north above 0. With it and `longitude`, aircraft on the ground
    /// have positions.
    #[serde(default)]
    latitude: Option<f64>,
    /// Longitude of the receiver in degrees, east above 0.
    #[serde(default)]
    longitude: Option<f64>,
}

fn decode(p: &ModeSDecodeParameters, _: &Folders) -> Result<Decode, Error> {
    match (p.latitude, p.longitude) {
        (Some(latitude), Some(longitude)) => Decode::default().receiver(latitude, longitude),
        (None, None) => Ok(Decode::default()),
        _ => Err(Error::new("`latitude` and `longitude` are the place of the receiver: give both")),
    }
}

/// This kind has no parameters.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModeSNoParameters {}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "finds the frames of aircraft transponders (Mode S), at 2 MS/s";
    registry.add(Kind::new("mode_s.demod", text, "", demod::<f32>));
    registry.add(Kind::new("mode_s.demod.complex", text, "", demod::<Complex<f32>>));
    let text = "decodes Mode S frames to lines of JSON";
    registry.add(Kind::new("mode_s.decode", text, "", decode));
    feed::add_kinds(registry);
    let text = "discards Mode S frames";
    registry
        .add(Kind::new("mode_s.null", text, "", |_: &ModeSNoParameters, _| Ok(NullSink::<Frame>::default())));
}
