//! Loops that follow a carrier: next to their linear model, in noise, when the carrier comes and goes.
#![forbid(unsafe_code)]

use crate::packets::signals::normal;
use crate::slices::Dice;
use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::Sample;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};
use std::f64::consts::TAU;

const RATE_HZ: f64 = 48e3;

fn run<T: Sample>(kind: &str, parameters: &str, samples: Vec<T>) -> Seen {
    let feed = Feed::samples(samples).rate(RATE_HZ);
    Trial::kind(&registry(), kind, parameters).feed("in", feed).run()
}

fn unit(angle: f64) -> Complex<f32> {
    Complex::new(angle.cos() as f32, angle.sin() as f32)
}

fn noise(dice: &mut Dice, sigma: f64) -> Complex<f32> {
    Complex::new(normal(dice), normal(dice)) * sigma as f32
}

/// The phase error after a step of the phase and of the frequency, from SciPy's `lfilter` and the transfer
/// functions of the page (`bandwidth` 200 Hz at 48 kHz):
///
/// ```text
/// k1, k2 = ...; s = 1 - exp(-2 pi 10 200 / 48000); arm = [1, -(1 - s)]
/// num = convolve([1, -2, 1], arm); den = num + s * array([0, k1 + k2, -k1, 0])
/// lfilter([s], arm, lfilter(num, den, theta))
/// ```
#[test]
fn the_loop_is_its_linear_model() {
    let step = [
        (0, 0.023_033_5),
        (10, 0.089_533_5),
        (50, 0.056_280_1),
        (100, 0.020_007_3),
        (200, -0.015_696_6),
        (500, -0.007_941_6),
        (1000, 0.000_516),
    ];
    let ramp = [
        (0, 0.0),
        (10, 0.004_423),
        (50, 0.024_118_4),
        (100, 0.036_320_7),
        (200, 0.035_598_7),
        (500, 0.002_344_5),
        (1000, -0.000_254_5),
    ];
    // A tenth of the steps of the model, 0.1 radians and 5 Hz, so that the loop is linear, after a carrier
    // that fills the low-pass.
    let before = || (0..1000).map(|_| unit(0.0));
    let by_step: Vec<_> = before().chain((0..2000).map(|_| unit(0.01))).collect();
    let ramp_angle = |n| TAU * 0.5 / RATE_HZ * f64::from(n);
    let by_ramp: Vec<_> = before().chain((0..2000).map(|n| unit(ramp_angle(n)))).collect();
    for (input, expected) in [(by_step, step), (by_ramp, ramp)] {
        for level in [1.0, 1e-3, 100.0] {
            let input = input.iter().map(|x| x * level).collect();
            let seen = run::<Complex<f32>>("pll.complex", "frequency = 0\nbandwidth = '200 Hz'", input);
            let errors = seen.samples::<f32>("error");
            for (at, expected) in expected {
                let error = f64::from(errors[1000 + at]);
                assert!((error - expected / 10.0).abs() < 3e-6, "{error} at {at}: {expected}");
            }
        }
    }
}

/// Phase, after both have settled, of the reference against the carrier.
fn phase_errors(seen: &Seen, carrier_hz: f64) -> Vec<f64> {
    let reference = seen.samples::<Complex<f32>>("reference");
    let angle = |(n, r): (usize, &Complex<f32>)| {
        let of_carrier = unit(TAU * (carrier_hz / RATE_HZ * n as f64).fract());
        f64::from((r * of_carrier.conj()).arg())
    };
    let errors: Vec<f64> = reference.iter().enumerate().map(angle).collect();
    errors[errors.len() / 4..].to_vec()
}

#[test]
fn a_carrier_off_its_frequency_is_followed_without_error() {
    for (carrier_hz, real) in [(5000.0, true), (4990.0, true), (5008.0, false), (-7012.3, false)] {
        let nominal = if carrier_hz < 0.0 { -7000 } else { 5000 };
        let parameters = format!("frequency = {nominal}\nbandwidth = '20 Hz'");
        let carrier = |n: u32| unit(TAU * (carrier_hz / RATE_HZ * f64::from(n)).fract()) * 0.3;
        let seen = if real {
            run("pll", &parameters, (0..96_000).map(|n| carrier(n).re).collect())
        } else {
            run("pll.complex", &parameters, (0..96_000).map(carrier).collect())
        };
        let worst =
            phase_errors(&seen, carrier_hz).into_iter().fold(0f64, |worst, error| worst.max(error.abs()));
        // At the level of real samples, the mirror at twice the frequency is left in the phase detector.
        assert!(worst < if real { 3e-4 } else { 1e-5 }, "{worst} at {carrier_hz} Hz");
        let last = *seen.samples::<f32>("frequency").last().unwrap();
        assert!((f64::from(last) - carrier_hz).abs() < 0.01, "{last} for {carrier_hz}");
        assert_eq!(seen.messages::<f64>("locked"), [1.0], "{carrier_hz} Hz");
        let out = seen.samples::<Complex<f32>>("out");
        let mean = out[48_000..].iter().sum::<Complex<f32>>() / 48_000.0;
        assert!((mean - Complex::new(0.3, 0.0)).norm() < 1e-3, "{mean}");
    }
}

#[test]
fn noise_makes_the_phase_as_unsteady_as_the_bandwidth_says() {
    let mut dice = Dice::new(4);
    let (sigma, bandwidth_hz) = (0.5, 50.0);
    let input: Vec<_> = (0..480_000)
        .map(|n| unit(TAU * (1234.0 / RATE_HZ * f64::from(n)).fract()) + noise(&mut dice, sigma))
        .collect();
    let seen = run("pll.complex", "frequency = '1234 Hz'\nbandwidth = '50 Hz'", input);
    let errors = phase_errors(&seen, 1234.0);
    let rms = (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt();
    // Noise of a power of 2 sigma² over the sample rate; C is 1.
    let expected = (bandwidth_hz * 2.0 * sigma * sigma / RATE_HZ).sqrt();
    assert!((rms / expected - 1.0).abs() < 0.15, "{rms}, {expected}");
}

#[test]
fn the_loop_says_when_it_is_locked() {
    let mut dice = Dice::new(9);
    // Noise, then a carrier at 0 dB in 1 kHz, then noise: a second each.
    let sigma = (RATE_HZ / 1000.0 / 2.0).sqrt();
    let mut sample = |n: u32| {
        let is_on = (48_000..96_000).contains(&n);
        let carrier = unit(TAU * (3003.0 / RATE_HZ * f64::from(n)).fract()) * f32::from(u8::from(is_on));
        carrier + noise(&mut dice, sigma)
    };
    let input: Vec<_> = (0..144_000).map(&mut sample).collect();
    let seen = run("pll.complex", "frequency = '3 kHz'\nbandwidth = '10 Hz'", input);
    assert_eq!(seen.messages::<f64>("locked"), [1.0, 0.0]);
    let note = &seen.notes()[0];
    assert!(note.starts_with("locked for 20.0 %"), "{note}");
    let silence = run("pll", "frequency = '3 kHz'", vec![0.0f32; 10_000]);
    assert!(silence.messages::<f64>("locked").is_empty());
    assert!(silence.notes()[0].starts_with("never locked"), "{:?}", silence.notes());
}

/// PSK symbols of 40 samples with smooth transitions, at a frequency.
fn psk(order: u32, hertz: f64, symbols: usize, sigma: f64) -> (Vec<u32>, Vec<Complex<f32>>) {
    let mut dice = Dice::new(11);
    let sent: Vec<u32> = (0..symbols).map(|_| dice.bits() % order).collect();
    let first = if order == 2 { 0.0 } else { 0.5 };
    let point = |at: usize| unit(TAU * (f64::from(sent[at.min(symbols - 1)]) + first) / f64::from(order));
    let sample = |n: usize| {
        let (at, within) = (n / 40, (n % 40) as f64 / 40.0);
        let share = if within < 0.75 { 0.0 } else { 0.5 - 0.5 * (TAU * 2.0 * (within - 0.75)).cos() } as f32;
        let symbol = point(at) * (1.0 - share) + point(at + 1) * share;
        symbol * unit(TAU * (hertz / RATE_HZ * n as f64).fract() + 0.4) + noise(&mut dice, sigma)
    };
    let samples = (0..40 * symbols).map(sample).collect();
    (sent, samples)
}

#[test]
fn symbols_are_turned_to_their_angles() {
    for (order, sigma) in [(2u32, 0.3), (4, 0.15), (8, 0.08)] {
        let (sent, samples) = psk(order, 1003.0, 2000, sigma);
        let parameters =
            format!("order = {order}\nfrequency = '1 kHz'\nbandwidth = '10 Hz'\nrange = '20 Hz'");
        let seen = run("costas", &parameters, samples);
        let out = seen.samples::<Complex<f32>>("out");
        let first = if order == 2 { 0.0 } else { 0.5 };
        let number = |x: Complex<f32>| {
            let turns = f64::from(x.arg()) / TAU * f64::from(order) - first;
            (turns.round() as i32).rem_euclid(order as i32) as u32
        };
        let received: Vec<u32> =
            (0..2000).map(|at| number(out[40 * at + 10..40 * at + 20].iter().sum())).collect();
        // Differences, because the loop locks at any of the phases.
        let change = |symbols: &[u32], at: usize| (symbols[at] + order - symbols[at - 1]) % order;
        let wrong: Vec<_> = (1000..2000).filter(|at| change(&received, *at) != change(&sent, *at)).collect();
        assert_eq!(wrong, [] as [usize; 0], "order {order}");
        let last = *seen.samples::<f32>("frequency").last().unwrap();
        assert!((last - 1003.0).abs() < 1.0, "{last} at order {order}");
        assert_eq!(seen.messages::<f64>("locked"), [1.0], "order {order}");
    }
    let mut dice = Dice::new(2);
    let seen = run("costas", "bandwidth = '50 Hz'", (0..48_000).map(|_| noise(&mut dice, 1.0)).collect());
    assert_eq!(seen.messages::<f64>("locked"), [] as [f64; 0], "{:?}", seen.notes());
}

#[test]
fn cuts_do_not_matter() {
    let (_, samples) = psk(4, 30.0, 60, 0.1);
    let feed = || Feed::samples(samples.clone()).rate(RATE_HZ).tag(700, "here", 7);
    cuts(|| Trial::kind(&registry(), "costas", "order = 4\nbandwidth = '50 Hz'").feed("in", feed()));
    let seen = cuts(|| {
        Trial::kind(&registry(), "pll.complex", "frequency = 30\nbandwidth = '50 Hz'").feed("in", feed())
    });
    for output in ["out", "reference", "frequency", "error"] {
        assert_eq!(seen.tags(output), [(700, "here".to_string(), 7.into())], "{output}");
        assert_eq!(seen.rate_hz(output), RATE_HZ);
    }
    let real: Vec<f32> = samples.iter().map(|x| x.re).collect();
    cuts(|| {
        let feed = Feed::samples(real.clone()).rate(RATE_HZ);
        Trial::kind(&registry(), "pll", "frequency = '1 kHz'\nbandwidth = '50 Hz'").feed("in", feed)
    });
}

#[test]
fn bad_samples_do_no_harm() {
    let mut samples: Vec<f32> = (0..48_000).map(|n| (TAU * 0.1 * f64::from(n)).cos() as f32).collect();
    for (at, bad) in [(20_000, f32::NAN), (20_001, f32::INFINITY), (20_002, f32::NEG_INFINITY)] {
        samples[at] = bad;
    }
    let seen = run("pll", "frequency = '4.8 kHz'", samples);
    assert!(seen.samples::<f32>("error").iter().all(|error| error.is_finite()));
    assert_eq!(seen.messages::<f64>("locked"), [1.0]);
    assert!(seen.notes()[1].contains("3 samples were not finite"), "{:?}", seen.notes());
}

#[test]
fn limits_are_told() {
    let said = |kind: &str, parameters: &str| {
        let trial = Trial::kind(&registry(), kind, parameters);
        let trial = if kind == "pll" {
            trial.feed("in", Feed::samples([0f32; 100]).rate(RATE_HZ))
        } else {
            trial.feed("in", Feed::samples([Complex::<f32>::default(); 100]).rate(RATE_HZ))
        };
        trial.failure()
    };
    let text = said("pll", "frequency = '30 kHz'");
    assert!(text.contains("`frequency` is 30000") && text.contains("24000"), "{text}");
    let text = said("pll", "frequency = '20 kHz'\nrange = '5 kHz'");
    assert!(text.contains("`range` is 5000") && text.contains("at most 4000"), "{text}");
    let text = said("costas", "bandwidth = '5 kHz'");
    assert!(text.contains("`bandwidth` is 5000") && text.contains("4800"), "{text}");
    for (parameters, expected) in [
        ("frequency = '100 Hz'\nbandwidth = '20 Hz'", "to 10; real samples"),
        ("frequency = '-5 kHz'", "`frequency` is -5000"),
    ] {
        let error = registry().operator("pll", parameters).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = registry().operator("costas", "order = 3\nbandwidth = 20").err().unwrap().to_string();
    assert!(error.contains("`order` is 3: it must be 2, 4 or 8"), "{error}");
}

#[test]
fn symbols_of_both_parts_are_timed_together() {
    // QPSK in pulses of the form of a triangle, 0.2 % too fast, 7.3 samples a symbol, with noise.
    let mut dice = Dice::new(15);
    let sent: Vec<Complex<f32>> =
        (0..1500).map(|_| unit(TAU * (0.125 + 0.25 * f64::from(dice.bits() % 4)))).collect();
    let period = 7.3 / 1.002;
    let sample = |n: usize| {
        let t = n as f64 / period;
        let (at, share) = (t as usize, t.fract() as f32);
        sent[at.min(1499)] * (1.0 - share) + sent[(at + 1).min(1499)] * share + noise(&mut dice, 0.1)
    };
    let samples: Vec<_> = (0..(1499.0 * period) as usize).map(sample).collect();
    let parameters = format!("symbol_rate = {}\nbandwidth = 0.02", RATE_HZ / 7.3);
    for detector in ["zero-crossing", "gardner", "mueller-muller"] {
        let parameters = format!("{parameters}\ndetector = '{detector}'");
        let out = run("symbol.sync.complex", &parameters, samples.clone()).samples::<Complex<f32>>("out");
        let quadrant = |x: &Complex<f32>| (x.re > 0.0, x.im > 0.0);
        // The first symbol taken can be any of the first ones.
        let wrong = |offset: usize| {
            (300..1400).filter(|at| quadrant(&out[at - offset]) != quadrant(&sent[*at])).count()
        };
        assert_eq!((0..4).map(wrong).min(), Some(0), "{detector}");
    }
    let some = samples[..600].to_vec();
    cuts(|| {
        let feed = Feed::samples(some.clone()).rate(RATE_HZ);
        Trial::kind(&registry(), "symbol.sync.complex", &parameters).feed("in", feed)
    });
}
