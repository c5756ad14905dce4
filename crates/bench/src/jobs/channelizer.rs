//! Channels of a band.

use super::bare::{BLOCK, KernelStage, each_block, write_floats};
use super::fm::{write_signal, write_taps};
use super::folder::{at, read_complex};
use super::kind::{INPUT, JobInput, JobKind, JobRequest};
use num_complex::Complex;
use onbeat_operators::dsp::FilterBank;
use onbeat_operators::recording::RATE_HZ;
use std::f64::consts::TAU;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

pub(super) const KIND: JobKind = JobKind {
    about: "16 channels of equal width: a polyphase filter with 12 taps per channel, Fourier transforms of 16 samples",
    rate_hz: RATE_HZ,
    seconds: 100.0,
    quality: ("SNR of the worst channel", "dB"),
    pipeline: PIPELINE,
    prepare,
    judge,
    bare: Some(bare),
};

const PIPELINE: &str = r#"
name = "channelizer"
sync_files = false
operator = [
    { name = "iq", kind = "iq.source", path = "input", format = "cf32_le", sample_rate = "256 kHz" },
    { name = "split", kind = "channelizer", channels = 16, taps_per_channel = 12, attenuation = "60 dB" },
    { name = "rows", kind = "iq.sink", path = "result", format = "cf32_le" },
]
edge = [
    { from = "iq.out", to = "split.in" },
    { from = "split.out", to = "rows.in" },
]
"#;

const CHANNELS: usize = 16;
const TAPS_PER_CHANNEL: usize = 12;
const ATTENUATION_DB: f64 = 60.0;
/// Rows that are compared with the reference.
const COMPARED: usize = 256;
/// Most rows by which a peer may delay its output, twice the length of the filter.
const MOST_DELAY: usize = 2 * TAPS_PER_CHANNEL;

fn bank() -> Result<FilterBank, String> {
    FilterBank::new(CHANNELS, TAPS_PER_CHANNEL, ATTENUATION_DB).map_err(|error| error.to_string())
}

fn prepare(request: &JobRequest) -> Result<u64, String> {
    let taps: Vec<f32> = bank()?.taps().iter().map(|tap| *tap as f32).collect();
    write_taps(&request.folder.join("channels.taps"), &taps)?;
    write_signal(&request.folder.join(INPUT), request.seconds)
}

/// Signal-to-noise ratio of the worst channel in dB: the power of the channel in double precision, relative
/// to the power of the difference from it, over rows in the middle. A peer may delay its rows, all by the
/// same number, but an error of the amplitude or the phase counts.
fn judge(input: &JobInput, result: &Path) -> Result<f64, String> {
    const ROW_BYTES: u64 = (CHANNELS * size_of::<Complex<f32>>()) as u64;
    let rows = input.samples / CHANNELS as u64;
    let found = fs::metadata(result).map_err(at(result))?.len() / ROW_BYTES;
    if found + (MOST_DELAY as u64) < rows || rows < 4 * COMPARED as u64 {
        return Err(format!("it has {found} rows: {rows} were expected"));
    }
    let begin = rows as usize / 2;
    let taps = bank()?.taps().to_vec();
    // The taps reach equally far to both sides of the first sample of a row.
    let reach = taps.len() / 2;
    let count = (COMPARED - 1) * CHANNELS + taps.len();
    let samples = read_complex(&input.path(), begin * CHANNELS - reach, count)?;
    let right: Vec<Complex<f64>> = (0..COMPARED).flat_map(|row| reference(&samples, &taps, row)).collect();
    let found = read_complex(result, begin * CHANNELS, (COMPARED + MOST_DELAY) * CHANNELS)?;
    let ratios = found.windows(COMPARED * CHANNELS).step_by(CHANNELS).map(|found| worst_db(&right, found));
    Ok(ratios.fold(f64::NEG_INFINITY, f64::max))
}

/// A row by definition: for each channel the samples mixed to 0 Hz, times the taps. The first sample of the
/// row has a number that is a multiple of the channels, and is `taps.len() / 2` after the first one given.
fn reference(samples: &[Complex<f32>], taps: &[f64], row: usize) -> [Complex<f64>; CHANNELS] {
    let reach = taps.len() / 2;
    let window = &samples[row * CHANNELS..row * CHANNELS + taps.len()];
    std::array::from_fn(|channel| {
        let products = window.iter().zip(taps.iter().rev()).enumerate().map(|(n, (x, tap))| {
            let turns = ((n + CHANNELS * reach - reach) * channel % CHANNELS) as f64 / CHANNELS as f64;
            Complex::new(f64::from(x.re), f64::from(x.im)) * Complex::from_polar(*tap, -TAU * turns)
        });
        products.sum()
    })
}

/// Ratio of the channel that differs most, in dB.
fn worst_db(right: &[Complex<f64>], found: &[Complex<f32>]) -> f64 {
    let ratio = |channel: usize| {
        let pairs = right.iter().zip(found).skip(channel).step_by(CHANNELS);
        let (mut power, mut error) = (0.0, 0.0);
        for (right, found) in pairs {
            power += right.norm_sqr();
            error += (right - Complex::new(f64::from(found.re), f64::from(found.im))).norm_sqr();
        }
        if error.is_finite() { 10.0 * (power / error.max(power * 1e-20)).log10() } else { f64::NEG_INFINITY }
    };
    (0..CHANNELS).map(ratio).fold(f64::INFINITY, f64::min)
}

/// What the operator `channelizer` does, on slices.
fn bare(input: &JobInput, result: &Path) -> Result<(), String> {
    let mut bank = KernelStage::new(bank()?, RATE_HZ, BLOCK).map_err(|error| error.to_string())?;
    let mut file = BufWriter::with_capacity(1 << 16, File::create(result).map_err(at(result))?);
    let mut write = |rows: &[Complex<f32>]| write_floats(&mut file, bytemuck::cast_slice(rows), result);
    each_block(&input.path(), |samples| write(bank.take(samples)))?;
    loop {
        match bank.finish() {
            [] => break,
            rest => write(rest)?,
        }
    }
    file.flush().map_err(at(result))
}
