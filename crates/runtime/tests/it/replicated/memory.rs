//! Operators that remember samples: each worker gets blocks with the samples before them. `conformance` tests
//! what comes out; this is about how.

use super::{replicated, watched};
use crate::control::until;
use crate::kernels::{Average, Saw, Symmetric};
use crate::ones::Ones;
use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use onbeat_runtime::{
    Change, Chunk, Error, FiniteMemory, Graph, InPlace, Map, Options, Scheduler, Stream, Value, tried,
};
use std::sync::{Arc, Mutex};

type Came = Arc<Mutex<Vec<f32>>>;

/// Ones, until they are told to end, through what `add` adds after the operator `ones`. `last` is its end.
fn graph(last: &str, add: impl FnOnce(&mut Graph)) -> (Graph, Came, Arc<AtomicBool>) {
    let came = Came::default();
    let list = Arc::clone(&came);
    let mut graph = Graph::new("memory");
    let source = Ones::new(512);
    let over = Arc::clone(&source.over);
    graph.add("ones", source);
    add(&mut graph);
    graph.sink("end", move |chunk: Chunk<f32>| list.lock().unwrap().extend_from_slice(&chunk));
    graph.connect_names(format!("{last}.out"), "end.in");
    (graph, came, over)
}

#[test]
fn every_worker_gets_blocks_and_the_plan_says_so() {
    watched(60, || {
        let (graph, came, over) = graph("mean", |graph| {
            graph.add("saw", InPlace::new(Saw::new(10)));
            graph.add("sum", Stream::new(Symmetric::new(9, 2)));
            graph.add("mean", Stream::new(Average::new(4)));
            graph.connect_names("ones.out", "saw.in");
            graph.connect_names("saw.out", "sum.in");
            graph.connect_names("sum.out", "mean.in");
        });
        let options = replicated(3);
        let plan = graph.plan(&options).unwrap();
        let has = |text: &str| plan.notes.iter().any(|note| note.contains(text));
        assert!(
            has("replicated on 3 workers: saw, sum; `saw.spread` and `saw.gather` keep the order, in blocks"),
            "{:?}",
            plan.notes
        );
        assert!(has("mean is not replicated: its state goes on"), "{:?}", plan.notes);
        let run = graph.start(&options).unwrap();
        until(&run, |_| came.lock().unwrap().len() > 200_000);
        over.store(true, Ordering::Relaxed);
        let record = run.wait().unwrap();
        for lane in 0..3 {
            let edge = record.edges.iter().find(|edge| edge.from == format!("saw.spread.{lane}")).unwrap();
            assert!(edge.sent > 20, "lane {lane}: {edge:?}");
        }
        let came = came.lock().unwrap();
        let settled = &came[10..came.len() - 10];
        // Sums of 19 samples of a saw from 1 to 10: two periods without one of its ten values.
        assert!(settled.iter().all(|mean| (100.0..=112.0).contains(mean)), "{:?}", &settled[..20]);
    });
}

/// A factor, and a jump by one at each change, so that the number of changes is seen.
#[derive(Clone)]
struct Gain(f32);

impl Map for Gain {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x *= self.0);
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
    fn settable(&self) -> &'static [&'static str] {
        &["gain"]
    }
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let gain: f32 = value.read(name)?;
        tried(self, move |it| {
            it.0 = gain;
            Ok(())
        })
    }
}

impl FiniteMemory for Gain {
    fn memory(&self) -> usize {
        3
    }
    fn resume(&mut self, _: u64) {}
}

#[test]
fn a_parameter_changes_at_its_sample_on_every_worker() {
    watched(60, || {
        let (graph, came, over) = graph("gain", |graph| {
            graph.add("gain", InPlace::new(Gain(1.0)));
            graph.connect_names("ones.out", "gain.in");
        });
        let run = graph.start(&replicated(2)).unwrap();
        until(&run, |_| came.lock().unwrap().len() > 100_000);
        run.pause().unwrap();
        until(&run, |status| status.edges.iter().all(|edge| edge.depth == 0));
        // What a lane holds in hand is not in a queue.
        let begin = came.lock().unwrap().len() as u64 + 10_000;
        let samples: Vec<u64> = (0..40).map(|change| begin + 1_237 * change).collect();
        for (change, &sample) in samples.iter().enumerate() {
            run.set("gain", "gain", change as f64 + 2.0, Some(sample)).unwrap();
        }
        let late = run.set("gain", "gain", 0.0, Some(1)).unwrap_err().to_string();
        assert!(late.contains("operator `gain`: sample 1 has gone by: sample "), "{late}");
        run.resume().unwrap();
        until(&run, |_| came.lock().unwrap().len() as u64 > samples[39] + 100_000);
        over.store(true, Ordering::Relaxed);
        let record = run.wait().unwrap();
        let came = came.lock().unwrap();
        let mut expected = 1.0;
        let mut changes = samples.iter().peekable();
        for (at, &x) in came.iter().enumerate() {
            if changes.next_if(|&&sample| sample == at as u64).is_some() {
                expected += 1.0;
            }
            assert!(x == expected, "sample {at}: {x} instead of {expected}");
        }
        let lanes = ["gain.spread.0", "gain.spread.1"];
        let sent = |from: &str| record.edges.iter().find(|edge| edge.from == from).map(|edge| edge.sent);
        assert!(lanes.iter().all(|lane| sent(lane) > Some(20)), "{:?}", record.edges);
    });
}

/// From one sample on, whichever worker has it.
#[test]
fn a_parameter_changes_once_on_all_workers() {
    watched(60, || {
        for scheduler in [Scheduler::Replicated, Scheduler::Event] {
            for is_plain in [false, true] {
                let (graph, came, over) = graph("double", |graph| {
                    match is_plain {
                        true => graph.add_boxed("gain", "plain", Box::new(InPlace::new(PlainGain(1.0)))),
                        false => graph.add_boxed("gain", "finite", Box::new(InPlace::new(Gain(1.0)))),
                    };
                    graph.add("double", Stream::new(Symmetric::new(0, 2)));
                    graph.connect_names("ones.out", "gain.in");
                    graph.connect_names("gain.out", "double.in");
                });
                let share = onbeat_runtime::Share::Always;
                let options = Options { scheduler, share, workers: Some(2), ..Options::default() };
                let run = graph.start(&options).unwrap();
                for gain in 2..30 {
                    // A value that is set before the last one has reached a sample takes its place.
                    until(&run, |_| {
                        came.lock().unwrap().last().map(|x| f64::from(*x)) == Some(f64::from(gain - 1))
                    });
                    run.set("gain", "gain", f64::from(gain), None).unwrap();
                }
                until(&run, |_| came.lock().unwrap().last() == Some(&29.0));
                over.store(true, Ordering::Relaxed);
                run.wait().unwrap();
                let came = came.lock().unwrap();
                assert!(came.is_sorted(), "{scheduler}, {is_plain}");
                assert_eq!(came.chunk_by(|x, y| x == y).count(), 29, "{scheduler}, {is_plain}");
            }
        }
    });
}

#[derive(Clone)]
struct PlainGain(f32);

impl Map for PlainGain {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x *= self.0);
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
    fn settable(&self) -> &'static [&'static str] {
        &["gain"]
    }
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let gain: f32 = value.read(name)?;
        tried(self, move |it| {
            it.0 = gain;
            Ok(())
        })
    }
}

/// A window longer than a block can be worth: one worker does it all.
#[test]
fn a_long_memory_stays_with_one_worker() {
    watched(60, || {
        let (mut graph, came, over) = graph("sum", |graph| {
            graph.add("sum", Stream::new(Symmetric::new(100_000, 1_000)));
        });
        let _ = graph.connect_names("ones.out", "sum.in").capacity(2);
        let options = Options { scheduler: Scheduler::Replicated, workers: Some(2), ..Options::default() };
        let run = graph.start(&options).unwrap();
        until(&run, |_| came.lock().unwrap().len() > 300);
        over.store(true, Ordering::Relaxed);
        let record = run.wait().unwrap();
        let came = came.lock().unwrap();
        assert_eq!((came[0], came[50], came[100]), (100_001.0, 150_001.0, 200_001.0));
        let other = record.edges.iter().find(|edge| edge.from == "sum.spread.1").unwrap();
        assert_eq!(other.sent, 0);
        let note = record.notes.iter().find(|note| note.contains("202000 samples again"));
        assert!(note.is_some(), "{:?}", record.notes);
    });
}
