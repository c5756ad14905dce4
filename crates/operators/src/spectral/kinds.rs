//! Operator kinds for spectra.

use super::{Fft, Framed, SpectralSample, Spectrum, Window};
use crate::dsp::FilterBank;
use num_complex::Complex;
use onbeat_runtime::{Decibels, Error, Folders, Kind, Registry, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fourier transforms of frames.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FftParameters {
    /// Frame length in samples, from 2 to 1048576; powers of two are fastest.
    #[serde(default = "kilo")]
    size: usize,
    /// Samples between the starts of two frames; without it, the frame length.
    #[serde(default)]
    hop: Option<usize>,
    /// Window function applied to each frame: `rectangular`, `hann`, `hamming` or `blackman-harris`.
    #[serde(default)]
    window: Window,
}

/// A power spectrum.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpectrumParameters {
    /// Frame length in samples, from 2 to 1048576; powers of two are fastest.
    #[serde(default = "kilo")]
    size: usize,
    /// Samples between the starts of two frames; without it, half the frame length.
    #[serde(default)]
    hop: Option<usize>,
    /// Window function applied to each frame: `rectangular`, `hann`, `hamming` or `blackman-harris`.
    #[serde(default)]
    window: Window,
    /// Number of frames averaged for each result.
    #[serde(default = "ten")]
    average: usize,
}

/// Channels of equal width.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChannelizerParameters {
    /// Number of channels, from 2 to 4096; powers of two are fastest. Channel 0 is around 0 Hz, and those of
    /// the upper half are the negative frequencies.
    channels: usize,
    /// Taps of the filter for each channel, from 2 to 64; more make the borders of the channels steeper and
    /// delay the output: a row waits for half of this number of rows of input.
    #[serde(default = "dozen")]
    taps_per_channel: usize,
    /// Attenuation beyond the borders of a channel, from 20 to 120 dB.
    #[serde(default = "sixty")]
    attenuation: Decibels,
}

fn dozen() -> usize {
    12
}

fn sixty() -> Decibels {
    Decibels(60.0)
}

fn channelizer(p: &ChannelizerParameters, _: &Folders) -> Result<Stream<FilterBank>, Error> {
    FilterBank::new(p.channels, p.taps_per_channel, p.attenuation.0).map(Stream::new)
}

fn kilo() -> usize {
    1024
}

fn ten() -> usize {
    10
}

fn fft<T: SpectralSample>(p: &FftParameters, _: &Folders) -> Result<Framed<T, Fft>, Error> {
    Framed::new(p.size, p.hop.unwrap_or(p.size), p.window, Fft::default())
}

fn spectrum<T: SpectralSample>(p: &SpectrumParameters, _: &Folders) -> Result<Framed<T, Spectrum>, Error> {
    let hop = p.hop.unwrap_or((p.size / 2).max(1));
    Framed::new(p.size, hop, p.window, Spectrum::new(p.average)?)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "splits a band into channels of equal width";
    registry.add(
        Kind::new("channelizer", text, "channels = 8", channelizer)
            .about(include_str!("../about/channelizer.md")),
    );
    let text = "Fourier transforms of frames";
    registry.add(Kind::new("fft", text, "size = 1024", fft::<Complex<f32>>).about(concat!(
        include_str!("../about/frames.md"),
        "\n",
        include_str!("../about/fft.md")
    )));
    registry.add(Kind::new("fft.real", text, "size = 1024", fft::<f32>));
    let text = "power spectrum in dB, averaged over frames";
    registry.add(
        Kind::new("spectrum", text, "size = 1024\naverage = 20", spectrum::<Complex<f32>>).about(concat!(
            include_str!("../about/frames.md"),
            "\n",
            include_str!("../about/spectrum.md")
        )),
    );
    registry.add(Kind::new("spectrum.real", text, "size = 1024\naverage = 20", spectrum::<f32>));
}
