//! Demodulators of digital signals, against the error rates of the theory.
#![forbid(unsafe_code)]

use crate::packets::signals::normal;
use crate::slices::Dice;
use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial, cuts};
use std::f64::consts::{PI, TAU};

/// Steps of a symbol in [`pulse`], and symbols on each side.
const STEPS: usize = 64;
const HALF: usize = 12;

/// A pulse of energy 1: the inverse transform of the root of a raised-cosine spectrum, by summation. For a
/// roll-off of 0 it is as long as a symbol.
fn pulse(roll_off: f64) -> Vec<f64> {
    let spectrum = |f: f64| {
        let (low, high) = ((1.0 - roll_off) / 2.0, f64::midpoint(1.0, roll_off));
        match f {
            f if f <= low => 1.0,
            f if f >= high => 0.0,
            f => (0.5 + 0.5 * (PI * (f - low) / roll_off).cos()).sqrt(),
        }
    };
    let at = |place: usize| {
        let t = place as f64 / STEPS as f64 - HALF as f64;
        if roll_off == 0.0 {
            return if t.abs() < 0.5 { 1.0 } else { 0.0 };
        }
        let parts = 4000;
        let sum: f64 = (0..parts)
            .map(|n| (n as f64 + 0.5) / parts as f64)
            .map(|f| spectrum(f) * (TAU * f * t).cos())
            .sum();
        2.0 * sum / parts as f64
    };
    (0..=2 * HALF * STEPS).map(at).collect()
}

/// A signal of these symbols, with `period` samples each, its carrier `turns` per sample off.
fn shaped(symbols: &[Complex<f64>], pulse: &[f64], period: f64, turns: f64) -> Vec<Complex<f64>> {
    let count = ((symbols.len() + 2 * HALF) as f64 * period) as usize;
    let sample = |n: usize| {
        // The pulse of symbol k begins at k.
        let t = n as f64 / period;
        let last = (t.floor() as usize).min(symbols.len() - 1);
        let first = (t.ceil() as usize).saturating_sub(2 * HALF);
        let sum: Complex<f64> = (first..=last)
            .map(|k| {
                let place = (t - k as f64) * STEPS as f64;
                let (whole, part) = (place.floor() as usize, place.fract());
                let (a, b) =
                    (pulse.get(whole).copied().unwrap_or(0.0), pulse.get(whole + 1).copied().unwrap_or(0.0));
                symbols[k] * (a + (b - a) * part)
            })
            .sum();
        sum * Complex::from_polar(1.0, 0.7 + TAU * turns * n as f64)
    };
    (0..count).map(sample).collect()
}

/// Adds white noise. `bit_energy` is in samples.
fn noisy(signal: &[Complex<f64>], bit_energy: f64, ratio_db: f64, dice: &mut Dice) -> Vec<Complex<f32>> {
    let density = bit_energy / 10f64.powf(ratio_db / 10.0);
    let size = (density / 2.0).sqrt();
    signal
        .iter()
        .map(|x| {
            Complex::new(x.re as f32, x.im as f32) + Complex::new(normal(dice), normal(dice)) * size as f32
        })
        .collect()
}

/// The smallest share of wrong bits, over the delays, and over all ways in which `readings` can read them.
fn errors(sent: &[bool], soft: &[f32], step: usize, skip: usize, readings: &[Reading]) -> f64 {
    let got: Vec<bool> = soft.iter().map(|x| *x > 0.0).collect();
    let mut best = 1.0f64;
    for reading in readings {
        for delay in (0..60).step_by(step) {
            let pairs = got[delay..].chunks_exact(step).zip(sent.chunks_exact(step));
            let (mut wrong, mut all) = (0, 0);
            for (got, sent) in pairs.skip(skip / step) {
                let read = reading(got[0], got[step - 1]);
                let read = [read.0, read.1];
                wrong += got.iter().enumerate().filter(|(at, _)| read[*at] != sent[*at]).count();
                all += step;
            }
            best = best.min(wrong as f64 / all.max(1) as f64);
        }
    }
    best
}

/// Q(x), the tail of the normal distribution (Abramowitz and Stegun 26.2.17).
fn tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let sum = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    sum * (-x * x / 2.0).exp() / TAU.sqrt()
}

fn ratio(db: f64) -> f64 {
    10f64.powf(db / 10.0)
}

/// What two bits are read as.
type Reading = fn(bool, bool) -> (bool, bool);

const PLAIN: &[Reading] = &[|a, b| (a, b)];
/// The four turns of QPSK; for BPSK, both.
const TURNED: &[Reading] = &[|a, b| (a, b), |a, b| (!a, !b), |a, b| (!b, a), |a, b| (b, !a)];

/// Symbols of bits, as the page of `psk.demod` has them.
fn psk(bits: &[bool], order: usize, is_differential: bool) -> Vec<Complex<f64>> {
    let mut angle = 0.0;
    let quarter = PI / 4.0;
    bits.chunks_exact(order / 2)
        .map(|bits| {
            let first = match (order, bits) {
                (2, [bit]) => {
                    if *bit {
                        0.0
                    } else {
                        PI
                    }
                }
                (_, [true, true]) => quarter,
                (_, [false, true]) => 3.0 * quarter,
                (_, [false, false]) => 5.0 * quarter,
                _ => 7.0 * quarter,
            };
            if is_differential {
                angle += if order == 4 { first - quarter } else { first };
                let turned = if order == 4 { quarter } else { 0.0 };
                return Complex::from_polar(1.0, angle + turned);
            }
            Complex::from_polar(1.0, first)
        })
        .collect()
}

const RATE_HZ: f64 = 48_000.0;

fn demodulate(kind: &str, text: &str, signal: &[Complex<f32>]) -> Vec<f32> {
    let trial = Trial::kind(&registry(), kind, text);
    trial.feed("in", Feed::samples(signal.iter().copied()).rate(RATE_HZ)).run().samples("out")
}

#[test]
fn psk_has_the_errors_of_the_theory() {
    let period = 8.37;
    for (order, is_differential, roll_off) in [
        (2, false, 0.35),
        (2, false, 0.0),
        (2, true, 0.35),
        (4, false, 0.25),
        (4, true, 0.35),
        (4, false, 0.0),
    ] {
        let mut dice = Dice::new(order as u64);
        let bits: Vec<bool> = (0..40_000).map(|_| dice.bits() & 1 == 1).collect();
        let pulse = pulse(roll_off);
        let signal = shaped(&psk(&bits, order, is_differential), &pulse, period, 0.01 / period);
        let text = format!(
            "symbol_rate = {}\norder = {order}\nroll_off = {roll_off}\ndifferential = {is_differential}",
            RATE_HZ / period
        );
        let bit_energy = period / (order / 2) as f64;
        let least_db = if order == 4 && !is_differential { 6.0 } else { 4.0 };
        for db in [least_db, 7.0, 100.0] {
            let soft = demodulate("psk.demod", &text, &noisy(&signal, bit_energy, db, &mut dice));
            let readings = if is_differential {
                PLAIN
            } else if order == 2 {
                &TURNED[..2]
            } else {
                TURNED
            };
            let measured = errors(&bits, &soft, order / 2, 1500, readings);
            let r = ratio(db - 0.8);
            // DQPSK: 2.3 dB worse than QPSK, and a little more, as each symbol is used twice.
            let theory = match (order, is_differential) {
                (2, true) => 0.5 * (-r).exp(),
                (4, true) => tail((2.0 * ratio(db - 0.8 - 2.3)).sqrt()) * 1.1,
                _ => tail((2.0 * r).sqrt()),
            };
            assert!(
                measured <= theory,
                "{order} {is_differential} {roll_off}, {db} dB: {measured}, not {theory}"
            );
        }
    }
}

/// A signal whose frequency is that of its symbols.
fn keyed(frequencies: &[f64], period: f64, offset: f64) -> Vec<Complex<f64>> {
    let mut phase = 0.3;
    (0..(frequencies.len() as f64 * period) as usize)
        .map(|n| {
            let at = ((n as f64 / period) as usize).min(frequencies.len() - 1);
            phase += TAU * (frequencies[at] + offset);
            Complex::from_polar(1.0, phase)
        })
        .collect()
}

#[test]
fn fsk_is_near_the_theory() {
    for (period, index, levels, less_db) in
        [(10.4, 1.0, 2, 0.5), (8.0, 0.5, 2, 0.5), (20.0, 2.0, 2, 2.5), (10.0, 0.81, 4, 1.5)]
    {
        let mut dice = Dice::new(levels as u64);
        let bits: Vec<bool> = (0..40_000).map(|_| dice.bits() & 1 == 1).collect();
        // The index is the distance of neighbouring frequencies over the symbol rate.
        let deviation = if levels == 2 { index / 2.0 } else { 1.5 * index } / period;
        let level = |bits: &[bool]| match bits {
            [true] | [false, true] => 1.0,
            [false, false] => 1.0 / 3.0,
            [true, false] => -1.0 / 3.0,
            _ => -1.0,
        };
        let frequencies: Vec<f64> =
            bits.chunks_exact(levels / 2).map(|bits| level(bits) * deviation).collect();
        let signal = keyed(&frequencies, period, 0.2 * deviation);
        let text = format!(
            "symbol_rate = {}\ndeviation = {}\nlevels = {levels}",
            RATE_HZ / period,
            deviation * RATE_HZ
        );
        // At an index of 2, the clock slips below 10 dB.
        let least_db = if index > 1.5 { 10.0 } else { 8.0 };
        for db in [least_db, 11.0, 12.0, 100.0] {
            let noisy = noisy(&signal, period / (levels / 2) as f64, db, &mut dice);
            let soft = demodulate("fsk.demod", &text, &noisy);
            let measured = errors(&bits, &soft, levels / 2, 400, PLAIN);
            // Incoherent reception of two orthogonal tones.
            let theory = 0.5 * (-ratio(db - less_db) / 2.0).exp();
            assert!(
                measured <= theory,
                "{levels} frequencies, index {index}, {db} dB: {measured}, not {theory}"
            );
        }
    }
}

#[test]
fn bits_do_not_depend_on_cuts() {
    let mut dice = Dice::new(9);
    let bits: Vec<bool> = (0..400).map(|_| dice.bits() & 1 == 1).collect();
    let signal = shaped(&psk(&bits, 4, false), &pulse(0.35), 6.1, 0.001);
    let signal = noisy(&signal, 3.0, 15.0, &mut dice);
    for (kind, text) in [
        ("psk.demod", "symbol_rate = 7869\norder = 4"),
        ("fsk.demod", "symbol_rate = 7869\ndeviation = 4000"),
    ] {
        let seen = cuts(|| {
            let trial = Trial::kind(&registry(), kind, text);
            trial.feed("in", Feed::samples(signal.iter().copied()).rate(RATE_HZ))
        });
        assert!(
            seen.samples::<f32>("out").len() > if kind == "psk.demod" { 380 } else { 200 },
            "{kind} {}",
            seen.samples::<f32>("out").len()
        );
    }
}

#[test]
fn wrong_rates_are_refused() {
    for (kind, text, said) in [
        ("psk.demod", "symbol_rate = 20000", "it must be at most 16000, a third of the sample rate"),
        (
            "fsk.demod",
            "symbol_rate = 10\ndeviation = 5",
            "it must be at least 24, a 2000th of the sample rate",
        ),
        ("fsk.demod", "symbol_rate = 9600\ndeviation = 20000", "it must be at least 55111."),
    ] {
        let trial = Trial::kind(&registry(), kind, text);
        let failure = trial.feed("in", Feed::samples([Complex::new(1.0f32, 0.0)]).rate(RATE_HZ)).failure();
        assert!(failure.contains(said), "{failure}");
    }
    for (kind, text, said) in [
        ("psk.demod", "symbol_rate = 1200\norder = 8", "`order` is 8: it must be 2 or 4"),
        ("fsk.demod", "symbol_rate = 1200\ndeviation = 600\nlevels = 3", "`levels` is 3: it must be 2 or 4"),
    ] {
        let error = registry().operator(kind, text).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(said));
    }
}
