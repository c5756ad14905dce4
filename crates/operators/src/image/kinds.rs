//! Operator kinds for frames.

use super::{
    Blur, ColourMatrix, ColourRange, ColourSpace, Convolve, Crop, FromBytes, PerFrame, Recolour, Reduce,
    Resize, ResizeFilter, Threshold, ToBytes,
};
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

/// Other colours.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecolourParameters {
    /// What comes out: `grey`, `rgb` or `ycbcr`.
    to: ColourSpace,
    /// What frames with three channels are: `rgb` or `ycbcr`. Frames without channels are grey.
    #[serde(default = "rgb")]
    from: ColourSpace,
    /// Weights of red, green and blue in grey and Y. `bt601`: 0.299, 0.587, 0.114. `bt709`: 0.2126, 0.7152,
    /// 0.0722.
    #[serde(default)]
    matrix: ColourMatrix,
    /// Range of YCbCr. `full`: 0 to 255, as in JPEG. `limited`: Y from 16 to 235, Cb and Cr from 16 to 240,
    /// as in video.
    #[serde(default = "full")]
    range: ColourRange,
}

/// Another size.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResizeParameters {
    /// Rows of the result, from 1 to 65535.
    rows: u32,
    /// Columns of the result, from 1 to 65535.
    columns: u32,
    /// Weights. `nearest`: the nearest pixel. `area`: the mean of the area. `bilinear`, `bicubic`, `lanczos`:
    /// sharper from one to the next.
    #[serde(default)]
    filter: ResizeFilter,
}

/// Part of a frame.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CropParameters {
    /// First row, from 0.
    #[serde(default)]
    top: u32,
    /// First column, from 0.
    #[serde(default)]
    left: u32,
    /// Number of rows.
    rows: u32,
    /// Number of columns.
    columns: u32,
}

/// Weights of neighbours.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConvolveParameters {
    /// Rows of weights, from 1 × 1 to 15 × 15, both odd: `[[0, 1, 0], [1, -4, 1], [0, 1, 0]]` finds edges.
    weights: Vec<Vec<f64>>,
    /// Number that sums are divided by. Without it, the sum of the weights, or 1 if that is 0.
    #[serde(default)]
    divide: Option<f64>,
    /// Number that is added after the division.
    #[serde(default)]
    offset: f64,
}

fn rgb() -> ColourSpace {
    ColourSpace::Rgb
}

fn full() -> ColourRange {
    ColourRange::Full
}

fn recolour(p: &RecolourParameters, _: &Folders) -> Result<PerFrame<Recolour>, Error> {
    Recolour::new(p.from, p.to, p.matrix, p.range).map(PerFrame::new)
}

fn resize(p: &ResizeParameters, _: &Folders) -> Result<PerFrame<Resize>, Error> {
    Resize::new(p.rows, p.columns, p.filter).map(PerFrame::new)
}

fn crop(p: &CropParameters, _: &Folders) -> Result<PerFrame<Crop>, Error> {
    Crop::new(p.top, p.left, p.rows, p.columns).map(PerFrame::new)
}

fn convolve(p: &ConvolveParameters, _: &Folders) -> Result<PerFrame<Convolve>, Error> {
    Convolve::new(&p.weights, p.divide, p.offset).map(PerFrame::new)
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
    let text = "frames between grey, RGB and YCbCr";
    let kind = Kind::new("image.convert", text, "to = \"grey\"", recolour);
    registry.add(kind.about(include_str!("../about/image_convert.md")));
    let text = "frames of another size";
    let kind = Kind::new("image.resize", text, "rows = 480\ncolumns = 640", resize);
    registry.add(kind.about(include_str!("../about/image_resize.md")));
    let text = "cuts a rectangle out of frames";
    registry.add(Kind::new("image.crop", text, "rows = 480\ncolumns = 640", crop));
    let text = "weighted sums of neighbours: edges, sharpening, smoothing";
    let example = "weights = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]\noffset = 128";
    let kind = Kind::new("image.convolve", text, example, convolve);
    registry.add(kind.about(include_str!("../about/image_convolve.md")));
    let text = "real samples to bytes, scaled, rounded and limited to 0 to 255";
    let bytes = |p: &ConversionParameters, _: &Folders| ToBytes::scaled(p.scale, p.offset).map(PerFrame::new);
    registry.add(Kind::new("image.bytes", text, "", bytes));
    let text = "bytes to real samples, from 0 to 255 or scaled";
    let real =
        |p: &ConversionParameters, _: &Folders| FromBytes::scaled(p.scale, p.offset).map(PerFrame::new);
    registry.add(Kind::new("image.real", text, "", real));
}
