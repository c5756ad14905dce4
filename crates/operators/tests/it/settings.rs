//! Parameters that change during a run: exactly at their sample, with the same effect as in a file, or not at
//! all.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use num_complex::Complex;
use onbeat_operators::dsp::{Agc, QuadDemod, Saxpy, Shift};
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial, cuts};
use onbeat_runtime::{InPlace, Kernel, Map, Progress, Value};

const RATE_HZ: f64 = 48e3;
const COUNT: usize = 5000;

fn real() -> Vec<f32> {
    let mut dice = Dice::new(5);
    (0..COUNT).map(|_| dice.value()).collect()
}

fn complex() -> Vec<Complex<f32>> {
    let mut dice = Dice::new(6);
    (0..COUNT).map(|_| Complex::new(dice.value(), dice.value())).collect()
}

/// Output of a map that changes at these samples, with each part computed on its own slice.
fn pieces<F: Map>(
    mut map: F,
    mut samples: Vec<F::Sample>,
    settings: &[(&str, Value, u64)],
) -> Vec<F::Sample> {
    map.start(RATE_HZ).unwrap();
    let mut from = 0;
    for (name, value, sample) in settings {
        map.map(&mut samples[from..*sample as usize]);
        map.change(name, value).unwrap()(&mut map).unwrap();
        from = *sample as usize;
    }
    map.map(&mut samples[from..]);
    samples
}

/// At samples within chunks, at their borders, twice at one sample, at the first and the last.
#[test]
fn maps_change_at_just_their_sample() {
    fn check<F: Map + Clone>(map: &F, samples: &[F::Sample], settings: &[(&str, Value, u64)])
    where
        F::Sample: PartialEq + std::fmt::Debug,
    {
        let expected = pieces(map.clone(), samples.to_vec(), settings);
        let seen = cuts(|| {
            let trial = Trial::new(InPlace::new(map.clone()))
                .feed("in", Feed::samples(samples.to_vec()).rate(RATE_HZ));
            settings
                .iter()
                .fold(trial, |trial, (name, value, sample)| trial.set(name, value.clone(), Some(*sample)))
        });
        assert_eq!(seen.samples::<F::Sample>("out"), expected);
    }
    let saxpy = [
        ("a", 0.5.into(), 0),
        ("b", 1.into(), 1),
        ("a", 2.0.into(), 1024),
        ("b", 0.into(), 1024),
        ("a", 3.into(), 4999),
    ];
    check(&Saxpy::new(1.0, 0.0).unwrap(), &real(), &saxpy);
    let shift =
        [("shift", "-3 kHz".into(), 17), ("shift", 12_345.678.into(), 1000), ("shift", 0.into(), 1001)];
    check(&Shift::new(1e3).unwrap(), &complex(), &shift);
    let agc = [
        ("target", 0.25.into(), 100),
        ("decay", "1 ms".into(), 2000),
        ("most", "3 dB".into(), 3000),
        ("attack", "2ms".into(), 4000),
    ];
    check(&Agc::<f32>::new(0.01, 0.1, 1.0, 100.0).unwrap(), &real(), &agc);
}

#[test]
fn a_shift_that_changes_goes_on_at_its_angle() {
    let mut shift = Shift::new(1234.5).unwrap();
    shift.start(RATE_HZ).unwrap();
    let mut samples = vec![Complex::new(1.0f32, 0.0); 3000];
    shift.map(&mut samples[..1111]);
    shift.change("shift", &Value::from("-7 kHz")).unwrap()(&mut shift).unwrap();
    shift.map(&mut samples[1111..]);
    let mut turns = 0f64;
    for (n, sample) in samples.iter().enumerate() {
        let (sin, cos) = (std::f64::consts::TAU * turns).sin_cos();
        let error = (f64::from(sample.re) - cos).hypot(f64::from(sample.im) - sin);
        assert!(error < 1e-5, "{error} at {n}");
        turns += if n < 1111 { 1234.5 } else { -7e3 } / RATE_HZ;
    }
}

#[test]
fn a_kernel_changes_at_just_its_sample() {
    let samples = complex();
    let mut demod = QuadDemod::new(10e3).unwrap();
    demod.start(RATE_HZ).unwrap();
    let (mut expected, mut done) = (vec![0f32; COUNT], 0);
    let mut feed = |demod: &mut QuadDemod, from: usize, to: usize| {
        let Progress { consumed, produced } = demod.process(&samples[from..to], &mut expected[done..]);
        assert_eq!(consumed, to - from);
        done += produced;
    };
    feed(&mut demod, 0, 1234);
    demod.change("deviation", &Value::from("5 kHz")).unwrap()(&mut demod).unwrap();
    feed(&mut demod, 1234, COUNT);
    done += demod.finish(&mut expected[done..]);
    assert_eq!(done, COUNT);
    let seen = cuts(|| {
        Trial::kind(&registry(), "quad.demod", "deviation = 10000")
            .feed("in", Feed::samples(samples.clone()).rate(RATE_HZ))
            .set("deviation", 5000, Some(1234))
    });
    assert_eq!(seen.samples::<f32>("out"), expected);
}

/// A parameter set before the first sample has the same effect as in a file.
#[test]
fn what_is_set_is_as_what_is_written() {
    let table = [
        ("saxpy", "a = 1.0", "a", Value::from(0.25), "a = 0.25"),
        ("saxpy", "a = 1.0", "b", (-3).into(), "a = 1.0\nb = -3.0"),
        ("agc", "target = 0.25", "target", 2.0.into(), "target = 2.0"),
        ("agc", "", "attack", "3 ms".into(), "attack = '3 ms'"),
        ("agc", "", "decay", 0.02.into(), "decay = 0.02"),
        ("agc", "", "most", "20 dB".into(), "most = 20"),
        ("squelch", "open = -3", "open", "-1 dB".into(), "open = -1\nclose = -6"),
        ("squelch", "open = -3", "close", (-9).into(), "open = -3\nclose = -9"),
        ("squelch", "open = -3", "tau", "1 ms".into(), "open = -3\ntau = 0.001"),
        ("throttle", "rate = 1000", "rate", "1 MHz".into(), "rate = 1e6"),
        ("load", "count = 10", "count", 20.into(), "count = 20"),
        ("load", "count = 10", "busy", "1 us".into(), "busy = 1e-6"),
        ("load", "count = 10", "cpu", "1 us".into(), "cpu = 1e-6"),
    ];
    for (kind, base, name, value, other) in table {
        let trial = |parameters: &str| {
            Trial::kind(&registry(), kind, parameters).feed("in", Feed::samples(real()).rate(RATE_HZ))
        };
        let set = trial(base).set(name, value.clone(), None).run();
        let written = trial(other).run();
        assert_eq!(set.samples::<f32>("out"), written.samples::<f32>("out"), "{kind}: {name} = {value}");
        assert_eq!(set.lengths("out"), written.lengths("out"), "{kind}: {name} = {value}");
    }
    let values = [0.0, 1.0, 0.5, -2.0, 0.75];
    let table = [
        ("lag", "tau = 0.05", "gain", Value::from(4), "tau = 0.05\ngain = 4.0"),
        ("lag", "tau = 0.05", "tau", "1 ms".into(), "tau = 0.001"),
        ("route", "threshold = 0.5", "threshold", 0.8.into(), "threshold = 0.8"),
        ("pid", "setpoint = 1.0\nkp = 2.0", "setpoint", 3.into(), "setpoint = 3.0\nkp = 2.0"),
        ("pid", "setpoint = 1.0\nkp = 2.0", "kp", 0.5.into(), "setpoint = 1.0\nkp = 0.5"),
        ("pid", "setpoint = 1.0\nkp = 2.0", "ki", 7.into(), "setpoint = 1.0\nkp = 2.0\nki = 7.0"),
        ("pid", "setpoint = 1.0\nkp = 2.0", "kd", 7.into(), "setpoint = 1.0\nkp = 2.0\nkd = 7.0"),
        ("pid", "setpoint = 1.0\nkp = 2.0", "most", 1.into(), "setpoint = 1.0\nkp = 2.0\nmost = 1.0"),
        ("pid", "setpoint = 1.0\nkp = 2.0", "least", 1.into(), "setpoint = 1.0\nkp = 2.0\nleast = 1.0"),
    ];
    for (kind, base, name, value, other) in table {
        let trial = |parameters: &str| {
            let trial = Trial::kind(&registry(), kind, parameters);
            if kind != "pid" {
                return trial.feed("in", Feed::messages(values));
            }
            trial.feed("tick", Feed::messages([0u64, 1, 2, 3, 4])).feed("measured", Feed::messages(values))
        };
        let out = if kind == "route" {
            "high"
        } else if kind == "pid" {
            "command"
        } else {
            "out"
        };
        let set = trial(base).set(name, value.clone(), None).run();
        assert_eq!(
            set.messages::<f64>(out),
            trial(other).run().messages::<f64>(out),
            "{kind}: {name} = {value}"
        );
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let table = [
        ("saxpy", "a = 1.0", "a", Value::from("much"), None, "`a`: expected a number, found string \"much\""),
        ("saxpy", "a = 1.0", "b", f64::INFINITY.into(), None, "`b` is inf: it must be a finite number"),
        ("agc", "", "target", 0.into(), None, "`target` is 0: it must be a finite number above 0"),
        ("agc", "", "decay", "10 Hz".into(), None, "`Hz` in `10 Hz` is not a unit of time"),
        ("squelch", "open = -30", "close", 5.into(), None, "`close` is 5"),
        ("squelch", "open = -30", "open", true.into(), None, "expected level"),
        (
            "squelch",
            "open = -30",
            "open",
            (-3).into(),
            Some(7),
            "`open` changes between two steps, not at a sample (7)",
        ),
        ("throttle", "rate = 10", "rate", 0.into(), None, "`rate` is 0: it must be a finite number above 0"),
        ("load", "count = 10", "busy", (-1).into(), None, "`busy` is -1 s: it must be from 0 s"),
        ("load", "count = 10", "count", 0.5.into(), None, "expected a whole number that is not negative"),
    ];
    for (kind, base, name, value, sample, expected) in table {
        let trial = Trial::kind(&registry(), kind, base).feed("in", Feed::samples(real()).rate(RATE_HZ));
        let error = trial.set(name, value.clone(), sample).failure();
        assert!(error.contains(expected), "{kind}: {name} = {value}: {error}");
    }
    let shift = |value: f64| {
        Trial::kind(&registry(), "freq.shift", "shift = 0")
            .feed("in", Feed::samples(complex()).rate(RATE_HZ))
            .set("shift", value, Some(2000))
            .failure()
    };
    // The rate is not known at the time of the request, so the change fails at its sample.
    let error = shift(24e3);
    assert!(error.starts_with("a parameter cannot change at sample 2000: `shift` is 24000"), "{error}");
    assert!(shift(f64::NAN).contains("`shift`: NaN is not a frequency: it must be finite"));
}

/// A note reports a change for a sample that never arrives.
#[test]
fn what_comes_too_late_is_said() {
    let seen = Trial::kind(&registry(), "saxpy", "a = 1.0")
        .feed("in", Feed::samples(real()).rate(RATE_HZ))
        .set("a", 2.0, Some(COUNT as u64))
        .set("a", 3.0, Some(COUNT as u64 + 7))
        .run();
    assert_eq!(seen.samples::<f32>("out"), real());
    assert_eq!(
        seen.notes(),
        ["2 changes of parameters waited for samples that did not come: there were 5000"]
    );
}

/// The settable parameters of a kind match those that a file may set.
#[test]
fn what_can_be_set_is_a_parameter() {
    let registry = registry();
    let mut settable = 0;
    for kind in registry.kinds() {
        let schema = kind.schema();
        for name in kind.settable() {
            assert!(schema.pointer(&format!("/properties/{name}")).is_some(), "{} of {}", name, kind.name());
            settable += 1;
        }
    }
    assert!(settable > 20, "{settable}");
}
