//! A resampler by a ratio near 1 that changes while it runs.

use super::servo;
use onbeat_runtime::Error;
use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{
    Adjustable, Async, FixedAsync, Resampler, Resizable, SincInterpolationParameters, SincInterpolationType,
    WindowFunction,
};

/// Taps of the interpolating filter; its delay is half of that.
const TAPS: usize = 128;
/// Filters between two samples. A straight line between two of them is wrong by less than -100 dB up to 10
/// kHz at 48 kHz.
const FILTERS: usize = 256;
/// Most frames that are resampled at once.
pub(super) const BLOCK: usize = 1024;

/// Resamples interleaved frames.
pub(super) struct ClockStretch {
    resampler: Async<f32>,
    channels: usize,
    out: Vec<f32>,
}

impl ClockStretch {
    pub fn new(channels: usize) -> Result<Self, Error> {
        let parameters = SincInterpolationParameters::new(TAPS, WindowFunction::BlackmanHarris2)
            .oversampling_factor(FILTERS)
            .interpolation(SincInterpolationType::Linear);
        let most = 1.0 + 2.0 * servo::MOST;
        let resampler = Async::new_sinc(1.0, most, &parameters, BLOCK, channels, FixedAsync::Input)
            .map_err(|error| Error::with_source("cannot make a resampler", error))?;
        let out = vec![0.0; resampler.output_frames_max() * channels];
        Ok(ClockStretch { resampler, channels, out })
    }

    /// Frames of silence after which the last frame has gone out: the delay of the filter, and what lies
    /// around one place of it.
    pub fn held_frames(&self) -> usize {
        TAPS / 2 + 2
    }

    /// Resamples up to [`BLOCK`] frames to `1 + correction` times as many. The ratio glides there from the
    /// one before.
    pub fn process(&mut self, frames: &[f32], correction: f64) -> Result<&[f32], Error> {
        let wrong = |error| Error::with_source("cannot resample", error);
        let count = frames.len() / self.channels;
        self.resampler.set_chunk_size(count).map_err(wrong)?;
        self.resampler.set_resample_ratio_relative(1.0 + correction, true).map_err(wrong)?;
        let room = self.out.len() / self.channels;
        let no_size = |_| Error::new("cannot resample: a buffer has a wrong size");
        let input = InterleavedSlice::new(frames, self.channels, count).map_err(no_size)?;
        let mut output = InterleavedSlice::new_mut(&mut self.out, self.channels, room).map_err(no_size)?;
        let (_, made) = self.resampler.process_into_buffer(&input, &mut output, None).map_err(wrong)?;
        Ok(&self.out[..made * self.channels])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    /// The last frame is heard after as much silence as the resampler says, at any ratio. Its peak is below
    /// 1, because the filter stops what is close to half the sample rate.
    #[test]
    fn the_last_frame_comes_out() {
        for (length, correction) in
            [(500, 0.0), (500, servo::MOST), (500, -servo::MOST), (7, 0.0), (1024, 0.0)]
        {
            let mut stretch = ClockStretch::new(1).unwrap();
            // The ratio glides there in this block.
            let before = stretch.process(&[0.0; BLOCK], correction).unwrap().len();
            let mut frames = vec![0.0; length];
            frames[length - 1] = 1.0;
            let mut out = stretch.process(&frames, correction).unwrap().to_vec();
            assert!(out.iter().all(|x| x.abs() < 0.5), "{out:?}");
            out.extend_from_slice(stretch.process(&vec![0.0; stretch.held_frames()], correction).unwrap());
            let highest = (0..out.len()).max_by(|a, b| out[*a].total_cmp(&out[*b])).unwrap();
            let glided = BLOCK as f64 * (1.0 + correction / 2.0);
            let expected = glided + (length - 1) as f64 * (1.0 + correction) + TAPS as f64 / 2.0;
            let off = (before + highest) as f64 - expected;
            assert!(out[highest] > 0.6 && off.abs() < 1.5, "{length}, {correction}: {} {off}", out[highest]);
        }
    }

    /// A tone of 1 kHz through a ratio of 1 + 100 ppm stays a tone: the residue is below -100 dB.
    #[test]
    fn a_tone_stays_a_tone() {
        let mut stretch = ClockStretch::new(2).unwrap();
        let (correction, mut out) = (100e-6, Vec::new());
        let tone = |at: f64| (TAU * 1000.0 / 48e3 * at).sin();
        for chunk in 0..200 {
            // Chunks of different lengths.
            let length = 100 + chunk % 7;
            let begin: usize = (0..chunk).map(|before| 100 + before % 7).sum();
            let frames: Vec<f32> = (begin..begin + length)
                .flat_map(|at| [tone(at as f64) as f32, -tone(at as f64) as f32])
                .collect();
            out.extend_from_slice(stretch.process(&frames, correction).unwrap());
        }
        let frames: Vec<[f32; 2]> = out.as_chunks::<2>().0.to_vec();
        // The best sine and cosine of the new frequency; the first chunk has the ramp.
        let (from, step) = (1000, TAU * 1000.0 / 48e3 / (1.0 + correction));
        let rest = &frames[from..frames.len() - 100];
        let n = rest.len() as f64;
        let (mut re, mut im) = (0.0, 0.0);
        for (at, [x, _]) in rest.iter().enumerate() {
            re += 2.0 / n * f64::from(*x) * (step * at as f64).cos();
            im += 2.0 / n * f64::from(*x) * (step * at as f64).sin();
        }
        assert!((re.hypot(im) - 1.0).abs() < 1e-3, "{}", re.hypot(im));
        let residue = rest.iter().enumerate().map(|(at, [x, y])| {
            assert_eq!(*y, -x);
            let best = re * (step * at as f64).cos() + im * (step * at as f64).sin();
            (f64::from(*x) - best).powi(2)
        });
        let residue = (residue.sum::<f64>() / n).sqrt();
        assert!(residue < 1e-3, "{residue}");
    }
}
