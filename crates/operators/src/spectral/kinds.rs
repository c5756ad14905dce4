//! Spectra as kinds of operators.

use super::{Fft, Framed, Signal, Spectrum, Window};
use num_complex::Complex;
use onbeat_runtime::{Error, Folders, Kind, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Transforms of frames.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FftParameters {
    /// Samples of a frame, from 2 to 1048576; powers of two are fastest.
    #[serde(default = "kilo")]
    size: usize,
    /// Samples from the begin of one frame to that of the next; without it, as many as a frame has.
    #[serde(default)]
    hop: Option<usize>,
    /// How the samples of a frame are weighed: `rectangular`, `hann`, `hamming` or `blackman-harris`.
    #[serde(default)]
    window: Window,
}

/// Mean power by frequency.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpectrumParameters {
    /// Samples of a frame, from 2 to 1048576; powers of two are fastest.
    #[serde(default = "kilo")]
    size: usize,
    /// Samples from the begin of one frame to that of the next; without it, half of what a frame has.
    #[serde(default)]
    hop: Option<usize>,
    /// How the samples of a frame are weighed: `rectangular`, `hann`, `hamming` or `blackman-harris`.
    #[serde(default)]
    window: Window,
    /// Of so many frames the mean is sent.
    #[serde(default = "ten")]
    average: usize,
}

fn kilo() -> usize {
    1024
}

fn ten() -> usize {
    10
}

fn fft<T: Signal>(p: &FftParameters, _: &Folders) -> Result<Framed<T, Fft>, Error> {
    Framed::new(p.size, p.hop.unwrap_or(p.size), p.window, Fft::default())
}

fn spectrum<T: Signal>(p: &SpectrumParameters, _: &Folders) -> Result<Framed<T, Spectrum>, Error> {
    let hop = p.hop.unwrap_or((p.size / 2).max(1));
    Framed::new(p.size, hop, p.window, Spectrum::new(p.average)?)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "Fourier transforms of frames";
    registry.add(Kind::new("fft", text, "size = 1024", fft::<Complex<f32>>));
    registry.add(Kind::new("fft.real", text, "size = 1024", fft::<f32>));
    let text = "power by frequency in dB, averaged";
    registry.add(Kind::new("spectrum", text, "size = 1024\naverage = 20", spectrum::<Complex<f32>>));
    registry.add(Kind::new("spectrum.real", text, "size = 1024\naverage = 20", spectrum::<f32>));
}
