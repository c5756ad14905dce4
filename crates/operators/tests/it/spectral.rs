//! Transforms and spectra match their definition, independent of chunk borders.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use num_complex::Complex;
use onbeat_operators::spectral::{Fft, Framed, SpectralSample, Spectrum, Window};
use onbeat_runtime::testing::{Feed, Trial, cuts};
use std::f64::consts::TAU;

const RATE_HZ: f64 = 48e3;

fn complexes(count: usize) -> Vec<Complex<f32>> {
    let mut dice = Dice::new(5);
    (0..count).map(|_| Complex::new(dice.value(), dice.value())).collect()
}

fn tone(count: usize, size: f32, cycles: f64) -> Vec<Complex<f32>> {
    let turn = |n: usize| TAU * cycles * n as f64;
    (0..count).map(|n| Complex::new(turn(n).cos() as f32, turn(n).sin() as f32) * size).collect()
}

fn fft(size: usize, hop: usize, window: Window, samples: &[Complex<f32>]) -> Trial {
    let operator = Framed::<Complex<f32>, Fft>::new(size, hop, window, Fft::default()).unwrap();
    Trial::new(operator).feed("in", Feed::samples(samples.to_vec()).rate(RATE_HZ))
}

fn spectrum<T: SpectralSample>(size: usize, hop: usize, average: usize, samples: &[T]) -> Trial {
    let measure = Spectrum::new(average).unwrap();
    let operator = Framed::<T, Spectrum>::new(size, hop, Window::Hann, measure).unwrap();
    Trial::new(operator).feed("in", Feed::samples(samples.to_vec()).rate(RATE_HZ))
}

/// The transform by its definition, in double precision.
fn direct(frame: &[Complex<f32>], weights: &[f32], bin: usize) -> Complex<f64> {
    let term = |(n, (x, w)): (usize, (&Complex<f32>, &f32))| {
        let turn =
            Complex::from_polar(f64::from(*w), -TAU * (bin * n % frame.len()) as f64 / frame.len() as f64);
        Complex::new(f64::from(x.re), f64::from(x.im)) * turn
    };
    frame.iter().zip(weights).enumerate().map(term).sum()
}

#[test]
fn transforms_are_those_of_the_definition() {
    let samples = complexes(1000);
    for (size, hop) in [(8, 8), (8, 3), (64, 32), (60, 100), (2, 1), (128, 128)] {
        let weights = Window::Hann.weights(size);
        let seen = fft(size, hop, Window::Hann, &samples).run();
        let bins = seen.samples::<Complex<f32>>("out");
        let frames = (samples.len() - size) / hop + 1;
        assert_eq!(bins.len(), frames * size, "{size} {hop}");
        assert!(seen.lengths("out").iter().all(|length| *length == size));
        assert_eq!(seen.rate_hz("out"), RATE_HZ * size as f64 / hop as f64);
        for frame in [0, frames / 2, frames - 1] {
            for bin in [0, 1, size / 2, size - 1] {
                let expected = direct(&samples[frame * hop..][..size], &weights, bin);
                let got = bins[frame * size + bin];
                let error = Complex::new(f64::from(got.re), f64::from(got.im)) - expected;
                assert!(error.norm() < 1e-5 * size as f64, "{size} {hop} {frame} {bin}: {error}");
            }
        }
    }
}

#[test]
fn power_is_kept() {
    // Parseval: the squares of the bins are `size` times those of the samples.
    let samples = complexes(4096);
    let seen = fft(256, 256, Window::Rectangular, &samples).run();
    let power = |x: &[Complex<f32>]| x.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>();
    let ratio = power(&seen.samples::<Complex<f32>>("out")) / power(&samples) / 256.0;
    assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
}

#[test]
fn chunks_do_not_matter() {
    let samples = complexes(9000);
    cuts(|| fft(8, 3, Window::Hann, &samples));
    cuts(|| fft(6, 100, Window::Rectangular, &samples));
    cuts(|| spectrum(16, 8, 7, &samples));
    let real: Vec<f32> = samples.iter().map(|x| x.re).collect();
    cuts(|| spectrum(16, 5, 3, &real));
}

#[test]
fn a_tone_is_in_its_bin_at_its_level() {
    // 0.5 is -6.02 dB. Bin 40 of 256, and bin -40.
    for (cycles, bin) in [(40.0 / 256.0, 128 + 40), (-40.0 / 256.0, 128 - 40)] {
        let db = spectrum(256, 128, 4, &tone(2048, 0.5, cycles)).run().samples::<f32>("out");
        let first = &db[..256];
        assert!((first[bin] + 6.0206).abs() < 1e-3, "{}", first[bin]);
        for (n, level) in first.iter().enumerate().filter(|(n, _)| n.abs_diff(bin) > 2) {
            assert!(*level < -100.0, "{n}: {level}");
        }
    }
    // A real tone has half of its square as power, and 129 bins.
    let real: Vec<f32> = tone(2048, 1.0, 40.0 / 256.0).iter().map(|x| x.re).collect();
    let seen = spectrum(256, 128, 4, &real).run();
    assert_eq!(seen.lengths("out")[0], 129);
    let level = seen.samples::<f32>("out")[40];
    assert!((level + 3.0103).abs() < 1e-3, "{level}");
    // Both state the frequencies of their bins.
    let tags = |first_hz: f64| {
        [
            (0, "axis:first_hz".to_string(), first_hz.into()),
            (0, "axis:step_hz".to_string(), (RATE_HZ / 256.0).into()),
        ]
    };
    assert_eq!(seen.tags("out"), tags(0.0));
    assert_eq!(spectrum(256, 128, 4, &tone(2048, 1.0, 0.1)).run().tags("out"), tags(-RATE_HZ / 2.0));
    // Silence.
    assert!(spectrum(64, 64, 1, &[0.0f32; 64]).run().samples::<f32>("out").iter().all(|db| *db == -200.0));
}

#[test]
fn the_last_mean_is_of_what_there_is() {
    // 10 frames: averages of 4, 4 and 2.
    let seen = spectrum(64, 64, 4, &tone(645, 1.0, 8.0 / 64.0)).run();
    let db = seen.samples::<f32>("out");
    assert_eq!(db.len(), 3 * 64);
    for mean in db.chunks(64) {
        assert!(mean[32 + 8].abs() < 1e-3);
    }
    assert!(spectrum(64, 64, 4, &tone(63, 1.0, 0.1)).run().samples::<f32>("out").is_empty());
}

#[test]
fn bad_samples_are_counted_and_large_frames_refused() {
    let mut samples = tone(128, 1.0, 0.25);
    samples[3] = Complex::new(f32::NAN, 0.0);
    samples[70].im = f32::INFINITY;
    let seen = spectrum(64, 64, 1, &samples).run();
    assert!(seen.samples::<f32>("out").iter().all(|db| db.is_finite()));
    assert_eq!(seen.notes(), ["2 samples were not finite and counted as 0"]);

    let text = fft(4096, 4096, Window::Hann, &complexes(4096)).quantum(1024).failure();
    assert!(text.contains("`size` is 4096") && text.contains("quantum = 32768"), "{text}");
    let refused = |size, hop| {
        Framed::<f32, Fft>::new(size, hop, Window::Hann, Fft::default()).err().unwrap().to_string()
    };
    assert!(refused(1, 1).contains("`size` is 1") && refused(8, 0).contains("`hop` is 0"));
    assert!(Spectrum::new(0).unwrap_err().to_string().contains("`average` is 0"));
}

#[test]
fn windows_are_as_wide_as_they_say() {
    for (window, mean) in [
        (Window::Rectangular, 1.0),
        (Window::Hann, 0.5),
        (Window::Hamming, 0.54),
        (Window::BlackmanHarris, 0.35875),
    ] {
        let weights = window.weights(1024);
        let sum: f32 = weights.iter().sum();
        assert!((sum / 1024.0 - mean).abs() < 1e-6, "{window:?}");
        assert!((weights[512] - 1.0).abs() < 1e-6 && (weights[100] - weights[924]).abs() < 1e-6);
    }
}
