//! Operator kinds of the signal-processing kernels.

use crate::dsp::{
    Agc, AmDemod, BandPass, BandStop, Deemphasis, FirDecimator, FirMethod, FirSample, FirTaps, GainSample,
    HighPass, IqBalance, Magnitude, QuadDemod, Quality, Resampler, Saxpy, Shift, SsbDemod,
};
use num_complex::Complex;
use onbeat_runtime::{Decibels, Error, Folders, Hertz, InPlace, Kind, Registry, Seconds, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A frequency shift.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShiftParameters {
    /// Frequency offset to add to every frequency, positive or negative; its magnitude must be below half of
    /// the sample rate.
    shift: Hertz,
}

fn shift(p: &ShiftParameters, _: &Folders) -> Result<InPlace<Shift>, Error> {
    Shift::new(p.shift.0).map(InPlace::new)
}

/// A low-pass filter.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilterParameters {
    /// Middle of the transition between pass band and stop band, where the amplitude is halved.
    cutoff: Hertz,
    /// Width of the transition; a narrower one costs more computation.
    transition: Hertz,
    /// Stop-band attenuation, from 20 to 120 dB; the pass-band ripple is equally small.
    #[serde(default = "sixty")]
    attenuation: Decibels,
    /// How to compute: `direct`, each output at once; `fft`, faster for long filters, but each output
    /// waits for its block of up to 16 times as many samples as the filter has taps; `auto`, whichever is
    /// faster.
    #[serde(default)]
    method: FirMethod,
}

fn filter<T: FirSample>(p: &FilterParameters, _: &Folders) -> Result<Stream<FirDecimator<T>>, Error> {
    let filter = FirDecimator::for_rate(1, Some(p.cutoff.0), Some(p.transition.0), p.attenuation.0)?;
    Ok(Stream::new(filter.method(p.method)))
}

/// A low-pass filter that keeps every n-th sample.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecimateParameters {
    /// Decimation factor, from 1 to 4096: one of this many samples is kept.
    factor: u32,
    /// Middle of the transition between pass band and stop band, below half of the output rate; without it,
    /// 90 % of that.
    #[serde(default)]
    cutoff: Option<Hertz>,
    /// Width of the transition; a narrower one costs more computation. Without it, a tenth of the output
    /// rate.
    #[serde(default)]
    transition: Option<Hertz>,
    /// Stop-band attenuation, from 20 to 120 dB; the pass-band ripple is equally small.
    #[serde(default = "sixty")]
    attenuation: Decibels,
    /// How to compute: `direct`, each output at once; `fft`, faster for long filters, but each output
    /// waits for its block of up to 16 times as many samples as the filter has taps; `auto`, whichever is
    /// faster.
    #[serde(default)]
    method: FirMethod,
}

fn sixty() -> Decibels {
    Decibels(60.0)
}

fn decimate<T: FirSample>(p: &DecimateParameters, _: &Folders) -> Result<Stream<FirDecimator<T>>, Error> {
    let hz = |value: Option<Hertz>| value.map(|Hertz(hz)| hz);
    let filter = FirDecimator::for_rate(p.factor, hz(p.cutoff), hz(p.transition), p.attenuation.0)?;
    Ok(Stream::new(filter.method(p.method)))
}

/// The magnitude of complex samples.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MagnitudeParameters {
    /// Send the power, the square of the magnitude, instead.
    #[serde(default)]
    power: bool,
}

fn magnitude(p: &MagnitudeParameters, _: &Folders) -> Result<Stream<Magnitude>, Error> {
    Ok(Stream::new(if p.power { Magnitude::power() } else { Magnitude::new() }))
}

/// Frequency demodulation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuadDemodParameters {
    /// Frequency deviation from the centre of the channel that gives an output of 1; below half of the sample
    /// rate.
    deviation: Hertz,
}

fn demod(p: &QuadDemodParameters, _: &Folders) -> Result<Stream<QuadDemod>, Error> {
    QuadDemod::new(p.deviation.0).map(Stream::new)
}

/// FM de-emphasis.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeemphasisParameters {
    /// Time constant: 50 µs in Europe, 75 µs in America.
    #[serde(default = "europe")]
    tau: Seconds,
}

fn europe() -> Seconds {
    Seconds(50e-6)
}

fn deemphasis(p: &DeemphasisParameters, _: &Folders) -> Result<InPlace<Deemphasis>, Error> {
    Deemphasis::new(p.tau.0).map(InPlace::new)
}

/// A sample rate conversion, to a `rate` or by the ratio `up` / `down`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResampleParameters {
    /// New sample rate; input and output rate must be whole numbers of hertz.
    #[serde(default)]
    rate: Option<Hertz>,
    /// Numerator of the rate ratio, together with `down`; an alternative to `rate`.
    #[serde(default)]
    up: Option<u32>,
    /// Denominator of the rate ratio: `up` output samples per `down` input samples; both at most 1024 in
    /// lowest terms.
    #[serde(default)]
    down: Option<u32>,
    /// Pass band as a share of the lower Nyquist frequency, from 0.1 to 0.98; values near 1 cost more.
    #[serde(default = "most")]
    pass_band: f64,
    /// Attenuation of images and aliases, from 20 to 120 dB.
    #[serde(default = "eighty")]
    attenuation: Decibels,
}

fn most() -> f64 {
    Quality::default().pass_band
}

fn eighty() -> Decibels {
    Decibels(Quality::default().attenuation_db)
}

fn resample<T: FirSample>(p: &ResampleParameters, _: &Folders) -> Result<Stream<Resampler<T>>, Error> {
    let quality = Quality { pass_band: p.pass_band, attenuation_db: p.attenuation.0 };
    let resampler = match (p.rate, p.up, p.down) {
        (Some(Hertz(rate_hz)), None, None) => Resampler::to_rate(rate_hz, quality),
        (None, None, None) => Err(Error::new("needs `rate`, or `up` and `down`: give one of these")),
        (None, up, down) => Resampler::new(up.unwrap_or(1), down.unwrap_or(1), quality),
        (Some(_), ..) => Err(Error::new(
            "has `rate` and also `up` or `down`: give either `rate`, or `up` and \
                                         `down`",
        )),
    };
    resampler.map(Stream::new)
}

/// Automatic gain control.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgcParameters {
    /// Mean magnitude of the output.
    #[serde(default = "one")]
    target: f64,
    /// Time constant while the signal gets louder.
    #[serde(default = "ten_ms")]
    attack: Seconds,
    /// Time constant while the signal gets softer.
    #[serde(default = "half_second")]
    decay: Seconds,
    /// Highest gain. It keeps the noise in silence from being amplified to the target.
    #[serde(default = "sixty")]
    most: Decibels,
}

fn one() -> f64 {
    1.0
}

fn ten_ms() -> Seconds {
    Seconds(0.01)
}

fn half_second() -> Seconds {
    Seconds(0.5)
}

fn agc<T: GainSample>(p: &AgcParameters, _: &Folders) -> Result<InPlace<Agc<T>>, Error> {
    Agc::new(p.attack.0, p.decay.0, p.target, 10f64.powf(p.most.0 / 20.0)).map(InPlace::new)
}

/// Scale and offset.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaxpyParameters {
    /// Factor.
    a: f32,
    /// Offset.
    #[serde(default)]
    b: f32,
}

fn saxpy(p: &SaxpyParameters, _: &Folders) -> Result<InPlace<Saxpy>, Error> {
    Saxpy::new(p.a, p.b).map(InPlace::new)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let low_pass = "cutoff = \"10 kHz\"\ntransition = \"4 kHz\"";
    let fir = "low-pass filter without delay";
    registry.add(
        Kind::new("freq.shift", "shifts every frequency", "shift = \"-40 kHz\"", shift)
            .about(include_str!("about/freq_shift.md")),
    );
    registry.add(
        Kind::new("fir.filter", fir, low_pass, filter::<Complex<f32>>).about(include_str!("about/fir.md")),
    );
    registry.add(Kind::new("fir.filter.real", fir, low_pass, filter::<f32>));
    let fir = "low-pass filter that keeps every n-th sample";
    registry.add(
        Kind::new("fir.decimate", fir, "factor = 4", decimate::<Complex<f32>>)
            .about(include_str!("about/fir.md")),
    );
    registry.add(Kind::new("fir.decimate.real", fir, "factor = 4", decimate::<f32>));
    registry.add(Kind::kernel::<BandPass<Complex<f32>>>());
    registry.add(Kind::kernel::<BandPass<f32>>().named("fir.band_pass.real"));
    registry.add(Kind::kernel::<BandStop<Complex<f32>>>());
    registry.add(Kind::kernel::<BandStop<f32>>().named("fir.band_stop.real"));
    registry.add(Kind::kernel::<HighPass<Complex<f32>>>());
    registry.add(Kind::kernel::<HighPass<f32>>().named("fir.high_pass.real"));
    registry.add(Kind::operator::<FirTaps<Complex<f32>>>());
    registry.add(Kind::operator::<FirTaps<f32>>().named("fir.taps.real"));
    registry.add(Kind::kernel::<AmDemod>());
    registry.add(Kind::kernel::<SsbDemod>());
    registry.add(Kind::map::<IqBalance>());
    let text = "automatic gain control";
    registry.add(Kind::new("agc", text, "target = 0.25", agc::<f32>).about(include_str!("about/agc.md")));
    registry.add(Kind::new("agc.complex", text, "target = 0.25", agc::<Complex<f32>>));
    registry.add(
        Kind::new("magnitude", "magnitude of complex samples, or their power", "", magnitude)
            .about(include_str!("about/magnitude.md")),
    );
    registry.add(
        Kind::new("quad.demod", "frequency demodulation", "deviation = \"75 kHz\"", demod)
            .about(include_str!("about/quad_demod.md")),
    );
    registry.add(
        Kind::new(
            "deemphasis",
            "FM de-emphasis: the treble cut of a receiver",
            "tau = \"50 us\"",
            deemphasis,
        )
        .about(include_str!("about/deemphasis.md")),
    );
    let rate = "changes the sample rate";
    registry.add(
        Kind::new("resample", rate, "rate = \"48 kHz\"", resample::<f32>)
            .about(include_str!("about/resample.md")),
    );
    registry.add(Kind::new("resample.complex", rate, "up = 3\ndown = 2", resample::<Complex<f32>>));
    registry.add(Kind::new("saxpy", "y = a · x + b", "a = 0.5", saxpy).about(include_str!("about/saxpy.md")));
}
