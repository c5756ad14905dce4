//! Averaged power spectra.

use super::bare::{BLOCK, each_block, write_floats};
use super::fm::write_signal;
use super::folder::{at, read_complex, read_floats};
use super::kind::{INPUT, JobInput, JobKind};
use num_complex::Complex;
use onbeat_operators::dsp::fourier;
use onbeat_operators::recording::RATE_HZ;
use onbeat_operators::spectral::{Measure, Spectrum, Window};
use std::f64::consts::TAU;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

pub(super) const KIND: JobKind = JobKind {
    about: "power spectra of 1024 bins in dB: Hann window, no overlap, means of 16 frames",
    rate_hz: RATE_HZ,
    seconds: 100.0,
    quality: ("largest error", "mdB"),
    pipeline: PIPELINE,
    prepare: |request| write_signal(&request.folder.join(INPUT), request.seconds),
    judge,
    bare: Some(bare),
};

const PIPELINE: &str = r#"
name = "spectrum"
sync_files = false
operator = [
    { name = "iq", kind = "iq.source", path = "input", format = "cf32_le", sample_rate = "256 kHz" },
    { name = "spectrum", kind = "spectrum", size = 1024, hop = 1024, window = "hann", average = 16 },
    { name = "rows", kind = "iq.sink.real", path = "result", format = "rf32_le" },
]
edge = [
    { from = "iq.out", to = "spectrum.in" },
    { from = "spectrum.out", to = "rows.in" },
]
"#;

/// Bins of a spectrum, and frames of a mean.
const SIZE: usize = 1024;
const AVERAGE: usize = 16;
/// Samples of a row.
const ROW: usize = SIZE * AVERAGE;
/// Rows that are compared with the reference.
const COMPARED: usize = 4;

/// Largest difference from spectra computed in double precision, in thousandths of a dB, over all bins of the
/// first rows.
fn judge(input: &JobInput, result: &Path) -> Result<f64, String> {
    let rows = read_floats(result)?;
    let whole = (input.samples / ROW as u64) as usize;
    // A mean over fewer frames can follow.
    if rows.len() / SIZE < whole {
        return Err(format!("it has {} spectra: {whole} were expected", rows.len() / SIZE));
    }
    let compared = whole.min(COMPARED);
    let samples = read_complex(&input.path(), 0, compared * ROW)?;
    let mut worst: f64 = 0.0;
    for (samples, row) in samples.chunks(ROW).zip(rows.chunks(SIZE)) {
        for (right, found) in reference(samples).into_iter().zip(row) {
            let difference = (right - f64::from(*found)).abs();
            worst = worst.max(if difference.is_nan() { f64::INFINITY } else { difference });
        }
    }
    Ok(worst * 1e3)
}

/// The mean of the spectra of all frames, in dB, the lowest frequency first.
fn reference(samples: &[Complex<f32>]) -> Vec<f64> {
    let weights: Vec<f64> = (0..SIZE).map(|n| 0.5 - 0.5 * (TAU * n as f64 / SIZE as f64).cos()).collect();
    let mut powers = vec![0.0; SIZE];
    for frame in samples.chunks(SIZE) {
        let weighted = frame.iter().zip(&weights);
        let weighted: Vec<Complex<f64>> =
            weighted.map(|(x, w)| Complex::new(f64::from(x.re) * w, f64::from(x.im) * w)).collect();
        powers.iter_mut().zip(transform(&weighted)).for_each(|(power, x)| *power += x.norm_sqr());
    }
    let scale = weights.iter().sum::<f64>().powi(2) * (samples.len() / SIZE) as f64;
    powers.rotate_right(SIZE / 2);
    powers.into_iter().map(|power| 10.0 * (power / scale).log10()).collect()
}

/// Fourier transform of a power of two of samples, as a sum of the transforms of the even and the odd ones.
fn transform(samples: &[Complex<f64>]) -> Vec<Complex<f64>> {
    let [_, _, ..] = samples else { return samples.to_vec() };
    let part = |first| transform(&samples.iter().skip(first).step_by(2).copied().collect::<Vec<_>>());
    let (even, odd) = (part(0), part(1));
    let turn = -TAU / samples.len() as f64;
    let bin = |k: usize| even[k % even.len()] + odd[k % odd.len()] * Complex::cis(turn * k as f64);
    (0..samples.len()).map(bin).collect()
}

/// What the operator `spectrum` does, on slices.
fn bare(input: &JobInput, result: &Path) -> Result<(), String> {
    let mut spectrum = Spectrum::new(AVERAGE).map_err(|error| error.to_string())?;
    let weights = Window::Hann.weights(SIZE);
    spectrum.start(&weights, true);
    let fft = fourier::forward(SIZE);
    let mut scratch = vec![Complex::default(); fft.get_inplace_scratch_len()];
    let mut row = vec![0.0; SIZE];
    let mut file = BufWriter::with_capacity(1 << 16, File::create(result).map_err(at(result))?);
    const { assert!(BLOCK.is_multiple_of(SIZE)) };
    each_block(&input.path(), |samples| {
        for frame in samples.chunks_exact_mut(SIZE) {
            frame.iter_mut().zip(&weights).for_each(|(x, w)| *x *= *w);
            fft.process_with_scratch(frame, &mut scratch);
            if spectrum.take(frame) {
                spectrum.write(&mut row);
                write_floats(&mut file, &row, result)?;
            }
        }
        Ok(())
    })?;
    if spectrum.finish() {
        spectrum.write(&mut row);
        write_floats(&mut file, &row, result)?;
    }
    file.flush().map_err(at(result))
}
