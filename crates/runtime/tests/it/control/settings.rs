//! Parameters that change during a run.

use super::{until, ways};
use crate::ones::Ones;
use crate::watchdog::watched;
use onbeat_runtime::testing::{Feed, Trial, cuts};
use onbeat_runtime::{
    Change, Chunk, Context, Error, Graph, InPlace, Input, Kernel, Map, Operator, Options, Output, Ports,
    Progress, Ratio, Step, Stream, Value, tried,
};
use onbeat_trace::record::ChangeKind;
use serde_json::json;
use std::sync::{Arc, Mutex};

#[derive(Clone)]
struct Gain(f32);

impl Map for Gain {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x *= self.0);
    }
    fn settable(&self) -> &'static [&'static str] {
        &["gain", "fails", "panics"]
    }
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let gain: f32 = value.read(name)?;
        assert_ne!(name, "panics", "as it was meant to");
        if name == "fails" {
            return Ok(Box::new(|_| Err(Error::new("not now"))));
        }
        tried(self, move |it| {
            it.0 = gain;
            Ok(())
        })
    }
}

type Came = Arc<Mutex<Vec<f32>>>;

fn graph() -> (Graph, Came) {
    let came = Came::default();
    let list = Arc::clone(&came);
    let mut graph = Graph::new("gain");
    let ones = graph.add("ones", Ones::new(100));
    let gain = graph.add("gain", InPlace::new(Gain(1.0)));
    let end = graph.sink("end", move |chunk: Chunk<f32>| list.lock().unwrap().extend_from_slice(&chunk));
    graph.connect(ones, |s| &s.out, gain, |g| &g.input);
    graph.connect(gain, |g| &g.out, end, |e| &e.input);
    (graph, came)
}

#[test]
fn a_parameter_changes_at_just_its_sample() {
    watched(60, || {
        for (name, options) in ways() {
            let (graph, came) = graph();
            let run = graph.start(&options).unwrap();
            until(&run, |_| !came.lock().unwrap().is_empty());
            run.pause().unwrap();
            until(&run, |status| status.edges.iter().all(|edge| edge.depth == 0));
            let begin = came.lock().unwrap().len() as u64;
            run.set("gain", "gain", 5, Some(begin + 150)).unwrap();
            run.set("gain", "gain", "3", None).unwrap_err();
            run.set("gain", "gain", 3.0, None).unwrap();
            run.set("gain", "gain", 7.0, Some(begin + 200)).unwrap();
            run.resume().unwrap();
            until(&run, |_| came.lock().unwrap().len() as u64 > begin + 300);
            let late = run.set("gain", "gain", 1, Some(begin)).unwrap_err().to_string();
            assert!(
                late.starts_with(&format!("operator `gain`: sample {begin} has gone by: sample ")),
                "{name}: {late}"
            );
            run.stop();
            let record = run.wait().unwrap();
            let begin = begin as usize;
            let came = came.lock().unwrap();
            let parts = [
                &came[..begin],
                &came[begin..begin + 150],
                &came[begin + 150..begin + 200],
                &came[begin + 200..],
            ];
            for (part, value) in parts.into_iter().zip([1.0, 3.0, 5.0, 7.0]) {
                assert!(part.iter().all(|&x| x == value), "{name}: {value}");
            }
            let changes: Vec<_> = record.changes.iter().filter(|change| change.operator == "gain").collect();
            assert_eq!(record.changes_total, record.changes.len() as u64, "{name}");
            let expected = [
                (json!(5), Some(begin as u64 + 150)),
                (json!(3.0), None),
                (json!(7.0), Some(begin as u64 + 200)),
            ];
            assert_eq!(changes.len(), expected.len(), "{name}: {changes:?}");
            for (change, (value, sample)) in changes.iter().zip(expected) {
                assert_eq!(
                    (change.what, change.parameter.as_deref()),
                    (ChangeKind::Set, Some("gain")),
                    "{name}"
                );
                assert_eq!((&change.value, change.sample), (&Some(value), sample), "{name}");
            }
            let ones: Vec<ChangeKind> = record
                .changes
                .iter()
                .filter(|change| change.operator == "ones")
                .map(|change| change.what)
                .collect();
            assert_eq!(ones, [ChangeKind::Paused, ChangeKind::Resumed], "{name}");
        }
    });
}

#[test]
fn what_cannot_be_set_is_told_to_who_asked() {
    watched(60, || {
        for (name, options) in ways() {
            let (graph, _) = graph();
            let run = graph.start(&options).unwrap();
            let cases = [
                ("gian", "gain", "there is no operator `gian`: did you mean `gain`?"),
                (
                    "gain",
                    "gian",
                    "operator `gain` has no parameter `gian` that can be changed while it runs: did you mean `gain`?",
                ),
                ("gain", "", "that can be changed while it runs (it has `gain`, `fails`, `panics`)"),
                (
                    "end",
                    "gain",
                    "operator `end` has no parameter `gain` that can be changed while it runs (it has none)",
                ),
                ("gain", "fails", "operator `gain`: not now"),
                ("gain", "panics", "operator `gain`: panicked: assertion"),
            ];
            for (operator, parameter, expected) in cases {
                let error = run.set(operator, parameter, 1, None).unwrap_err().to_string();
                assert!(error.contains(expected), "{name}: {error}");
            }
            run.stop();
            assert_eq!(run.wait().unwrap().changes_total, 0, "{name}");
        }
    });
}

/// One that fails at its sample fails as a step does.
#[test]
fn a_change_that_fails_at_its_sample_is_an_error_of_the_step() {
    watched(60, || {
        let (graph, _) = graph();
        let run = graph.start(&Options::default()).unwrap();
        run.pause().unwrap();
        run.set("gain", "fails", 1, Some(1_000_000_000)).unwrap();
        let (graph, _) = self::graph();
        let other = graph.start(&Options::default()).unwrap();
        other.pause().unwrap();
        // In the future, however far it is, because it is paused.
        let sent = until(&other, |status| status.edges.iter().all(|edge| edge.depth == 0)).edges[0].sent;
        other.set("gain", "fails", 1, Some(100 * sent + 50)).unwrap();
        other.resume().unwrap();
        let error = other.wait().unwrap_err().to_string();
        let expected =
            format!("operator `gain`: a parameter cannot change at sample {}: not now", 100 * sent + 50);
        assert_eq!(error, expected);
        run.stop();
        run.wait().unwrap();
    });
}

/// Each sample three times, by a gain; it can give as little as one sample at a time.
#[derive(Clone)]
struct Thrice {
    gain: f32,
    last: f32,
    owed: u8,
}

impl Kernel for Thrice {
    type In = f32;
    type Out = f32;
    fn ratio(&self) -> Ratio {
        Ratio { up: 3, down: 1 }
    }
    fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
        let (mut consumed, mut produced) = (0, 0);
        while produced < output.len() {
            if self.owed == 0 {
                let Some(&sample) = input.get(consumed) else { break };
                (self.last, self.owed) = (sample, 3);
                consumed += 1;
            }
            // Only when it is given: what is owed must come before a change.
            output[produced] = self.last * self.gain;
            produced += 1;
            self.owed -= 1;
        }
        Progress { consumed, produced }
    }
    fn settable(&self) -> &'static [&'static str] {
        &["gain"]
    }
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let gain = value.read(name)?;
        tried(self, move |it| {
            it.gain = gain;
            Ok(())
        })
    }
}

#[test]
fn what_is_owed_of_earlier_samples_comes_before_a_change() {
    let samples: Vec<f32> = (0..3000).map(|n| n as f32).collect();
    let seen = cuts(|| {
        Trial::new(Stream::new(Thrice { gain: 1.0, last: 0.0, owed: 0 }))
            .feed("in", Feed::samples(samples.clone()))
            .set("gain", 2, Some(1))
            .set("gain", -1, Some(1365))
            .set("gain", 0.5, Some(2999))
    });
    let gain = |n: usize| match n {
        0 => 1.0,
        1..1365 => 2.0,
        1365..2999 => -1.0,
        _ => 0.5,
    };
    let expected: Vec<f32> = (0..9000).map(|n| (n / 3) as f32 * gain(n / 3)).collect();
    assert_eq!(seen.samples::<f32>("out"), expected);
}

/// An operator without adapters.
#[derive(Default)]
struct Own {
    input: Input<u64>,
    out: Output<u64>,
    add: u64,
}

impl Operator for Own {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(x) = self.input.pop(cx) {
            self.out.push(cx, x + self.add)?;
        }
        Ok(Step::Wait)
    }
    fn settable(&self) -> &'static [&'static str] {
        &["add"]
    }
    fn set(&mut self, cx: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        self.add = value.read(name)?;
        // What a step may do, it may do as well.
        self.out.push(cx, 1_000_000)
    }
}

#[test]
fn an_operator_of_ones_own_may_send_when_it_is_set() {
    watched(60, || {
        for (name, options) in ways() {
            let mut graph = Graph::new("own");
            let numbers = graph.source("numbers", || Some(0u64));
            let own = graph.add("own", Own::default());
            let came = Arc::new(Mutex::new(Vec::new()));
            let list = Arc::clone(&came);
            let end = graph.sink("end", move |n: u64| list.lock().unwrap().push(n));
            graph.connect(numbers, |s| &s.out, own, |o| &o.input);
            graph.connect(own, |o| &o.out, end, |e| &e.input);
            let run = graph.start(&options).unwrap();
            run.pause_operator("own").unwrap();
            until(&run, |status| status.edges[1].depth == 0);
            let error = run.set("own", "add", 7, Some(3)).unwrap_err().to_string();
            assert_eq!(
                error,
                "operator `own`: `add` changes between two steps, not at a sample (3): leave out the sample"
            );
            run.set("own", "add", 7, None).unwrap();
            until(&run, |_| came.lock().unwrap().last() == Some(&1_000_000));
            run.resume().unwrap();
            until(&run, |_| came.lock().unwrap().last() == Some(&7));
            run.stop();
            run.wait().unwrap();
            let came = came.lock().unwrap();
            let at = came.iter().position(|&n| n == 1_000_000).unwrap();
            assert!(came[..at].iter().all(|&n| n == 0) && came[at + 1..].iter().all(|&n| n == 7), "{name}");
        }
    });
}
