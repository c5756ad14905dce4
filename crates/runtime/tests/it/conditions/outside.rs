//! Gates, events and files: what happens outside of the graph.

use super::{Seen, Taker, keep, numbers, ways};
use crate::splitmix::Random;
use crate::watchdog::watched;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_runtime::{
    Condition, Context, Error, Event, Gate, Graph, Input, Operator, Options, Output, Ports, Readiness, Step,
    View, Waker, When,
};
use onbeat_trace::Record;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_gate_opens_and_closes() {
    watched(60, || {
        for options in ways() {
            let gate = Gate::new(false);
            let mut graph = Graph::new("gate");
            numbers(&mut graph, 3000);
            let pass = graph.map("pass", |x: u64| x);
            let kept = keep(&mut graph, "end");
            graph.connect_names("numbers", "pass");
            graph.connect_names("pass", "end");
            graph.when(pass, When::gate(&gate));
            let run = graph.start(&options).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(*kept.lock().unwrap(), [0u64; 0], "a closed event is not a deadlock");
            for round in 0..200 {
                if round % 2 == 0 {
                    gate.open();
                } else {
                    gate.close();
                }
                std::thread::yield_now();
            }
            gate.open();
            let record = run.wait().unwrap();
            assert_eq!(kept.lock().unwrap().len(), 3000);
            assert_eq!(record.result.lost, 0);
        }
    });
}

#[test]
fn a_stop_opens_all_gates() {
    watched(60, || {
        for options in ways() {
            let gate = Gate::new(false);
            let mut graph = Graph::new("gate");
            numbers(&mut graph, u64::MAX);
            let pass = graph.map("pass", |x: u64| x);
            graph.connect_names("numbers", "pass");
            let kept = keep(&mut graph, "end");
            graph.connect_names("pass", "end");
            graph.when(pass, When::gate(&gate));
            let run = graph.start(&options).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            run.stop();
            let record = run.wait().unwrap();
            assert_eq!(record.result.lost, 0);
            assert_eq!(kept.lock().unwrap().len(), record.edges[0].sent as usize);
        }
    });
}

#[test]
fn an_event_lets_one_step_pass() {
    watched(60, || {
        for options in ways() {
            let event = Event::new();
            let mut graph = Graph::new("event");
            let source = numbers(&mut graph, u64::MAX);
            let kept = keep(&mut graph, "end");
            graph.connect_names("numbers", "end");
            graph.when(source, When::event(&event));
            let run = graph.start(&options).unwrap();
            for round in 1..=20 {
                event.ring();
                while kept.lock().unwrap().len() < round {
                    std::thread::yield_now();
                }
            }
            std::thread::sleep(Duration::from_millis(2));
            assert_eq!(kept.lock().unwrap().len(), 20, "no ring, no step");
            event.ring();
            drop(event);
            // Nobody can ring it any more: the source is done.
            let record = run.wait().unwrap();
            assert_eq!((record.edges[0].received, record.result.exit_status), (21, 0));
        }
    });
}

/// Reads bytes from a pipe, as many as are there.
struct Pipe {
    reader: std::io::PipeReader,
    out: Output<u64>,
}

impl Operator for Pipe {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let mut bytes = [0; 16];
        // It would wait here for ever, were the condition wrong.
        let count = std::io::Read::read(&mut self.reader, &mut bytes)
            .map_err(|error| Error::new(error.to_string()))?;
        if count == 0 {
            return Ok(Step::Done);
        }
        self.out.push(cx, count as u64)?;
        Ok(Step::Again)
    }
}

#[test]
fn a_file_lets_its_reader_step() {
    watched(60, || {
        for options in ways() {
            let (reader, mut writer) = std::io::pipe().unwrap();
            let mut graph = Graph::new("pipe");
            let when = When::readable(reader.try_clone().unwrap());
            let pipe = graph.add("pipe", Pipe { reader, out: Output::default() });
            let kept = keep(&mut graph, "end");
            graph.connect_names("pipe", "end");
            graph.when(pipe, when);
            let run = graph.start(&options).unwrap();
            let mut sent = 0;
            for bytes in [1, 5, 16, 3] {
                std::io::Write::write_all(&mut writer, &vec![0; bytes]).unwrap();
                sent += bytes as u64;
                while kept.lock().unwrap().iter().sum::<u64>() < sent {
                    std::thread::yield_now();
                }
            }
            drop(writer);
            let record = run.wait().unwrap();
            assert_eq!(record.result.exit_status, 0);
        }
    });
}

/// A socket is a file as well.
#[test]
fn a_socket_lets_its_reader_step() {
    watched(60, || {
        for options in ways() {
            let (reader, mut writer) = UnixStream::pair().unwrap();
            let mut graph = Graph::new("socket");
            let listens = When::readable(reader.try_clone().unwrap());
            let mut reader = reader;
            let source = graph.source("socket", move || {
                let mut byte = [0];
                // It would wait here for ever, were the condition wrong.
                (std::io::Read::read(&mut reader, &mut byte).unwrap() == 1).then_some(u64::from(byte[0]))
            });
            let kept = keep(&mut graph, "end");
            graph.connect_names("socket", "end");
            graph.when(source, listens);
            let run = graph.start(&options).unwrap();
            for byte in 0..20u8 {
                std::io::Write::write_all(&mut writer, &[byte]).unwrap();
                while kept.lock().unwrap().len() <= usize::from(byte) {
                    std::thread::yield_now();
                }
            }
            drop(writer);
            assert_eq!(run.wait().unwrap().edges[0].received, 20);
        }
    });
}

/// Holds once for each step that somebody has allowed.
struct Allowed {
    steps: Arc<AtomicU64>,
    used: u64,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Condition for Allowed {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        let may = self.used < self.steps.load(Ordering::Acquire) || view.is_stopping();
        Ok(if may { Readiness::Holds } else { Readiness::Waits })
    }
    fn stepped(&mut self, _: &View<'_>) {
        self.used += 1;
    }
    fn describe(&self) -> String {
        "somebody to allow it".to_string()
    }
    fn attach(&mut self, waker: &Waker) {
        *self.waker.lock().unwrap() = Some(waker.clone());
    }
    fn is_outside(&self) -> bool {
        true
    }
}

#[test]
fn a_condition_of_ones_own_is_woken() {
    watched(60, || {
        for options in ways() {
            let (steps, waker) = (Arc::new(AtomicU64::new(0)), Arc::default());
            let allowed = Allowed { steps: Arc::clone(&steps), used: 0, waker: Arc::clone(&waker) };
            let mut graph = Graph::new("allowed");
            numbers(&mut graph, u64::MAX);
            let pass = graph.map("pass", |x: u64| x);
            let kept = keep(&mut graph, "end");
            graph.connect_names("numbers", "pass");
            graph.connect_names("pass", "end");
            graph.when(pass, When::own(allowed));
            let run = graph.start(&options).unwrap();
            for step in 1..=50 {
                steps.store(step, Ordering::Release);
                waker.lock().unwrap().as_ref().unwrap().wake();
                while (kept.lock().unwrap().len() as u64) < step {
                    std::thread::yield_now();
                }
            }
            loop {
                let status = run.status();
                let pass = status.operators.iter().find(|one| one.name == "pass").unwrap();
                if pass.waits_for.as_deref() == Some("somebody to allow it") {
                    break;
                }
            }
            assert_eq!(kept.lock().unwrap().len(), 50, "no step without leave");
            run.stop();
            assert_eq!(run.wait().unwrap().result.lost, 0);
        }
    });
}

/// Gates that open and close at random, and events, while everything runs: nothing is lost, and it ends.
#[test]
fn random_gates() {
    let seconds =
        std::env::var("ONBEAT_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let each = Duration::from_secs_f64(seconds / ways().len() as f64);
    watched(120 + seconds as u64, move || {
        for options in ways() {
            let record = gates_at_random(&options, each);
            for edge in &record.edges {
                assert_eq!(edge.sent, edge.received, "{edge:?}");
            }
            assert_eq!((record.result.lost, record.result.exit_status), (0, 0));
            assert!(record.edges[0].sent > 100);
        }
    });
}

fn gates_at_random(options: &Options, time: Duration) -> Record {
    let gates = [Gate::new(true), Gate::new(false)];
    let event = Event::new();
    let mut graph = Graph::new("gates");
    numbers(&mut graph, u64::MAX);
    let left = graph.map("left", |x: u64| x);
    let right = graph.map("right", |x: u64| x);
    let seen = Seen::default();
    let taker = Taker { a: Input::default(), b: Input::default(), seen: Arc::clone(&seen) };
    let taker = graph.add("taker", taker);
    let rung = graph.sink("rung", |_: u64| ());
    for (from, to) in [
        ("numbers", "left"),
        ("numbers", "right"),
        ("left", "taker.a"),
        ("right", "taker.b"),
        ("left", "rung"),
    ] {
        graph.connect_names(from, to);
    }
    graph.when(left, When::gate(&gates[0]));
    graph.when(right, When::gate(&gates[1]));
    graph.when(taker, When::any([]).least(2).timeout_ns(100_000));
    graph.when(rung, When::event(&event));
    let run = graph.start(options).unwrap();
    let end = std::time::Instant::now() + time;
    let mut random = Random(1);
    // A machine that has other things to do gets as long as it needs.
    while std::time::Instant::now() < end || seen.lock().unwrap().len() < 1000 {
        let gate = &gates[random.below(2) as usize];
        match random.below(5) {
            0 | 1 => gate.open(),
            2 => gate.close(),
            3 => event.ring(),
            _ => std::thread::yield_now(),
        }
    }
    run.stop();
    run.wait().unwrap()
}
