//! Measures the kernels of the FM receiver: nanoseconds per sample of their own input, and per sample of the
//! recording. Then frames, and filters of several lengths and factors: microseconds per 2048 inputs.
//!
//! `cargo run --release -p onbeat-operators --example kernel_speed`
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use std::time::Instant;

use num_complex::Complex;
use onbeat_operators::dsp::{
    Agc, Deemphasis, FilterBank, FirDecimator, FirMethod, FirSample, LowPass, Magnitude, QuadDemod, Quality,
    Resampler, Shift, ci8_to_complex,
};
use onbeat_operators::equalizer::{Band, BandType, Equalizer};
use onbeat_operators::image::{Blur, FrameFilter, Reduce, Threshold};
use onbeat_operators::recording::{DEVIATION_HZ, EMPHASIS_S, RATE_HZ, SAMPLES, STATION_A_HZ, fm_recording};
use onbeat_runtime::{Error, Kernel, Map};

/// Samples per slice: 16 KiB of complex samples, which is what an edge carries by default.
const SLICE: usize = 2048;
/// Number of passes. The best counts, because other programs can only add time.
const PASSES: usize = 15;

/// Shortest time of a pass in nanoseconds.
fn best(mut pass: impl FnMut()) -> f64 {
    let one = |_| {
        let start = Instant::now();
        pass();
        start.elapsed().as_nanos() as f64
    };
    (0..PASSES).map(one).fold(f64::INFINITY, f64::min)
}

/// Runs a kernel over a signal and prints its speed. Returns its output and rate.
fn kernel<K: Kernel>(
    name: &str,
    mut kernel: K,
    (input, rate_hz): (&[K::In], f64),
    total: &mut f64,
) -> Result<(Vec<K::Out>, f64), Error> {
    let mut output = Vec::new();
    kernel.start(rate_hz)?;
    let ratio = kernel.ratio();
    let mut buffer: Vec<K::Out> = vec![bytemuck::Zeroable::zeroed(); SLICE * ratio.up as usize];
    let nanos = best(|| {
        output.clear();
        for mut slice in input.chunks(SLICE) {
            while !slice.is_empty() {
                let done = kernel.process(slice, &mut buffer);
                output.extend_from_slice(&buffer[..done.produced]);
                slice = &slice[done.consumed..];
            }
        }
    });
    report(name, nanos, input.len(), total);
    Ok((output, rate_hz * f64::from(ratio.up) / f64::from(ratio.down)))
}

/// Like [`kernel`], for a map. Each pass works on the result of the previous one, which costs the same.
fn map<M: Map>(
    name: &str,
    mut map: M,
    (samples, rate_hz): (&mut [M::Sample], f64),
    total: &mut f64,
) -> Result<(), Error> {
    map.start(rate_hz)?;
    let nanos = best(|| samples.chunks_mut(SLICE).for_each(|slice| map.map(slice)));
    report(name, nanos, samples.len(), total);
    Ok(())
}

fn report(name: &str, nanos: f64, samples: usize, total: &mut f64) {
    let recorded = nanos / SAMPLES as f64;
    *total += recorded;
    println!("{name:<24} {:>10.2} {recorded:>14.2}", nanos / samples as f64);
}

fn main() -> Result<(), Error> {
    let pairs = fm_recording();
    let mut iq = vec![Complex::new(0.0, 0.0); pairs.len()];
    let total = &mut 0.0;
    println!("{:<24} {:>10} {:>14}", "kernel", "ns/input", "ns/recorded");

    let nanos = best(|| {
        for (pairs, samples) in pairs.chunks(SLICE).zip(iq.chunks_mut(SLICE)) {
            ci8_to_complex(pairs, samples);
        }
    });
    report("ci8_to_complex", nanos, pairs.len(), total);
    map("Shift", Shift::new(-STATION_A_HZ)?, (&mut iq, RATE_HZ), total)?;
    let channel = LowPass { cutoff_hz: 49.5e3, transition_hz: 33e3, attenuation_db: 60.0 };
    let (iq, rate_hz) =
        kernel("FirDecimator complex", FirDecimator::new(2, channel)?, (&iq, RATE_HZ), total)?;
    let (audio, rate_hz) = kernel("QuadDemod", QuadDemod::new(DEVIATION_HZ)?, (&iq, rate_hz), total)?;
    let band = LowPass { cutoff_hz: 11e3, transition_hz: 6e3, attenuation_db: 60.0 };
    let (audio, rate_hz) =
        kernel("FirDecimator real", FirDecimator::new(4, band)?, (&audio, rate_hz), total)?;
    let resampler = Resampler::to_rate(48e3, Quality::default())?;
    let (mut audio, rate_hz) = kernel("Resampler real", resampler, (&audio, rate_hz), total)?;
    map("Deemphasis", Deemphasis::new(EMPHASIS_S)?, (&mut audio, rate_hz), total)?;
    println!("{:<24} {:>10} {total:>14.2}   {:.0} times real time", "all", "", 1e9 / (*total * RATE_HZ));
    let mut tone: Vec<_> = (0..SAMPLES).map(|n| Complex::from_polar(0.5, n as f32 * 0.1)).collect();
    kernel("Magnitude", Magnitude::new(), (&tone, RATE_HZ), total)?;
    map("Agc complex", Agc::new(0.01, 0.1, 0.5, 100.0)?, (&mut tone, RATE_HZ), total)?;
    for (channels, count) in [(1, 5), (2, 5), (2, 10), (6, 5)] {
        let bands = bands(count);
        let equalizer = Equalizer::new(channels, bands)?;
        let mut samples: Vec<f32> = tone.iter().map(|x| x.re).collect();
        let name = format!("Equalizer {count}, {channels} ch");
        map(&name, equalizer, (&mut samples, 48e3 * channels as f64), total)?;
    }
    banks(&tone)?;
    frames()?;
    let ramp: Vec<f32> = (0..SLICE).map(|n| n as f32 * 1e-3 - 1.0).collect();
    let complex: Vec<_> = ramp.iter().map(|x| Complex::new(*x, 1.0 - x)).collect();
    for method in [FirMethod::Direct, FirMethod::Fft] {
        filters("complex", method, &complex)?;
        filters("real", method, &ramp)?;
    }
    Ok(())
}

/// Prints the speed of filter banks, and of their Fourier transforms alone.
fn banks(input: &[Complex<f32>]) -> Result<(), Error> {
    println!("\n{:<24} {:>10} {:>14}", "filter bank", "ns/input", "transforms");
    for channels in [8, 16, 64, 256, 1000] {
        let mut bank = FilterBank::new(channels, 12, 60.0)?;
        let mut rows = vec![Complex::default(); SLICE / channels * channels];
        let nanos = best(|| {
            for mut slice in input.chunks(SLICE) {
                while !slice.is_empty() {
                    slice = &slice[bank.process(slice, &mut rows).consumed..];
                }
            }
        });
        let fft = rustfft::FftPlanner::new().plan_fft_forward(channels);
        let mut scratch = vec![Complex::default(); fft.get_inplace_scratch_len()];
        rows.fill(Complex::default());
        let count = input.len() / rows.len();
        let alone = best(|| (0..count).for_each(|_| fft.process_with_scratch(&mut rows, &mut scratch)));
        let name = format!("{channels} channels, 12 taps");
        println!("{name:<24} {:>10.2} {:>14.2}", nanos / input.len() as f64, alone / input.len() as f64);
    }
    Ok(())
}

/// Bands of an equalizer.
fn bands(count: usize) -> Vec<Band> {
    let band = |n: usize| Band {
        shape: BandType::Peaking,
        frequency_hz: 100.0 * 1.5f64.powi(n as i32),
        gain_db: Some(3.0 - n as f64),
        q: 1.0,
    };
    (0..count).map(band).collect()
}

/// Rows and columns of an HD frame.
const FRAME: [u32; 3] = [1080, 1920, 0];

/// Prints the speed of operators on frames, one by one and in a chain.
fn frames() -> Result<(), Error> {
    let frame: Vec<u8> = (0..1080 * 1920u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (mut smooth, mut small) = (vec![0; frame.len()], vec![0; frame.len() / 4]);
    let (mut blur, mut threshold, mut halve) = (Blur::new(), Threshold::new(127)?, Reduce::new(2)?);
    blur.shape(FRAME)?;
    halve.shape(FRAME)?;
    let report = |name: &str, pass: &mut dyn FnMut()| {
        let nanos = best(pass);
        println!("{name:<24} {:>8.1} µs {:>8.0} frames/s", nanos / 1e3, 1e9 / nanos);
    };
    println!("\nframes of 1080 × 1920 bytes");
    report("Blur", &mut || blur.filter(&frame, &mut smooth));
    report("Threshold", &mut || threshold.map(&mut smooth));
    report("Reduce by 2", &mut || halve.filter(&smooth, &mut small));
    report("all three", &mut || {
        blur.filter(&frame, &mut smooth);
        threshold.map(&mut smooth);
        halve.filter(&smooth, &mut small);
    });
    for factor in [3, 4, 8] {
        let mut reduce = Reduce::new(factor)?;
        let [rows, columns, _] = reduce.shape(FRAME)?;
        let small = &mut small[..(rows * columns) as usize];
        report(&format!("Reduce by {factor}"), &mut || reduce.filter(&smooth, small));
    }
    Ok(())
}

/// Lengths of the filters.
const TAPS: [usize; 8] = [11, 31, 61, 101, 201, 301, 501, 1001];

/// Prints a table of filters of one sample type.
fn filters<T: FirSample>(name: &str, method: FirMethod, input: &[T]) -> Result<(), Error> {
    println!("\n{:<16} {}", format!("{name}, {method:?}"), TAPS.map(|taps| format!("{taps:>8}")).concat());
    for factor in [1, 2, 4, 8, 16, 32] {
        let mut row = String::new();
        for taps in TAPS {
            let mut filter = FirDecimator::with_taps(factor, &vec![0.01; taps])?.method(method);
            filter.start(RATE_HZ)?;
            let mut output = vec![T::zeroed(); SLICE];
            // A hundred slices are long enough for the clock.
            let nanos = best(|| (0..100).for_each(|_| _ = filter.process(input, &mut output)));
            row += &format!("{:>8.2}", nanos / 100.0 / 1e3);
        }
        println!("factor {factor:<9} {row}");
    }
    Ok(())
}
