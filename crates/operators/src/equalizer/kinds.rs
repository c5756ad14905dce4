//! Operator kind of the equalizer.

use super::{Band, BandType, Equalizer};
use onbeat_runtime::{Decibels, Error, Folders, Hertz, InPlace, Kind, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One filter of an equalizer.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BandParameters {
    /// Shape of the response.
    #[serde(rename = "type")]
    shape: BandType,
    /// Centre, corner or middle of the slope, below half of the sample rate of a channel.
    frequency: Hertz,
    /// Gain of a peaking or shelf band, from -60 to 60 dB.
    #[serde(default)]
    gain: Option<Decibels>,
    /// Quality, from 0.01 to 1000: frequency divided by bandwidth, or steepness of the slope.
    #[serde(default = "flat")]
    q: f64,
}

fn flat() -> f64 {
    std::f64::consts::FRAC_1_SQRT_2
}

/// A cascade of filters.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EqualizerParameters {
    /// Number of interleaved channels, from 1 to 64; the sample rate of a channel is that of the stream
    /// divided by it.
    #[serde(default = "one")]
    channels: usize,
    /// The filters, from 1 to 32, each with a `type` (`peaking`, `low-shelf`, `high-shelf`, `low-pass`,
    /// `high-pass`, `notch`, `band-pass`, `all-pass`), a `frequency`, for the first three types a `gain`, and
    /// `q`, the quality, 0.7071 (√½) if it is left out.
    bands: Vec<BandParameters>,
}

fn one() -> usize {
    1
}

fn equalizer(p: &EqualizerParameters, _: &Folders) -> Result<InPlace<Equalizer>, Error> {
    let band = |band: &BandParameters| Band {
        shape: band.shape,
        frequency_hz: band.frequency.0,
        gain_db: band.gain.map(|gain| gain.0),
        q: band.q,
    };
    Equalizer::new(p.channels, p.bands.iter().map(band).collect()).map(InPlace::new)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "cascade of peaking, shelf, pass and notch filters";
    let example = "bands = [{ type = \"low-shelf\", frequency = \"100 Hz\", gain = \"3 dB\" }, \
                   { type = \"peaking\", frequency = \"2 kHz\", gain = \"-4 dB\", q = 1.5 }]";
    registry
        .add(Kind::new("equalizer", text, example, equalizer).about(include_str!("../about/equalizer.md")));
}
