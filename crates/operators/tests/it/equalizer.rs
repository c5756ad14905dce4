//! Equalizers, compared with the analogue filters that they come from and with plain loops.
#![forbid(unsafe_code)]

use crate::slices::{Dice, SIZES, Size, drive_map};
use num_complex::Complex;
use onbeat_operators::dsp::Vectors;
use onbeat_operators::equalizer::{Band, BandType, Equalizer};
use onbeat_operators::registry;
use onbeat_runtime::Map;
use onbeat_runtime::testing::{Feed, Trial};
use std::f64::consts::{PI, TAU};

const RATE_HZ: f64 = 48e3;

fn band(shape: BandType, frequency_hz: f64, gain_db: f64, q: f64) -> Band {
    let has_gain = matches!(shape, BandType::Peaking | BandType::LowShelf | BandType::HighShelf);
    Band { shape, frequency_hz, gain_db: has_gain.then_some(gain_db), q }
}

/// Coefficients of numerator and denominator of the analogue filter, of s², s and 1, at frequency 1.
fn analogue(band: &Band) -> [[f64; 3]; 2] {
    let a = 10f64.powf(band.gain_db.unwrap_or(0.0) / 40.0);
    let (q, slope) = (band.q, a.sqrt() / band.q);
    let plain = [1.0, 1.0 / q, 1.0];
    match band.shape {
        BandType::LowPass => [[0.0, 0.0, 1.0], plain],
        BandType::HighPass => [[1.0, 0.0, 0.0], plain],
        BandType::Notch => [[1.0, 0.0, 1.0], plain],
        BandType::BandPass => [[0.0, 1.0 / q, 0.0], plain],
        BandType::AllPass => [[1.0, -1.0 / q, 1.0], plain],
        BandType::Peaking => [[1.0, a / q, 1.0], [1.0, 1.0 / (a * q), 1.0]],
        BandType::LowShelf => [[a, a * slope, a * a], [a, slope, 1.0]],
        BandType::HighShelf => [[a * a, a * slope, a], [1.0, slope, a]],
    }
}

/// A filter by its difference equation, on the samples of one channel.
fn plain_loop(band: &Band, rate_hz: f64, samples: &mut [f64]) {
    // Bilinear transform: s = (1 - z⁻¹) / (1 + z⁻¹) / t.
    let t = (PI * band.frequency_hz / rate_hz).tan();
    let [b, a] = analogue(band).map(|[two, one, zero]| {
        [two + one * t + zero * t * t, 2.0 * (zero * t * t - two), two - one * t + zero * t * t]
    });
    let (mut x, mut y) = ([0.0; 2], [0.0; 2]);
    for sample in samples {
        let new = (b[0] * *sample + b[1] * x[0] + b[2] * x[1] - a[1] * y[0] - a[2] * y[1]) / a[0];
        (x, y) = ([*sample, x[0]], [new, y[0]]);
        *sample = new;
    }
}

fn started(channels: usize, bands: &[Band]) -> Equalizer {
    let mut equalizer = Equalizer::new(channels, bands.to_vec()).unwrap();
    equalizer.start(RATE_HZ * channels as f64).unwrap();
    equalizer
}

/// As many bands as asked for, of all types.
fn many(count: usize) -> Vec<Band> {
    let types = [
        BandType::Peaking,
        BandType::LowShelf,
        BandType::HighShelf,
        BandType::Notch,
        BandType::HighPass,
        BandType::LowPass,
    ];
    let one = |n: usize| {
        let shape = types[n % 6];
        let frequency_hz = match shape {
            BandType::HighPass => 30.0,
            BandType::LowPass => 20e3,
            _ => 60.0 * 1.2f64.powi(n as i32),
        };
        band(shape, frequency_hz, 5.0 - n as f64 % 11.0, 0.5 + n as f64 * 0.1)
    };
    (0..count).map(one).collect()
}

#[test]
fn responses_are_those_of_the_analogue_filters() {
    for (shape, gain_db) in [
        (BandType::Peaking, 12.0),
        (BandType::Peaking, -6.0),
        (BandType::LowShelf, 9.0),
        (BandType::LowShelf, -20.0),
        (BandType::HighShelf, 6.0),
        (BandType::HighShelf, -15.0),
        (BandType::LowPass, 0.0),
        (BandType::HighPass, 0.0),
        (BandType::Notch, 0.0),
        (BandType::BandPass, 0.0),
        (BandType::AllPass, 0.0),
    ] {
        for (frequency_hz, q) in [(100.0, 0.7), (1e3, 0.71), (5e3, 2.0), (20e3, 5.0)] {
            let band = band(shape, frequency_hz, gain_db, q);
            let mut impulse = vec![0.0f32; 16_384];
            impulse[0] = 1.0;
            started(1, &[band]).map(&mut impulse);
            for hz in [20.0, 99.0, 100.0, 700.0, 1e3, 4.9e3, 10e3, 20e3, 23e3] {
                let turns = |n: usize| -TAU * hz / RATE_HZ * n as f64;
                let terms = impulse.iter().enumerate();
                let got: Complex<f64> =
                    terms.map(|(n, y)| Complex::from_polar(f64::from(*y), turns(n))).sum();
                // Prewarped: the analogue frequency that the bilinear transform maps to this one.
                let s = (PI * hz / RATE_HZ).tan() / (PI * frequency_hz / RATE_HZ).tan();
                let at =
                    |[two, one, zero]: [f64; 3]| Complex::new(zero, 0.0) + Complex::new(-s * two, one) * s;
                let [numerator, denominator] = analogue(&band).map(at);
                let error = (got - numerator / denominator).norm();
                assert!(error < 2e-5, "{band:?} at {hz} Hz: {error}");
            }
        }
    }
}

#[test]
fn values_are_those_of_plain_loops() {
    for channels in [1, 2, 3, 4, 7] {
        for count in [1, 4, 5, 8, 9, 17, 32] {
            let bands = many(count);
            let input = Dice::new(count as u64).values(channels * 700 + channels - 1);
            let got = drive_map(&mut started(channels, &bands), &input, Size::Fixed(usize::MAX));
            for channel in 0..channels {
                let own = |samples: &[f32]| -> Vec<f64> {
                    samples.iter().skip(channel).step_by(channels).map(|x| f64::from(*x)).collect()
                };
                let mut expected = own(&input);
                bands.iter().for_each(|band| plain_loop(band, RATE_HZ, &mut expected));
                for (n, (got, expected)) in own(&got).iter().zip(&expected).enumerate() {
                    let error = (got - expected).abs();
                    assert!(error < 1e-6 * expected.abs().max(1.0), "{channels}, {count}, {n}: {error}");
                }
            }
            for size in SIZES {
                assert_eq!(drive_map(&mut started(channels, &bands), &input, size), got, "{size:?}");
            }
            Vectors::each(|vectors| {
                let same = drive_map(&mut started(channels, &bands), &input, Size::Fixed(500));
                assert_eq!(same, got, "{vectors}, {channels} channels, {count} bands");
            });
        }
    }
}

#[test]
fn silence_ends_and_bad_samples_do_not_stay() {
    let bands = many(5);
    let mut samples = Dice::new(1).values(400_000);
    samples[1000..].fill(0.0);
    (samples[10], samples[20]) = (f32::NAN, f32::INFINITY);
    let mut zeros = samples.clone();
    (zeros[10], zeros[20]) = (0.0, 0.0);
    let mut equalizer = started(2, &bands);
    equalizer.map(&mut samples);
    started(2, &bands).map(&mut zeros);
    assert_eq!(samples, zeros);
    assert!(samples[390_000..].iter().all(|y| *y == 0.0), "{:?}", &samples[399_990..]);
    assert_eq!(equalizer.note().unwrap(), "2 samples were not finite and counted as 0");
    // A second start forgets everything.
    equalizer.map(&mut [1.0; 7]);
    equalizer.start(2.0 * RATE_HZ).unwrap();
    let mut again = vec![0.0; 64];
    equalizer.map(&mut again);
    assert_eq!(again, [0.0; 64]);
}

#[test]
fn wrong_bands_are_named() {
    let refused = |bands: Vec<Band>| Equalizer::new(1, bands).unwrap_err().to_string();
    let good = band(BandType::Peaking, 1e3, 3.0, 1.0);
    let notch = band(BandType::Notch, 1e3, 0.0, 1.0);
    let text = refused(vec![good, Band { q: 0.0, ..good }]);
    assert!(text.starts_with("`bands[1].q` is 0: it must be from 0.01 to 1000"), "{text}");
    let text = refused(vec![Band { frequency_hz: f64::NAN, ..good }]);
    assert!(text.starts_with("`bands[0].frequency` is NaN"), "{text}");
    let text = refused(vec![Band { gain_db: Some(61.0), ..good }]);
    assert!(text.starts_with("`bands[0].gain` is 61"), "{text}");
    assert!(refused(vec![Band { gain_db: None, ..good }]).contains("needs `gain`"));
    assert!(refused(vec![Band { gain_db: Some(1.0), ..notch }]).contains("has no effect"));
    assert!(refused(vec![]).starts_with("`bands` has 0 entries: it must have from 1 to 32"));
    assert!(refused(vec![good; 33]).starts_with("`bands` has 33 entries"));
    assert!(Equalizer::new(0, vec![good]).is_err() && Equalizer::new(65, vec![good]).is_err());
    // The rate of a channel is half of that of the stream.
    let high = Band { frequency_hz: 12e3, ..good };
    let text = Equalizer::new(2, vec![high]).unwrap().start(RATE_HZ).unwrap_err().to_string();
    assert!(text.contains("`bands[0].frequency` is 12000 Hz: it must be below 12000 Hz"), "{text}");
}

#[test]
fn a_file_describes_bands() {
    let samples = Dice::new(3).values(200);
    let bands = "channels = 2\nbands = [{ type = \"notch\", frequency = \"1 kHz\", q = 3 }, \
                 { type = \"high-shelf\", frequency = 2000, gain = \"-3 dB\" }]";
    let feed = Feed::samples(samples.clone()).rate(2.0 * RATE_HZ);
    let seen = Trial::kind(&registry(), "equalizer", bands).feed("in", feed).run();
    let same = [
        band(BandType::Notch, 1e3, 0.0, 3.0),
        band(BandType::HighShelf, 2e3, -3.0, std::f64::consts::FRAC_1_SQRT_2),
    ];
    assert_eq!(seen.samples::<f32>("out"), drive_map(&mut started(2, &same), &samples, Size::Fixed(200)));
}
