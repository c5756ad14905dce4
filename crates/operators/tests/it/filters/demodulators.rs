//! Demodulators, and the correction of I/Q imbalance.
#![forbid(unsafe_code)]

use super::{RATE_HZ, complex, difference, driven, mapped, output, wide};
use crate::slices::Dice;
use num_complex::Complex;
use onbeat_operators::dsp::{AmDemod, IqBalance, SsbDemod};
use onbeat_runtime::{Declared, Kernel, Map};
use std::f64::consts::TAU;

/// A tone of magnitude 1.
fn tone(hz: f64, count: usize) -> Vec<Complex<f32>> {
    let sample = |n: usize| Complex::from_polar(1.0, (TAU * hz / RATE_HZ * n as f64) % TAU);
    (0..count).map(sample).map(|x: Complex<f64>| Complex::new(x.re as f32, x.im as f32)).collect()
}

/// ```text
/// e = np.abs(z); part = -np.expm1(-2 * np.pi * 200 / 48000); m = c = 0; y = []
/// for k, v in enumerate(e):
///     p = max(part, 1 / (k + 1)); m += (v - m) * p; c += (m - c) * p
///     y.append((v - m) / c)      # or v - m
/// ```
#[test]
fn am_is_the_formula() {
    let got = driven::<AmDemod>("cutoff = 200\nnormalise = false", RATE_HZ, &complex());
    let error = difference(&got, [0.0, 3.116896669e-01, 4.384227469e-01, 8.479064967e-02]);
    assert!(error < 4e-8, "{error}");
    let got = driven::<AmDemod>("cutoff = 200", RATE_HZ, &complex());
    let error = difference(&got, [0.0, 3.015102993e-01, 5.383918889e-01, 1.077409804e-01]);
    assert!(error < 4e-8, "{error}");
}

/// A carrier off 0 Hz, at two levels, with a sound of 1 kHz and 80 %.
#[test]
fn am_gives_the_modulation() {
    for level in [1e-4f32, 0.3, 50.0] {
        let sound = |n: usize| 0.8 * (TAU * 1e3 / RATE_HZ * n as f64).sin();
        let input: Vec<_> = tone(-4321.0, 48_000)
            .into_iter()
            .enumerate()
            .map(|(n, x)| x * level * (1.0 + sound(n)) as f32)
            .collect();
        let got = output::<AmDemod>("", RATE_HZ, &input);
        for (n, y) in got.iter().enumerate().skip(24_000) {
            let error = (f64::from(*y) - sound(n)).abs();
            assert!(error < 0.01, "{error} at {n}, level {level}");
        }
        let plain = output::<AmDemod>("normalise = false", RATE_HZ, &input);
        let largest = plain[24_000..].iter().copied().fold(0.0, f32::max);
        assert!((largest / (0.8 * level) - 1.0).abs() < 0.01, "{largest}");
    }
    // 100 Hz are distorted by 0.06 %: all of it that is not the sine.
    let low = |n: usize| 0.5 * (TAU * 100.0 / RATE_HZ * n as f64).sin();
    let input: Vec<_> = (0..48_000).map(|n| Complex::new((1.0 + low(n)) as f32, 0.0)).collect();
    let got = &output::<AmDemod>("", RATE_HZ, &input)[24_000..];
    let harmonic = |k: usize| {
        let turn = |n: usize| Complex::from_polar(2.0 / 24e3, -TAU * 100.0 * k as f64 / RATE_HZ * n as f64);
        got.iter().enumerate().map(|(n, y)| turn(n) * f64::from(*y)).sum::<Complex<f64>>().norm()
    };
    assert!((harmonic(1) - 0.5).abs() < 1e-3, "{}", harmonic(1));
    let distortion = (2..6).map(|k| harmonic(k).powi(2)).sum::<f64>().sqrt() / harmonic(1);
    assert!((distortion - 0.00062).abs() < 2e-5, "{distortion}");
    // Silence is silent, and bad samples leave no trace.
    let mut demod = AmDemod::with("").unwrap();
    demod.start(RATE_HZ).unwrap();
    let input = [Complex::new(0.0, 0.0), Complex::new(f32::NAN, 0.0), Complex::new(0.0, 0.0)];
    let mut output = [7.0; 3];
    demod.process(&input, &mut output);
    assert_eq!(output, [0.0; 3]);
    assert_eq!(demod.note().unwrap(), "1 samples were not finite and gave an output of 0");
}

const SSB: &str = "low = '1 kHz'\nhigh = '6 kHz'\ntransition = '2 kHz'";

/// ```text
/// h = firwin(93, 2500, window=("kaiser", 0.1102 * (62.5 - 8.7)), fs=48000)
/// h = h * np.exp(2j * np.pi * 3500 / 48000 * (np.arange(93) - 46))        # .conj() for the lower side
/// np.convolve(z, h)[46:646].real
/// ```
#[test]
fn ssb_is_that_of_scipy() {
    for method in ["direct", "fft", "auto"] {
        for (side, expected) in [
            ("upper", [-2.835404413e-01, 1.316861764e-01, -1.834627939e-01, -9.587410711e-02]),
            ("lower", [-1.869307399e-01, 3.995122178e-02, 1.894672366e-01, -1.685821126e-01]),
        ] {
            let text = format!("{SSB}\nsideband = '{side}'\nmethod = '{method}'");
            let error = difference(&driven::<SsbDemod>(&text, RATE_HZ, &complex()), expected);
            assert!(error < 5e-7, "{method}, {side}: {error}");
        }
    }
}

/// Amplitude of a demodulated tone of magnitude 1, in decibels, and its largest value.
fn ssb_db(parameters: &str, hz: f64) -> f64 {
    let got = output::<SsbDemod>(parameters, RATE_HZ, &tone(hz, 12_000));
    let middle = &got[3000..9000];
    10.0 * (2.0 * middle.iter().map(|y| f64::from(*y).powi(2)).sum::<f64>() / 6000.0).log10()
}

#[test]
fn ssb_passes_one_side_and_stops_the_other() {
    for attenuation in [60.0, 90.0] {
        let text = |side: &str| format!("sideband = '{side}'\nattenuation = {attenuation}");
        for hz in [408.0, 1000.0, 2592.0] {
            for (side, sign) in [("upper", 1.0), ("lower", -1.0)] {
                let (passed, stopped) = (ssb_db(&text(side), sign * hz), ssb_db(&text(side), -sign * hz));
                assert!(passed.abs() < 0.01, "{side}: {passed} dB at {hz} Hz");
                assert!(stopped < -attenuation, "{side}: {stopped} dB at {} Hz", -sign * hz);
            }
        }
        for hz in [0.0, 100.0, 195.0, 2805.0, 5000.0, 20_000.0] {
            let stopped = ssb_db(&text("upper"), hz);
            assert!(stopped < -attenuation, "{stopped} dB at {hz} Hz");
        }
    }
    // The sound is at the same instant.
    let got = output::<SsbDemod>("", RATE_HZ, &tone(-1500.0, 6000));
    assert!(got[2500..3500].iter().all(|y| y.abs() < 1e-3));
    let got = output::<SsbDemod>("", RATE_HZ, &tone(1500.0, 6000));
    for (n, y) in got.iter().enumerate().take(3500).skip(2500) {
        assert!((f64::from(*y) - (TAU * 1500.0 / RATE_HZ * n as f64).cos()).abs() < 2e-3, "{y} at {n}");
    }
}

#[test]
fn wrong_bands_of_ssb_are_named() {
    let refused = |text: &str| match SsbDemod::with(text) {
        Err(error) => error.to_string(),
        Ok(mut demod) => demod.start(RATE_HZ).unwrap_err().to_string(),
    };
    for (text, expected) in [
        ("low = 50", "`low` is 50: it must be at least 100, half of `transition`"),
        ("low = 3000", "`high` is 2700: it must be at least 3200"),
        ("high = 30000", "`high` is 30000 Hz: it must be below 24000 Hz"),
        ("sideband = 'both'", "both"),
    ] {
        let error = refused(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// Circular noise with a bandwidth of the whole rate, or a tone with some noise.
fn signal(kind: &str, count: usize) -> Vec<Complex<f64>> {
    let mut dice = Dice::new(9);
    // The sum of several numbers is nearly normal.
    let mut normal = || (0..6).map(|_| f64::from(dice.value())).sum::<f64>() * 0.1;
    let noise: Vec<_> = (0..count).map(|_| Complex::new(normal(), normal())).collect();
    if kind == "noise" {
        return noise;
    }
    tone(5000.0, count).into_iter().zip(noise).map(|(x, noise)| wide(x) + noise * 0.01).collect()
}

/// Level of what is left of the conjugate signal, against the signal, in decibels.
fn image_db(signal: &[Complex<f64>], got: &[Complex<f32>]) -> f64 {
    // Least squares for `got = a signal + b conj(signal)`.
    let (mut power, mut square, mut of_signal, mut of_image) =
        (0.0, Complex::default(), Complex::default(), Complex::default());
    for (x, y) in signal.iter().zip(got) {
        power += x.norm_sqr();
        square += x * x;
        of_signal += wide(*y) * x.conj();
        of_image += wide(*y) * x;
    }
    let scale = power * power - square.norm_sqr();
    let a = (of_signal * power - of_image * square.conj()) / scale;
    let b = (of_image * power - of_signal * square) / scale;
    20.0 * (b.norm() / a.norm()).log10()
}

#[test]
fn iq_images_are_removed() {
    for (kind, limit_db) in [("noise", -45.0), ("tone", -70.0)] {
        for (gain_db, degrees) in [(0.0, 0.0), (0.5, 2.0), (-1.0, -4.0), (3.0, 10.0)] {
            let exact = signal(kind, 480_000);
            let branch = Complex::from_polar(10f64.powf(gain_db / 20.0), f64::to_radians(degrees));
            let input: Vec<Complex<f32>> = exact
                .iter()
                .map(|x| {
                    // The Q branch has another gain and another angle; a constant is added.
                    let q = branch.norm() * (x.im * branch.arg().cos() + x.re * branch.arg().sin());
                    Complex::new((x.re + 0.05) as f32, (q - 0.02) as f32)
                })
                .collect();
            let mut balance = IqBalance::with("").unwrap();
            balance.start(RATE_HZ).unwrap();
            let mut got = input.clone();
            got.chunks_mut(1000).for_each(|chunk| balance.map(chunk));
            let centred = |samples: &[Complex<f32>]| -> Vec<Complex<f32>> {
                let mean = samples.iter().sum::<Complex<f32>>() / samples.len() as f32;
                samples.iter().map(|x| x - mean).collect()
            };
            let late = 240_000..480_000;
            let before = image_db(&exact[late.clone()], &centred(&input[late.clone()]));
            let after = image_db(&exact[late.clone()], &centred(&got[late]));
            assert!(after < limit_db, "{kind}, {gain_db} dB, {degrees}: {after} dB after {before} dB");
            if degrees != 0.0 {
                let note = balance.note().unwrap();
                let words: Vec<f64> = note.split(' ').filter_map(|word| word.parse().ok()).collect();
                assert!((words[0] - gain_db).abs() < 0.1 && (words[1] - degrees).abs() < 0.6, "{note}");
                assert!((words[2] - before).abs() < 1.0, "{note}, {before}");
            }
        }
    }
}

#[test]
fn iq_balance_does_not_see_slices_or_bad_samples() {
    let input: Vec<Complex<f32>> =
        signal("noise", 6000).iter().map(|x| Complex::new(x.re as f32, 0.8 * x.im as f32)).collect();
    mapped::<IqBalance>("tau = '20 ms'", RATE_HZ, &input);
    let mut bad = input;
    (bad[100].re, bad[3000].im) = (f32::NAN, f32::INFINITY);
    let got = mapped::<IqBalance>("tau = '20 ms'", RATE_HZ, &bad);
    assert!(got.iter().all(|y| y.is_finite()) && got[100] == Complex::new(0.0, 0.0));
    // A constant alone, silence, and one branch alone do no harm.
    for x in [Complex::new(0.5f32, -0.25), Complex::new(0.0, 0.0)] {
        assert_eq!(mapped::<IqBalance>("", RATE_HZ, &vec![x; 3000]), vec![x; 3000]);
    }
    let one: Vec<_> = bad.iter().map(|x| Complex::new(x.im, 0.0)).collect();
    let got = mapped::<IqBalance>("tau = '1 ms'", RATE_HZ, &one);
    assert!((got[5999].re / one[5999].re - 2.0 / 3.0).abs() < 1e-3, "{} {}", got[5999], one[5999]);
}
