//! The elements of a control loop, one by one.
#![forbid(unsafe_code)]

use onbeat_operators::{Gains, Lag, Pid, Route, ValueSink, registry};
use onbeat_runtime::testing::{Feed, Seen, Trial};
use std::fs;

const MS: u64 = 1_000_000;

/// Commands of a controller for these measured values, one per millisecond.
fn commands(gains: Gains, measured: &[f64]) -> Seen {
    let ticks = Feed::messages(0..measured.len() as u64).every(MS);
    let values = Feed::messages(measured.to_vec()).every(MS);
    Trial::new(Pid::new(gains).unwrap()).feed("tick", ticks).feed("measured", values).run()
}

const NONE: Gains =
    Gains { setpoint: 1.0, kp: 0.0, ki: 0.0, kd: 0.0, least: f64::NEG_INFINITY, most: f64::INFINITY };

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{found} and not {expected}");
    }
}

#[test]
fn a_controller_is_the_sum_of_its_parts() {
    let measured = [0.0, 0.5, 2.0, 1.0];
    // The error is 1, 0.5, -1, 0.
    for (gains, expected) in [
        (Gains { kp: 2.0, ..NONE }, [2.0, 1.0, -2.0, 0.0]),
        (Gains { ki: 1000.0, ..NONE }, [0.0, 0.5, -0.5, -0.5]),
        (Gains { kd: 0.001, ..NONE }, [0.0, -0.5, -1.5, 1.0]),
        (Gains { kp: 2.0, least: -1.0, most: 1.5, ..NONE }, [1.5, 1.0, -1.0, 0.0]),
    ] {
        assert_close(&commands(gains, &measured).messages("command"), &expected);
    }
}

#[test]
fn a_limit_holds_the_integral() {
    // Far from the setpoint for 100 ms, then 1 beyond it: an integral grown to 100 would keep the command at
    // its limit.
    let mut measured = vec![0.0; 100];
    measured.extend([2.0; 3]);
    let gains = Gains { ki: 1000.0, least: -3.0, most: 3.0, ..NONE };
    let commands: Vec<f64> = commands(gains, &measured).messages("command");
    assert_close(&commands[..5], &[0.0, 1.0, 2.0, 3.0, 3.0]);
    assert_close(&commands[99..], &[3.0, 2.0, 1.0, 0.0]);
}

#[test]
fn what_is_no_number_is_no_error() {
    let seen = commands(Gains { kp: 1.0, ..NONE }, &[0.0, f64::NAN, f64::INFINITY, 0.5]);
    assert_close(&seen.messages("command"), &[1.0, 0.0, 0.0, 0.5]);
    assert_eq!(
        seen.notes(),
        ["2 values were not finite: measured ones counted as zero error, setpoints were left out"]
    );
}

#[test]
fn setpoints_hold_from_their_time_on() {
    let trial = |setpoints: Feed| {
        let (ticks, values) = (Feed::messages(0..6u64).every(MS), Feed::messages(vec![0.0; 6]).every(MS));
        let pid = Pid::new(Gains { kp: 2.0, ..NONE }).unwrap();
        Trial::new(pid).feed("setpoint", setpoints).feed("tick", ticks).feed("measured", values).run()
    };
    let seen = trial(Feed::messages([5.0, f64::NAN, 7.0]).every(2 * MS));
    assert_close(&seen.messages("command"), &[10.0, 10.0, 10.0, 10.0, 14.0, 14.0]);
    assert_eq!(seen.notes().len(), 1);
}

#[test]
fn a_lag_comes_closer_by_its_time_constant() {
    let steps = 50u64;
    let feed = Feed::messages(vec![1.0; steps as usize]).every(MS);
    let seen = Trial::new(Lag::new(3.0, 0.01).unwrap()).feed("in", feed).run();
    let expected: Vec<f64> = (0..steps).map(|n| 3.0 * (1.0 - (-(n as f64) / 10.0).exp())).collect();
    assert_close(&seen.messages("out"), &expected);
}

#[test]
fn values_go_one_way_or_the_other() {
    let values = [0.5, 0.4, f64::NAN, f64::INFINITY, 0.6, -1.0];
    let seen = Trial::new(Route::new(0.5).unwrap()).feed("in", Feed::messages(values)).run();
    assert_eq!(seen.messages::<f64>("high"), [0.5, f64::INFINITY, 0.6]);
    let low = seen.messages::<f64>("low");
    assert!(low.len() == 3 && low[0] == 0.4 && low[1].is_nan() && low[2] == -1.0, "{low:?}");
}

#[test]
fn values_are_written_and_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.csv");
    let feed = || Feed::messages([1.0, 2.5, -3.0, f64::NAN, 0.25]).every(MS);
    let seen = Trial::new(ValueSink::new(Some(path.clone()), 2).unwrap()).feed("in", feed()).run();
    assert_eq!(
        seen.notes(),
        ["5 values from -3.000000 to 2.500000, the last 0.250000", "1 values were not finite"]
    );
    let expected = "time_s,value\n0.000000000,1\n0.002000000,-3\n0.004000000,0.25\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    let sink = ValueSink::new(Some(path.clone()), 1).unwrap();
    let text = Trial::new(sink).feed("in", feed().then_fail("on purpose")).failure();
    assert!(text.contains("on purpose"), "{text}");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected, "what was there stays");
}

#[test]
fn what_cannot_be_is_refused() {
    for (kind, parameters, expected) in [
        ("pid", "setpoint = nan\nkp = 1", "`setpoint` is NaN"),
        ("pid", "setpoint = 0\nkp = inf", "`kp` is inf"),
        ("pid", "setpoint = 0\nkp = 1\nleast = 2\nmost = 2", "`least` is 2 and `most` is 2"),
        ("lag", "tau = 0", "`tau` is 0"),
        ("route", "threshold = nan", "`threshold` is NaN"),
        ("value.sink", "every = 0", "`every` is 0"),
    ] {
        let text = registry().operator(kind, parameters).err().unwrap().to_string();
        assert!(text.contains(expected), "{kind}: {text}");
    }
}
