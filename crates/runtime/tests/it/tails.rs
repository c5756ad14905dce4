//! What operators send after the end of their input has no due time: it answers no message.

use crate::watchdog::watched;
use crate::ways::ways;
use onbeat_runtime::{
    Chunk, ClockKind, Context, Error, Graph, Input, Kernel, Operator, Options, Output, Ports, Progress, Step,
    Stream,
};
use std::sync::{Arc, Mutex};

const MESSAGES: u64 = 10;
const PERIOD_NS: u64 = 1_000_000;
/// Time without messages, before the end of the stream.
const SILENCE_NS: u64 = 300_000_000;

/// Ten messages in time, then silence, then the end.
struct FallsSilent {
    out: Output<Chunk<f32>>,
    n: u64,
}

impl Operator for FallsSilent {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let is_over = self.n == MESSAGES;
        let due_ns = cx.start_ns() + self.n * PERIOD_NS + if is_over { SILENCE_NS } else { 0 };
        if cx.now_ns() < due_ns {
            return Ok(cx.until(due_ns));
        }
        if is_over {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        chunk.truncate(8);
        cx.set_time(self.n * PERIOD_NS, Some(due_ns));
        self.out.push(cx, chunk)?;
        self.n += 1;
        Ok(Step::Again)
    }
}

/// A filter: it gives what it takes, and three samples at the end.
struct Rings(usize);

impl Kernel for Rings {
    type In = f32;
    type Out = f32;
    fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
        let count = input.len().min(output.len());
        output[..count].copy_from_slice(&input[..count]);
        Progress { consumed: count, produced: count }
    }
    fn finish(&mut self, output: &mut [f32]) -> usize {
        let count = std::mem::take(&mut self.0).min(output.len());
        output[..count].fill(1.0);
        count
    }
}

/// Passes chunks on, and sends one more at the end, with the stamp that the engine gives it.
#[derive(Default)]
struct Sums {
    input: Input<Chunk<f32>>,
    out: Output<Chunk<f32>>,
    is_told: bool,
}

impl Operator for Sums {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.out.push(cx, chunk)?;
        } else if self.input.is_ended(cx) && !self.is_told {
            let Some(chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
            self.is_told = true;
            self.out.push(cx, chunk)?;
        }
        Ok(Step::Wait)
    }
}

#[derive(Default)]
struct Ends {
    input: Input<Chunk<f32>>,
}

impl Operator for Ends {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let _ = self.input.pop(cx);
        Ok(Step::Wait)
    }
}

/// Runs `source → name → end` in every way. The operator sends one message for each, and one at the end.
fn runs<O: Operator>(name: &str, operator: impl Fn() -> O) {
    for (way, options) in ways() {
        let mut graph = Graph::new("tails");
        graph.add("source", FallsSilent { out: Output::default(), n: 0 });
        graph.add(name, operator());
        graph.add("end", Ends::default());
        graph.connect_names("source", name);
        graph.connect_names(name, "end");
        graph.path("source", "end", Some(SILENCE_NS / 2));
        let record = graph.run(&options).unwrap();
        let path = &record.paths[0];
        assert_eq!(record.edges[1].received, MESSAGES + 1, "{name}, {way}");
        assert_eq!(path.latency.count, MESSAGES, "{name}, {way}: {path:?}");
        if options.clock == ClockKind::Manual {
            assert_eq!((path.misses, record.misses_total), (0, 0), "{name}, {way}: {:?}", record.misses);
        }
    }
}

#[test]
fn the_tail_of_a_filter_after_a_silence_is_no_late_message() {
    watched(120, || runs("rings", || Stream::new(Rings(3))));
}

#[test]
fn what_an_operator_sends_because_its_input_ended_is_no_late_message() {
    watched(120, || runs("sums", Sums::default));
}

/// Counts messages, and the steps in which it saw the end of its input.
struct SeesEnd {
    input: Input<u64>,
    received: u64,
    seen: Arc<Mutex<Vec<u64>>>,
}

impl Operator for SeesEnd {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.input.pop(cx) {
            Some(_) => self.received += 1,
            None if self.input.is_ended(cx) => self.seen.lock().unwrap().push(self.received),
            None => {}
        }
        Ok(Step::Wait)
    }
}

/// Runs a source that never waits, up to `count` messages or the end of the run's duration.
fn sees_the_end(count: u64, duration_ns: Option<u64>) {
    for (way, options) in ways() {
        if duration_ns.is_some() && options.clock == ClockKind::Manual {
            continue;
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut graph = Graph::new("tails");
        let mut n = 0;
        let numbers = graph.source("numbers", move || {
            n += 1;
            (n <= count).then_some(n)
        });
        let end = SeesEnd { input: Input::default(), received: 0, seen: Arc::clone(&seen) };
        let end = graph.add("end", end);
        graph.connect(numbers, |s| &s.out, end, |e| &e.input);
        let record = graph.run(&Options { duration_ns, ..options }).unwrap();
        assert_eq!(*seen.lock().unwrap(), [record.edges[0].sent], "{way}");
    }
}

#[test]
fn an_operator_is_stepped_once_more_after_its_last_message() {
    watched(120, || {
        for _ in 0..20 {
            sees_the_end(100, None);
        }
    });
}

#[test]
fn an_operator_is_stepped_once_more_after_a_stop() {
    watched(120, || {
        for _ in 0..10 {
            sees_the_end(u64::MAX, Some(3_000_000));
        }
    });
}
