//! Stereo: separation, level and delay; stations without a pilot.

use super::signals::{Multiplex, PLAIN};
use crate::packets::signals::normal;
use crate::slices::Dice;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};
use std::f64::consts::TAU;

const STATION: Multiplex = Multiplex { rate_hz: 240e3, ..PLAIN };

fn trial(parameters: &str, samples: Vec<f32>, rate_hz: f64) -> Trial {
    Trial::kind(&registry(), "fm.stereo", parameters).feed("in", Feed::samples(samples).rate(rate_hz))
}

fn run(signal: Multiplex, samples: &[f32]) -> Seen {
    trial("", signal.received(samples), signal.rate_hz).run()
}

/// Largest difference from a function of the time, in the second half.
fn worst(samples: &[f32], rate_hz: f64, expected: impl Fn(f64) -> f64) -> f64 {
    let end = samples.len() - 200;
    let error = |at: usize| (f64::from(samples[at]) - expected(at as f64 / rate_hz)).abs();
    (samples.len() / 2..end).map(error).fold(0.0, f64::max)
}

#[test]
fn left_and_right_are_apart_and_on_time() {
    for (rate_hz, out_hz, tone_hz, clock) in [
        (240e3, 48e3, 400.0, 0.0),
        (240e3, 48e3, 14_900.0, 1e-4),
        (240e3, 48e3, 5000.0, -1e-4),
        (171e3, 57e3, 1000.0, 0.0),
        (192e3, 48e3, 10_000.0, 3e-5),
        (384e3, 48e3, 1000.0, 0.0),
        (108e3, 54e3, 1000.0, 0.0),
        (1e6, 1e6 / 22.0, 1000.0, 0.0),
    ] {
        let signal = Multiplex { rate_hz, clock, ..STATION };
        let tone = |t: f64| (TAU * tone_hz * t).cos();
        let other = |t: f64| 0.5 * (TAU * 3000.0 * t).sin();
        for is_left in [true, false] {
            let silence = |_: f64| 0.0;
            let samples =
                if is_left { signal.stereo(1.0, tone, silence) } else { signal.stereo(1.0, silence, tone) };
            let seen = run(signal, &samples);
            assert_eq!(seen.rate_hz("left"), out_hz);
            let (loud, quiet) = if is_left { ("left", "right") } else { ("right", "left") };
            let leak = worst(&seen.samples::<f32>(quiet), out_hz, |_| 0.0);
            assert!(leak < 1e-4, "{leak} at {rate_hz} Hz, {tone_hz} Hz");
            let error = worst(&seen.samples::<f32>(loud), out_hz, |t| 0.9 * tone(t));
            assert!(error < 3e-4, "{error} at {rate_hz} Hz, {tone_hz} Hz");
            assert_eq!(seen.messages::<f64>("pilot"), [1.0]);
        }
        let seen = run(signal, &signal.stereo(1.0, tone, other));
        assert!(worst(&seen.samples::<f32>("left"), out_hz, |t| 0.9 * tone(t)) < 3e-4);
        assert!(worst(&seen.samples::<f32>("right"), out_hz, |t| 0.9 * other(t)) < 3e-4);
        let count = (samples_of(rate_hz) as f64 / (rate_hz / out_hz)).ceil() as usize;
        assert_eq!(seen.samples::<f32>("left").len(), count);
    }
}

fn samples_of(rate_hz: f64) -> usize {
    rate_hz as usize
}

#[test]
fn without_a_pilot_both_are_the_sum() {
    let signal = Multiplex { pilot: 0.0, ..STATION };
    let samples = signal.stereo(1.0, |t| (TAU * 1000.0 * t).cos(), |t| (TAU * 14e3 * t).sin());
    let noisy = Multiplex { noise: 0.05, ..signal };
    for signal in [signal, noisy] {
        let seen = run(signal, &samples);
        assert_eq!(seen.notes(), ["no pilot: left and right are the same"]);
        assert!(seen.samples::<f32>("left") == seen.samples::<f32>("right"));
    }
    let mut dice = Dice::new(3);
    let noise: Vec<f32> = (0..2_400_000).map(|_| normal(&mut dice)).collect();
    let seen = trial("", noise, 240e3).run();
    assert_eq!(seen.messages::<f64>("pilot"), [] as [f64; 0]);
    let seen = trial("mono = true", STATION.received(&samples), 240e3).run();
    assert!(seen.samples::<f32>("left") == seen.samples::<f32>("right"));
    assert!(seen.notes()[0].starts_with("a pilot for 89.9 %"), "{:?}", seen.notes());
    assert!(seen.notes()[0].contains("at 19000.0") && seen.notes()[0].contains("amplitude of 0.1000"));
}

#[test]
fn a_pilot_comes_and_goes() {
    let samples = STATION.stereo(3.0, |t| (TAU * 1000.0 * t).cos(), |_| 0.0);
    let (with, without) =
        (STATION.received(&samples), Multiplex { pilot: 0.0, ..STATION }.received(&samples));
    let second = 240_000;
    let all = [&without[..second], &with[second..2 * second], &without[2 * second..]].concat();
    let seen = trial("", all, 240e3).run();
    assert_eq!(seen.messages::<f64>("pilot"), [1.0, 0.0]);
    let (left, right) = (seen.samples::<f32>("left"), seen.samples::<f32>("right"));
    let loudest = |part: std::ops::Range<usize>| right[part].iter().fold(0f32, |most, x| most.max(x.abs()));
    // Mono, stereo, mono: half a second after each change.
    assert!((loudest(24_000..40_000) - 0.45).abs() < 0.01);
    assert!(loudest(72_000..90_000) < 1e-3);
    assert!(left[120_000..] == right[120_000..]);
}

#[test]
fn cuts_do_not_matter() {
    let signal = Multiplex { rate_hz: 120e3, noise: 0.01, ..STATION };
    let samples =
        signal.received(&signal.stereo(0.25, |t| (TAU * 700.0 * t).cos(), |t| (TAU * 90.0 * t).sin()));
    let seen = cuts(|| trial("bandwidth = '40 Hz'", samples.clone(), signal.rate_hz));
    assert_eq!(seen.messages::<f64>("pilot"), [1.0]);
}

#[test]
fn bad_samples_and_bad_rates() {
    let mut samples = STATION.received(&STATION.stereo(1.0, |t| (TAU * 1000.0 * t).cos(), |_| 0.0));
    for (at, bad) in [(100_000, f32::NAN), (100_001, f32::INFINITY), (100_002, 1e30)] {
        samples[at] = bad;
    }
    let seen = trial("", samples, 240e3).run();
    assert!(seen.samples::<f32>("left").iter().all(|x| x.is_finite()));
    assert_eq!(seen.notes()[1], "2 samples were not finite and counted as 0");
    let said = trial("", vec![0.0; 100], 48e3).failure();
    assert!(said.contains("48000 Hz") && said.contains("at least 108000 Hz"), "{said}");
    let said = trial("factor = 7", vec![0.0; 100], 240e3).failure();
    assert!(said.contains("`factor` is 7: it must be at most 6"), "{said}");
}
