//! The FM receiver: one of two stations, from complex samples at 256 kHz to audio at 48 kHz.

use super::bare::{BLOCK, KernelStage, each_block, write_floats};
use super::folder::{at, read_floats};
use super::kind::{INPUT, JobInput, JobKind, JobRequest};
use super::signal;
use num_complex::Complex;
use onbeat_operators::dsp::{Deemphasis, FirDecimator, LowPass, QuadDemod, Quality, Resampler, Shift};
use onbeat_operators::recording::{DEVIATION_HZ, EMPHASIS_S, RATE_HZ, STATION_A_HZ};
use onbeat_runtime::{Error, Kernel, Map};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

pub(super) const KIND: JobKind = JobKind {
    about: "FM receiver: shift, decimate by 2, demodulate, decimate by 4, resample to 48 kHz, de-emphasis",
    rate_hz: RATE_HZ,
    seconds: 100.0,
    quality: ("SNR", "dB"),
    pipeline: PIPELINE,
    prepare,
    judge: |_, result| signal::snr_db(&read_floats(result)?),
    bare: Some(bare),
};

/// The operators of `examples/fm_receiver.toml` between two files.
const PIPELINE: &str = r#"
name = "fm"
sync_files = false
operator = [
    { name = "iq", kind = "iq.source", path = "input", format = "cf32_le", sample_rate = "256 kHz" },
    { name = "tune", kind = "freq.shift", shift = "-40 kHz" },
    { name = "channel", kind = "fir.decimate", factor = 2, cutoff = "49.5 kHz", transition = "33 kHz", attenuation = "60 dB" },
    { name = "demod", kind = "quad.demod", deviation = "25 kHz" },
    { name = "band", kind = "fir.decimate.real", factor = 4, cutoff = "11 kHz", transition = "6 kHz", attenuation = "60 dB" },
    { name = "rate", kind = "resample", rate = "48 kHz" },
    { name = "treble", kind = "deemphasis", tau = "50 us" },
    { name = "audio", kind = "iq.sink.real", path = "result", format = "rf32_le" },
]
edge = [
    { from = "iq.out", to = "tune.in" },
    { from = "tune.out", to = "channel.in" },
    { from = "channel.out", to = "demod.in" },
    { from = "demod.out", to = "band.in" },
    { from = "band.out", to = "rate.in" },
    { from = "rate.out", to = "treble.in" },
    { from = "treble.out", to = "audio.in" },
]
"#;

const CHANNEL: LowPass = LowPass { cutoff_hz: 49.5e3, transition_hz: 33e3, attenuation_db: 60.0 };
const BAND: LowPass = LowPass { cutoff_hz: 11e3, transition_hz: 6e3, attenuation_db: 60.0 };

fn prepare(request: &JobRequest) -> Result<u64, String> {
    let wrong = |error: Error| error.to_string();
    for (name, taps) in [
        ("channel.taps", filter_taps(CHANNEL, RATE_HZ).map_err(wrong)?),
        ("band.taps", filter_taps(BAND, RATE_HZ / 2.0).map_err(wrong)?),
        ("rate.taps", resampler_taps().map_err(wrong)?),
    ] {
        write_taps(&request.folder.join(name), &taps)?;
    }
    write_signal(&request.folder.join(INPUT), request.seconds)
}

/// Writes the taps of a filter for the peers, one on each line.
pub(super) fn write_taps(path: &Path, taps: &[f32]) -> Result<(), String> {
    let lines: String = taps.iter().map(|tap| format!("{tap:e}\n")).collect();
    fs::write(path, lines).map_err(at(path))
}

/// Writes the signal of the stations. Returns the number of samples.
pub(super) fn write_signal(path: &Path, seconds: f64) -> Result<u64, String> {
    let samples = (seconds * RATE_HZ).round() as u64;
    let second = signal::second();
    let mut file = File::create(path).map_err(at(path))?;
    let mut left = samples as usize;
    while left > 0 {
        let count = left.min(second.len());
        file.write_all(bytemuck::cast_slice(&second[..count])).map_err(at(path))?;
        left -= count;
    }
    Ok(samples)
}

/// The taps of onbeat's filter, for the peers: its response to an impulse.
fn filter_taps(low_pass: LowPass, rate_hz: f64) -> Result<Vec<f32>, Error> {
    let mut stage = KernelStage::new(FirDecimator::<f32>::new(1, low_pass)?, rate_hz, BLOCK)?;
    Ok(without_zeros(&response(&mut stage, BLOCK / 2)))
}

/// The taps of onbeat's resampler from 32 to 48 kHz, at 96 kHz. Of an impulse at an even sample, every second
/// tap is in the output; of one at an odd sample, the others.
fn resampler_taps() -> Result<Vec<f32>, Error> {
    const MIDDLE: usize = BLOCK / 2;
    let mut taps = vec![0.0; 3 * BLOCK];
    for place in [MIDDLE, MIDDLE + 1] {
        let resampler = Resampler::to_rate(signal::AUDIO_HZ, Quality::default())?;
        let mut stage = KernelStage::new(resampler, RATE_HZ / 8.0, BLOCK)?;
        for (at, value) in response(&mut stage, place).into_iter().enumerate() {
            // Tap `j` from the middle is in output `k` if 2 k = 3 place + j.
            let tap = (2 * at + 3 * MIDDLE).checked_sub(3 * place);
            if let Some(tap) = tap.and_then(|tap| taps.get_mut(tap)) {
                *tap = value;
            }
        }
    }
    Ok(without_zeros(&taps))
}

/// Output for a block with a one at one place.
fn response<K: Kernel<In = f32, Out = f32>>(stage: &mut KernelStage<K>, place: usize) -> Vec<f32> {
    let mut impulse = vec![0.0; BLOCK];
    impulse[place] = 1.0;
    let mut all = stage.take(&impulse).to_vec();
    loop {
        match stage.finish() {
            [] => return all,
            more => all.extend_from_slice(more),
        }
    }
}

/// Leaves out zeros at both ends. The filters are symmetric, so the middle stays the middle.
fn without_zeros(taps: &[f32]) -> Vec<f32> {
    let is_tap = |tap: &f32| *tap != 0.0;
    let first = taps.iter().position(is_tap).unwrap_or(0);
    let end = taps.iter().rposition(is_tap).map_or(0, |last| last + 1);
    taps[first..end.max(first)].to_vec()
}

/// The receiver's kernels, and the file of audio.
struct BareReceiver<'a> {
    shift: Shift,
    channel: KernelStage<FirDecimator<Complex<f32>>>,
    demod: KernelStage<QuadDemod>,
    band: KernelStage<FirDecimator<f32>>,
    rate: KernelStage<Resampler<f32>>,
    treble: Deemphasis,
    audio: Vec<f32>,
    file: BufWriter<File>,
    path: &'a Path,
}

impl<'a> BareReceiver<'a> {
    fn new(path: &'a Path, file: File) -> Result<Self, Error> {
        let mut shift = Shift::new(-STATION_A_HZ)?;
        shift.start(RATE_HZ)?;
        let channel = KernelStage::new(FirDecimator::new(2, CHANNEL)?, RATE_HZ, BLOCK)?;
        let demod = KernelStage::new(QuadDemod::new(DEVIATION_HZ)?, channel.rate_hz, channel.most)?;
        let band = KernelStage::new(FirDecimator::new(4, BAND)?, demod.rate_hz, demod.most)?;
        let rate = Resampler::to_rate(signal::AUDIO_HZ, Quality::default())?;
        let rate = KernelStage::new(rate, band.rate_hz, band.most)?;
        let mut treble = Deemphasis::new(EMPHASIS_S)?;
        treble.start(rate.rate_hz)?;
        let file = BufWriter::with_capacity(1 << 16, file);
        Ok(BareReceiver { shift, channel, demod, band, rate, treble, audio: Vec::new(), file, path })
    }

    fn take(&mut self, samples: &mut [Complex<f32>]) -> Result<(), String> {
        self.shift.map(samples);
        let samples = self.band.take(self.demod.take(self.channel.take(samples)));
        self.audio.clear();
        self.audio.extend_from_slice(self.rate.take(samples));
        self.write()
    }

    fn write(&mut self) -> Result<(), String> {
        self.treble.map(&mut self.audio);
        write_floats(&mut self.file, &self.audio, self.path)
    }

    /// Passes on what each kernel still holds, first kernel first.
    fn finish(mut self) -> Result<(), String> {
        self.audio.clear();
        loop {
            let samples = self.channel.finish();
            if samples.is_empty() {
                break;
            }
            let samples = self.band.take(self.demod.take(samples));
            self.audio.extend_from_slice(self.rate.take(samples));
        }
        loop {
            let samples = self.demod.finish();
            if samples.is_empty() {
                break;
            }
            self.audio.extend_from_slice(self.rate.take(self.band.take(samples)));
        }
        loop {
            let samples = self.band.finish();
            if samples.is_empty() {
                break;
            }
            self.audio.extend_from_slice(self.rate.take(samples));
        }
        loop {
            match self.rate.finish() {
                [] => break,
                samples => self.audio.extend_from_slice(samples),
            }
        }
        self.write()?;
        self.file.flush().map_err(at(self.path))
    }
}

fn bare(input: &JobInput, result: &Path) -> Result<(), String> {
    let file = File::create(result).map_err(at(result))?;
    let mut receiver = BareReceiver::new(result, file).map_err(|error| error.to_string())?;
    each_block(&input.path(), |samples| receiver.take(samples))?;
    receiver.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_are_symmetric_and_pass_the_middle_of_the_band() {
        let filters = [
            (filter_taps(CHANNEL, RATE_HZ).unwrap(), 1.0),
            (filter_taps(BAND, RATE_HZ / 2.0).unwrap(), 1.0),
            (resampler_taps().unwrap(), 3.0),
        ];
        for (taps, gain) in filters {
            let sum: f32 = taps.iter().sum();
            assert!(taps.len() % 2 == 1 && (sum - gain).abs() < 1e-3, "{} taps, {sum}", taps.len());
            let is_mirrored = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
            assert!(taps.iter().zip(taps.iter().rev()).all(is_mirrored), "{taps:?}");
        }
    }
}
