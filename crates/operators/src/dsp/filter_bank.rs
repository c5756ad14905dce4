//! Splits a band into channels.
//!
//! On paper, each channel is mixed down to 0 Hz, filtered, and keeps every `channels`-th sample. All channels
//! share the filter, and the mixers repeat after `channels` samples. So the products of samples and taps that
//! meet the same phase of the mixers are added first, one sum for each phase, and a Fourier transform of the
//! sums gives all channels at once:
//!
//! ```text
//! u[j]    = sum over s of  h[middle - s M - j] x[m M + s M + j]
//! y[m][k] = sum over j of  u[j] e^(-2πi j k / M)
//! ```
//!
//! As rows of `M` samples, neighbouring sums need neighbouring samples and neighbouring taps: the vectors
//! hold sums of several phases, and several rows at a time hide the latency of the additions.

use super::design::windowed_sinc;
use super::fourier;
use crate::check;
use crate::vectors::Vectors;
use num_complex::Complex;
use onbeat_runtime::{Error, FiniteMemory, Kernel, Progress, Ratio};
use pulp::{Simd, WithSimd};
use std::sync::Arc;

/// Least samples of room beyond one window. Windows slide through the room; then the last one is copied to
/// the front.
const ROOM: usize = 2048;

/// Most rows of sums at a time. All use the same taps, and most of the same samples.
const MOST_ROWS: usize = 8;

/// Zeros that are taken at a time after the end of the stream.
const ZEROS: usize = 64;

#[doc = include_str!("../about/channelizer.md")]
#[derive(Clone)]
pub struct FilterBank {
    vectors: Vectors,
    channels: usize,
    taps: Vec<f64>,
    /// Taps of a window, twice each: for the real and the imaginary part.
    weights: Vec<f32>,
    /// Rows of a window, and those of them before the row of the output.
    window: usize,
    before: usize,
    /// Inputs still needed; the length is fixed, and `filled` of them are valid.
    history: Vec<Complex<f32>>,
    filled: usize,
    /// First sample of the next window.
    start: usize,
    /// Samples received and rows computed since the start, or where a stream is resumed.
    received: u64,
    rows: u64,
    fft: Arc<dyn rustfft::Fft<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl FilterBank {
    /// Creates a filter bank.
    ///
    /// # Errors
    /// When there are not 2 to 4096 channels and 2 to 64 taps for each, or when the attenuation is not from
    /// 20 to 120 dB.
    pub fn new(channels: usize, taps_per_channel: usize, attenuation_db: f64) -> Result<Self, Error> {
        let fix = "split a band into more channels in two steps";
        check::within("channels", channels as f64, 2.0, 4096.0, fix)?;
        let fix = "12 suits most signals, and more make the borders steeper";
        check::within("taps_per_channel", taps_per_channel as f64, 2.0, 64.0, fix)?;
        check::within("attenuation", attenuation_db, 20.0, 120.0, "60 suits most signals")?;
        let middle = (channels * taps_per_channel - 1) / 2;
        let taps = windowed_sinc(0.5 / channels as f64, middle, attenuation_db);
        let before = middle.div_ceil(channels);
        let window = before + middle / channels + 1;
        // The first sample of the window is `before` rows before the middle, and later samples meet earlier
        // taps.
        let first = middle + before * channels;
        let tap =
            |sample: usize| first.checked_sub(sample).and_then(|at| taps.get(at)).map_or(0.0, |tap| *tap);
        let weights = (0..window * channels).flat_map(|sample| [tap(sample) as f32; 2]).collect();
        let fft = fourier::forward(channels);
        let room = ROOM.max(window * channels).next_multiple_of(channels);
        let mut bank = FilterBank {
            vectors: Vectors::new(),
            channels,
            weights,
            window,
            before,
            history: vec![Complex::default(); window * channels + room],
            filled: 0,
            start: 0,
            received: 0,
            rows: 0,
            scratch: vec![Complex::default(); fft.get_inplace_scratch_len()],
            fft,
            taps,
        };
        bank.reset();
        Ok(bank)
    }

    /// Taps of the filter, symmetric, with sum 1.
    pub fn taps(&self) -> &[f64] {
        &self.taps
    }

    /// Number of channels, which is the length of a row.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Forgets all samples.
    fn reset(&mut self) {
        (self.start, self.filled) = (0, self.before * self.channels);
        (self.received, self.rows) = (0, 0);
        self.history[..self.filled].fill(Complex::default());
    }

    /// Number of rows whose windows are complete, of those that are not computed yet.
    fn ready(&self) -> usize {
        (self.filled / self.channels + 1).saturating_sub(self.start / self.channels + self.window)
    }

    /// Number of rows that belong to samples of the stream and are not computed yet.
    fn left(&self) -> usize {
        (self.received.div_ceil(self.channels as u64) - self.rows) as usize
    }

    /// Takes input samples, as many as there is room for, and returns their number. There is room for more
    /// once the rows that are ready are computed.
    fn take(&mut self, input: &[Complex<f32>]) -> usize {
        if input.len() > self.history.len() - self.filled {
            self.history.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        let count = input.len().min(self.history.len() - self.filled);
        self.history[self.filled..self.filled + count].copy_from_slice(&input[..count]);
        self.filled += count;
        count
    }

    /// Computes rows that are ready, as many as fit, and returns the number of their samples.
    fn compute(&mut self, output: &mut [Complex<f32>]) -> usize {
        let rows = self.ready().min(output.len() / self.channels);
        if rows > 0 {
            let output = &mut output[..rows * self.channels];
            let samples = bytemuck::cast_slice(&self.history[self.start..self.filled]);
            let sums = bytemuck::cast_slice_mut(output);
            let (weights, row) = (&self.weights[..], 2 * self.channels);
            self.vectors.run(BankLoop { samples, weights, row, sums });
            self.fft.process_with_scratch(output, &mut self.scratch);
            self.start += rows * self.channels;
            self.rows += rows as u64;
        }
        rows * self.channels
    }
}

impl Kernel for FilterBank {
    type In = Complex<f32>;
    type Out = Complex<f32>;

    fn start(&mut self, _: f64) -> Result<(), Error> {
        self.reset();
        Ok(())
    }

    fn ratio(&self) -> Ratio {
        let channels = self.channels as u32;
        Ratio { up: channels, down: channels }
    }

    fn row(&self) -> usize {
        self.channels
    }

    fn process(&mut self, input: &[Complex<f32>], output: &mut [Complex<f32>]) -> Progress {
        let (mut consumed, mut produced) = (0, 0);
        loop {
            produced += self.compute(&mut output[produced..]);
            if consumed == input.len() || output.len() - produced < self.channels {
                return Progress { consumed, produced };
            }
            let taken = self.take(&input[consumed..]);
            self.received += taken as u64;
            consumed += taken;
        }
    }

    fn finish(&mut self, output: &mut [Complex<f32>]) -> usize {
        let most =
            self.left().saturating_mul(self.channels).min(output.len() / self.channels * self.channels);
        let mut produced = 0;
        loop {
            produced += self.compute(&mut output[produced..most]);
            if produced == most {
                return produced;
            }
            self.take(&[Complex::default(); ZEROS]);
        }
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
}

impl FiniteMemory for FilterBank {
    fn memory(&self) -> usize {
        self.window * self.channels - 1
    }

    fn resume(&mut self, _: u64) {
        self.reset();
    }
}

impl std::fmt::Debug for FilterBank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilterBank").field("channels", &self.channels).field("window", &self.window).finish()
    }
}

/// The sums of all phases, compiled for the processor's vectors. All slices are rows of `row` floats.
struct BankLoop<'b> {
    samples: &'b [f32],
    weights: &'b [f32],
    row: usize,
    sums: &'b mut [f32],
}

impl WithSimd for BankLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        self.blocks::<S, MOST_ROWS>(simd);
        self.blocks::<S, 2>(simd);
        self.blocks::<S, 1>(simd);
    }
}

impl BankLoop<'_> {
    /// Computes as many blocks of `COUNT` rows as are left.
    #[inline(always)]
    fn blocks<S: Simd, const COUNT: usize>(&mut self, simd: S) {
        let row = self.row;
        while self.sums.len() >= COUNT * row {
            let (sums, later) = std::mem::take(&mut self.sums).split_at_mut(COUNT * row);
            block::<S, COUNT>(simd, self.samples, self.weights, row, sums);
            (self.samples, self.sums) = (&self.samples[COUNT * row..], later);
        }
    }
}

/// Computes `COUNT` rows of sums.
#[inline(always)]
fn block<S: Simd, const COUNT: usize>(
    simd: S,
    samples: &[f32],
    weights: &[f32],
    row: usize,
    sums: &mut [f32],
) {
    let whole = row - row % S::F32_LANES;
    for column in (0..whole).step_by(S::F32_LANES) {
        let load = |from: &[f32]| S::as_simd_f32s(&from[..S::F32_LANES]).0[0];
        let results = columns::<S, COUNT>(simd, &samples[column..], &weights[column..], row, load);
        for (to, result) in sums[column..].chunks_mut(row).zip(results) {
            S::as_mut_simd_f32s(&mut to[..S::F32_LANES]).0[0] = result;
        }
    }
    if whole < row {
        let load = |from: &[f32]| simd.partial_load_f32s(&from[..row - whole]);
        let results = columns::<S, COUNT>(simd, &samples[whole..], &weights[whole..], row, load);
        for (to, result) in sums[whole..].chunks_mut(row).zip(results) {
            simd.partial_store_f32s(&mut to[..row - whole], result);
        }
    }
}

/// Sums of a vector of columns, in `COUNT` rows. Every sum begins with the oldest sample.
#[inline(always)]
fn columns<S: Simd, const COUNT: usize>(
    simd: S,
    samples: &[f32],
    weights: &[f32],
    row: usize,
    load: impl Fn(&[f32]) -> S::f32s,
) -> [S::f32s; COUNT] {
    let mut sums = [simd.splat_f32s(0.0); COUNT];
    // An iterator of rows would divide the lengths in each step, which takes longer than the sums.
    let mut at = 0;
    while at < weights.len() {
        let tap = load(&weights[at..]);
        for (number, sum) in sums.iter_mut().enumerate() {
            *sum = simd.add_f32s(*sum, simd.mul_f32s(load(&samples[at + number * row..]), tap));
        }
        at += row;
    }
    sums
}
