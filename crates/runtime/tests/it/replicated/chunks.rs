//! Chunks through operators that are run as one step, between ends that have turns.

use super::{replicated, watched};
use crate::splitmix::Random;
use onbeat_runtime::{
    Chunk, Context, Error, Graph, Idle, InPlace, Input, Map, Operator, Options, Output, Ports, Step,
};
use std::sync::{Arc, Mutex};

const SAMPLES: usize = 16;

/// Numbers its chunks, in the first sample, and stops for breath after each of some bursts.
struct Numbered {
    out: Output<Chunk<f64>>,
    sent: u64,
    limit: u64,
    random: Random,
    burst: u64,
}

impl Operator for Numbered {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.sent == self.limit {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        chunk.edit_unique().expect("it is new")[0] = self.sent as f64;
        self.sent += 1;
        self.out.push(cx, chunk)?;
        let pauses = self.random.below(self.burst) == 0;
        Ok(if pauses { cx.until(cx.now_ns() + 20_000) } else { Step::Again })
    }
}

#[derive(Clone)]
struct Add(f64);

impl Map for Add {
    type Sample = f64;
    fn map(&mut self, samples: &mut [f64]) {
        samples[0] += self.0;
    }
    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}

struct Keep {
    input: Input<Chunk<f64>>,
    seen: Arc<Mutex<Vec<f64>>>,
}

impl Operator for Keep {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.seen.lock().unwrap().push(chunk[0]);
        }
        Ok(Step::Wait)
    }
}

#[test]
fn chunks_of_a_turn_come_out_in_order_and_all_are_counted() {
    watched(120, || {
        for (workers, capacity, burst, seed) in [
            (1, 4, 1_000, 1),
            (2, 4, 1_000, 2),
            (2, 1, 1_000, 3),
            (2, 16, 10, 4),
            (3, 8, 200, 5),
            (2, 8, 3, 6),
        ] {
            let what = format!("{workers} workers, room for {capacity}, bursts of {burst}");
            let chunks = 6_000;
            let seen = Arc::new(Mutex::new(Vec::new()));
            let mut graph = Graph::new("turns");
            let random = Random(seed);
            graph.add("source", Numbered { out: Output::default(), sent: 0, limit: chunks, random, burst });
            let mut last = "source".to_string();
            for at in 0..3 {
                let name = format!("add{at}");
                graph.add(&name, InPlace::new(Add(0.25)));
                graph.connect_names(&last, &name);
                last = name;
            }
            graph.add("sink", Keep { input: Input::default(), seen: Arc::clone(&seen) });
            graph.connect_names(&last, "sink");
            let quantum = SAMPLES * size_of::<f64>();
            let options = Options { quantum, capacity, idle: Idle::SpinFor(20_000), ..replicated(workers) };
            let record = graph.run(&options).unwrap_or_else(|error| panic!("{what}: {error}"));
            let expected: Vec<f64> = (0..chunks).map(|number| number as f64 + 0.75).collect();
            assert!(*seen.lock().unwrap() == expected, "{what}: not all, or not in order");
            for edge in &record.edges {
                assert_eq!((edge.sent, edge.received), (chunks, chunks), "{what}: {}", edge.from);
            }
            for operator in &record.operators {
                // An end may do several messages of a turn in one step.
                let (name, steps) = (&operator.name, operator.steps);
                let is_end = name == "source" || name == "sink";
                assert!(steps > 0 && (is_end || steps >= chunks), "{what}: {name} had {steps} steps");
                assert!(steps <= chunks + chunks / 2 || is_end, "{what}: {name} had {steps} steps");
            }
        }
    });
}
