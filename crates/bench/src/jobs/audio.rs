//! Stereo music: an equalizer, and a change of the sample rate.

use super::bare::{BLOCK, KernelStage, each_block, write_floats};
use super::folder::{at, read_complex};
use super::kind::{INPUT, JobInput, JobKind, JobRequest};
use super::signal::tone;
use num_complex::Complex;
use onbeat_operators::dsp::{Quality, Resampler};
use onbeat_operators::equalizer::{Band, BandType, Equalizer};
use onbeat_runtime::{Error, Map};
use std::f64::consts::{PI, TAU};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

pub(super) const KIND: JobKind = JobKind {
    about: "stereo: an equalizer of five bands, then from 48 to 44.1 kHz; a sample is one of both channels",
    rate_hz: FROM_HZ,
    seconds: 300.0,
    quality: ("SNR", "dB"),
    pipeline: PIPELINE,
    prepare,
    judge,
    bare: Some(bare),
};

/// One chain for each channel. Pass band and attenuation are those of sox's `rate -m`.
const PIPELINE: &str = r#"
name = "audio"
sync_files = false
operator = [
    { name = "file", kind = "iq.source.real", path = "input", format = "rf32_le", sample_rate = "48 kHz", channels = 2 },
    { name = "left", kind = "equalizer", bands = [
        { type = "low-shelf", frequency = "100 Hz", gain = "3 dB", q = 0.7 },
        { type = "peaking", frequency = "250 Hz", gain = "-2 dB", q = 1.0 },
        { type = "peaking", frequency = "1 kHz", gain = "2 dB", q = 1.4 },
        { type = "peaking", frequency = "3.5 kHz", gain = "-3 dB", q = 2.0 },
        { type = "high-shelf", frequency = "8 kHz", gain = "2 dB", q = 0.7 },
    ] },
    { name = "right", kind = "equalizer", bands = [
        { type = "low-shelf", frequency = "100 Hz", gain = "3 dB", q = 0.7 },
        { type = "peaking", frequency = "250 Hz", gain = "-2 dB", q = 1.0 },
        { type = "peaking", frequency = "1 kHz", gain = "2 dB", q = 1.4 },
        { type = "peaking", frequency = "3.5 kHz", gain = "-3 dB", q = 2.0 },
        { type = "high-shelf", frequency = "8 kHz", gain = "2 dB", q = 0.7 },
    ] },
    { name = "left_rate", kind = "resample", rate = "44.1 kHz", pass_band = 0.915, attenuation = "108 dB" },
    { name = "right_rate", kind = "resample", rate = "44.1 kHz", pass_band = 0.915, attenuation = "108 dB" },
    { name = "stereo", kind = "iq.sink.real", path = "result", format = "rf32_le", channels = 2 },
]
edge = [
    { from = "file.out0", to = "left.in" },
    { from = "file.out1", to = "right.in" },
    { from = "left.out", to = "left_rate.in" },
    { from = "right.out", to = "right_rate.in" },
    { from = "left_rate.out", to = "stereo.in0" },
    { from = "right_rate.out", to = "stereo.in1" },
]
"#;

const FROM_HZ: f64 = 48e3;
const TO_HZ: f64 = 44.1e3;
const QUALITY: Quality = Quality { pass_band: 0.915, attenuation_db: 108.0 };

/// The bands: shape, frequency in hertz, gain in dB, quality.
const BANDS: [(BandType, f64, f64, f64); 5] = [
    (BandType::LowShelf, 100.0, 3.0, 0.7),
    (BandType::Peaking, 250.0, -2.0, 1.0),
    (BandType::Peaking, 1000.0, 2.0, 1.4),
    (BandType::Peaking, 3500.0, -3.0, 2.0),
    (BandType::HighShelf, 8000.0, 2.0, 0.7),
];

/// Frequencies of the tones in the left and the right channel, in hertz. All are multiples of 100 Hz, so a
/// second of the signal can be repeated without a seam.
const TONES_HZ: [[f64; 4]; 2] = [[100.0, 900.0, 4000.0, 13_000.0], [200.0, 1100.0, 7000.0, 16_000.0]];
/// Amplitude of each tone. The equalizer raises none by more than 3 dB, so their sum stays below 1.
const AMPLITUDE: f64 = 0.15;
/// The period that all tones share, in samples of the result: 10 ms.
const PERIOD: usize = 441;

fn prepare(request: &JobRequest) -> Result<u64, String> {
    let sample = |n: usize| {
        let at = |hz: f64| AMPLITUDE * (TAU * (hz * n as f64 / FROM_HZ).fract()).sin();
        TONES_HZ.map(|tones| tones.into_iter().map(at).sum::<f64>() as f32)
    };
    let second: Vec<[f32; 2]> = (0..FROM_HZ as usize).map(sample).collect();
    let samples = (request.seconds * FROM_HZ).round() as usize;
    let path = request.folder.join(INPUT);
    let mut file = File::create(&path).map_err(at(&path))?;
    for begin in (0..samples).step_by(second.len()) {
        let count = second.len().min(samples - begin);
        write_floats(&mut file, second[..count].as_flattened(), &path)?;
    }
    Ok(samples as u64)
}

/// Response of all bands to a frequency: those of the analogue filters, of which the digital ones are the
/// bilinear transforms.
fn response(hz: f64) -> Complex<f64> {
    let bend = |hz: f64| (PI * hz / FROM_HZ).tan();
    let band = |(shape, middle_hz, gain_db, q): (BandType, f64, f64, f64)| {
        let s = Complex::new(0.0, bend(hz) / bend(middle_hz));
        let root = 10f64.powf(gain_db / 40.0);
        let slope = s * root.sqrt() / q;
        match shape {
            BandType::LowShelf => root * (s * s + slope + root) / (root * s * s + slope + 1.0),
            BandType::HighShelf => root * (root * s * s + slope + 1.0) / (s * s + slope + root),
            _ => (s * s + s * root / q + 1.0) / (s * s + s / (root * q) + 1.0),
        }
    };
    BANDS.into_iter().map(band).product()
}

/// Signal-to-noise ratio in dB, over both channels: the power of the tones behind the equalizer, relative to
/// the power of the difference from them, over a second in the middle. The result may be delayed, but an
/// error of the amplitude or the phase counts.
fn judge(input: &JobInput, result: &Path) -> Result<f64, String> {
    let expected = (input.samples as f64 * TO_HZ / FROM_HZ) as usize;
    let found = fs::metadata(result).map_err(at(result))?.len() as usize / size_of::<[f32; 2]>();
    if found + PERIOD < expected {
        return Err(format!("it has {found} samples: {expected} were expected"));
    }
    let length = (found / 2).min(TO_HZ as usize) / PERIOD * PERIOD;
    let begin = (found - length) / 2;
    let frames = read_complex(result, begin, length)?;
    Ok(snr_db(&[frames.iter().map(|x| x.re).collect(), frames.iter().map(|x| x.im).collect()], begin))
}

/// The ratio for channels that begin with sample number `begin`.
fn snr_db(channels: &[Vec<f32>; 2], begin: usize) -> f64 {
    // A tone `size · sin` has the coefficient `size / 2i`.
    let sent = TONES_HZ.map(|tones| tones.map(|hz| (hz, response(hz) * Complex::new(0.0, -AMPLITUDE / 2.0))));
    let turned = |hz: f64, delay_s: f64| Complex::from_polar(1.0, -TAU * hz * delay_s);
    let ratios: Vec<(f64, Complex<f64>)> = sent
        .iter()
        .zip(channels)
        .flat_map(|(tones, audio)| tones.map(|(hz, y)| (hz, tone(audio, begin, hz, TO_HZ) / y)))
        .collect();
    // The lowest tone tells the delay roughly, and all of them together tell it exactly.
    let (lowest_hz, lowest) = ratios[0];
    let mut delay_s = -lowest.arg() / (TAU * lowest_hz);
    for _ in 0..3 {
        let late = |&(hz, ratio): &(f64, Complex<f64>)| -TAU * hz * (ratio / turned(hz, delay_s)).arg();
        let weight = ratios.iter().map(|(hz, _)| (TAU * hz).powi(2)).sum::<f64>();
        delay_s += ratios.iter().map(late).sum::<f64>() / weight;
    }
    let (mut power, mut error) = (0.0, 0.0);
    for (tones, audio) in sent.iter().zip(channels) {
        for (at, found) in audio.iter().enumerate() {
            let time = (begin + at) as f64 / TO_HZ;
            let part = |(hz, y): &(f64, Complex<f64>)| {
                2.0 * (y * Complex::from_polar(1.0, TAU * (hz * (time - delay_s)).fract())).re
            };
            let right: f64 = tones.iter().map(part).sum();
            power += right * right;
            error += (right - f64::from(*found)).powi(2);
        }
    }
    10.0 * (power / error.max(1e-15)).log10()
}

/// The kernels of one channel.
struct BareChannel {
    samples: Vec<f32>,
    equalizer: Equalizer,
    rate: KernelStage<Resampler<f32>>,
}

impl BareChannel {
    fn new() -> Result<Self, Error> {
        let band =
            |(shape, frequency_hz, gain_db, q)| Band { shape, frequency_hz, gain_db: Some(gain_db), q };
        let mut equalizer = Equalizer::new(1, BANDS.into_iter().map(band).collect())?;
        equalizer.start(FROM_HZ)?;
        let rate = KernelStage::new(Resampler::to_rate(TO_HZ, QUALITY)?, FROM_HZ, BLOCK)?;
        Ok(BareChannel { samples: Vec::with_capacity(BLOCK), equalizer, rate })
    }

    fn take(&mut self, samples: impl Iterator<Item = f32>) -> &[f32] {
        self.samples.clear();
        self.samples.extend(samples);
        self.equalizer.map(&mut self.samples);
        self.rate.take(&self.samples)
    }
}

/// What the operators do, on slices: each block is split into channels, and they are joined at the end.
fn bare(input: &JobInput, result: &Path) -> Result<(), String> {
    let channel = || BareChannel::new().map_err(|error| error.to_string());
    let (mut left, mut right) = (channel()?, channel()?);
    let mut file = BufWriter::with_capacity(1 << 16, File::create(result).map_err(at(result))?);
    let mut joined = Vec::with_capacity(BLOCK);
    let mut write = |left: &[f32], right: &[f32]| {
        joined.clear();
        joined.extend(left.iter().zip(right).map(|(left, right)| [*left, *right]));
        write_floats(&mut file, joined.as_flattened(), result)
    };
    each_block(&input.path(), |samples| {
        write(left.take(samples.iter().map(|x| x.re)), right.take(samples.iter().map(|x| x.im)))
    })?;
    loop {
        match (left.rate.finish(), right.rate.finish()) {
            ([], _) | (_, []) => break,
            (left, right) => write(left, right)?,
        }
    }
    file.flush().map_err(at(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out with this delay and gain.
    fn channels(delay_s: f64, gain: f64) -> [Vec<f32>; 2] {
        let sample = |tones: &[f64; 4], n: usize| {
            let part = |&hz: &f64| {
                let turn = Complex::from_polar(AMPLITUDE, TAU * hz * (n as f64 / TO_HZ - delay_s));
                (response(hz) * turn).im
            };
            (gain * tones.iter().map(part).sum::<f64>()) as f32
        };
        TONES_HZ.map(|tones| (0..10 * PERIOD).map(|n| sample(&tones, n)).collect())
    }

    #[test]
    fn a_delay_is_free_and_an_error_is_not() {
        for delay_s in [0.0, 3.3e-6, 0.9e-3, -0.7e-3] {
            let good = snr_db(&channels(delay_s, 1.0), 0);
            assert!(good > 130.0, "{delay_s}: {good}");
            let louder = snr_db(&channels(delay_s, 1.01), 0);
            assert!((louder - 40.0).abs() < 0.1, "{delay_s}: {louder}");
        }
        let [left, right] = channels(0.0, 1.0);
        assert!(snr_db(&[right, left], 0) < 3.0);
    }

    /// The gains of the shelves are reached far from their frequencies.
    #[test]
    fn the_response_is_that_of_the_bands() {
        for (hz, db) in [(1.0, 3.0), (23_900.0, 2.0)] {
            let found = 20.0 * response(hz).norm().log10();
            assert!((found - db).abs() < 0.05, "{hz}: {found}");
        }
    }
}
