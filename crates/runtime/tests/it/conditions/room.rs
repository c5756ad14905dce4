//! Room at outputs and free chunks.

use super::{keep, numbers, ways};
use crate::watchdog::watched;
use onbeat_runtime::{Chunk, Context, Error, Graph, Input, Operator, Output, Ports, Step, When};
use std::sync::{Arc, Mutex};

/// Sends as many as there is room for, which must be as many as it waits for.
struct Burst {
    input: Input<u64>,
    out: Output<u64>,
    bursts: Arc<Mutex<Vec<usize>>>,
}

impl Operator for Burst {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(x) = self.input.pop(cx) else { return Ok(Step::Wait) };
        self.bursts.lock().unwrap().push(self.out.room(cx));
        for _ in 0..3 {
            self.out.push(cx, x)?;
        }
        Ok(Step::Wait)
    }
}

#[test]
fn room_for_more_than_one() {
    watched(60, || {
        for options in ways() {
            let bursts = Arc::new(Mutex::new(Vec::new()));
            let mut graph = Graph::new("room");
            numbers(&mut graph, 500);
            let burst =
                Burst { input: Input::default(), out: Output::default(), bursts: Arc::clone(&bursts) };
            let burst = graph.add("burst", burst);
            let kept = keep(&mut graph, "end");
            graph.connect_names("numbers", "burst");
            graph.connect_names("burst", "end").capacity(4);
            graph.when(burst, When::room("out", 3));
            graph.run(&options).unwrap();
            assert!(bursts.lock().unwrap().iter().all(|&room| room >= 3));
            let expected: Vec<u64> = (1..=500).flat_map(|n| [n; 3]).collect();
            assert_eq!(*kept.lock().unwrap(), expected);
        }
    });
}

/// Fills three chunks per step.
struct Three {
    outs: [Output<Chunk<f32>>; 3],
    steps: u64,
    short: Arc<Mutex<u64>>,
}

impl Operator for Three {
    fn ports(&mut self, p: &mut Ports) {
        for (out, name) in self.outs.iter_mut().zip(["a", "b", "c"]) {
            p.output(name, out);
        }
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        for out in &mut self.outs {
            match out.chunk(cx) {
                Some(chunk) => out.push(cx, chunk)?,
                None => *self.short.lock().unwrap() += 1,
            }
        }
        self.steps += 1;
        Ok(if self.steps < 1000 { Step::Again } else { Step::Done })
    }
}

/// Keeps more chunks than it says, and gives them back by and by.
struct Miser {
    input: Input<Chunk<f32>>,
    kept: std::collections::VecDeque<Chunk<f32>>,
    most: usize,
    chunks: Arc<Mutex<u64>>,
}

impl Operator for Miser {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            *self.chunks.lock().unwrap() += 1;
            if *self.chunks.lock().unwrap() < 30 {
                // Long enough for the source to park while the store is empty.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            self.kept.push_back(chunk);
        }
        // Without this the store would run dry, and nobody could go on.
        if self.kept.len() > self.most {
            self.kept.pop_front();
        }
        Ok(Step::Wait)
    }
}

#[test]
fn chunk_room_waits_for_free_chunks() {
    watched(60, || {
        for options in ways() {
            let (short, chunks) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
            let mut graph = Graph::new("chunks");
            let three = Three { outs: Default::default(), steps: 0, short: Arc::clone(&short) };
            let three = graph.add("three", three);
            graph.when(three, When::chunk_room(3));
            for port in ["a", "b", "c"] {
                let (kept, chunks) = (Default::default(), Arc::clone(&chunks));
                let name = format!("miser_{port}");
                graph.add(name.clone(), Miser { input: Input::default(), kept, most: 5, chunks });
                graph.connect_names(format!("three.{port}"), name).capacity(2).quantum(1024);
            }
            graph.run(&options).unwrap();
            assert_eq!(
                (*short.lock().unwrap(), *chunks.lock().unwrap()),
                (0, 3000),
                "{:?}",
                options.scheduler
            );
        }
    });
}
