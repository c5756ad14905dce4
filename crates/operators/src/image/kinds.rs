//! Operator kinds for frames.

use super::{Blur, FromBytes, PerFrame, Reduce, Threshold, ToBytes};
use onbeat_runtime::{Error, Folders, InPlace, Kind, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `image.blur` has no parameters.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlainFrameParameters {}

/// A conversion between real samples and bytes.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConversionParameters {
    /// Factor: each result is `scale` times the sample, plus `offset`.
    #[serde(default = "one")]
    scale: f64,
    /// Added after the multiplication.
    #[serde(default)]
    offset: f64,
}

fn one() -> f64 {
    1.0
}

/// A limit between black and white.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ThresholdParameters {
    /// Highest sample that becomes 0, from 0 to 255; samples above it become 255. Can be changed during a
    /// run.
    level: i64,
}

/// Smaller frames.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReduceParameters {
    /// Rows and columns of a block, from 1 to 256; rows and columns beyond the last whole block are left out.
    factor: u32,
}

fn threshold(p: &ThresholdParameters, _: &Folders) -> Result<InPlace<Threshold>, Error> {
    Threshold::new(p.level).map(InPlace::new)
}

fn reduce(p: &ReduceParameters, _: &Folders) -> Result<PerFrame<Reduce>, Error> {
    Reduce::new(p.factor).map(PerFrame::new)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "smooths grey frames, with a binomial kernel of 5 × 5";
    let blur = |_: &PlainFrameParameters, _: &Folders| Ok(PerFrame::new(Blur::new()));
    registry.add(Kind::new("image.blur", text, "", blur));
    let text = "bytes above a level become 255, all others 0";
    registry.add(Kind::new("image.threshold", text, "level = 127", threshold));
    let text = "smaller grey frames: means of blocks of n × n samples";
    registry.add(Kind::new("image.reduce", text, "factor = 2", reduce));
    let text = "real samples to bytes, scaled, rounded and limited to 0 to 255";
    let bytes = |p: &ConversionParameters, _: &Folders| ToBytes::scaled(p.scale, p.offset).map(PerFrame::new);
    registry.add(Kind::new("image.bytes", text, "", bytes));
    let text = "bytes to real samples, from 0 to 255 or scaled";
    let real =
        |p: &ConversionParameters, _: &Folders| FromBytes::scaled(p.scale, p.offset).map(PerFrame::new);
    registry.add(Kind::new("image.real", text, "", real));
}
