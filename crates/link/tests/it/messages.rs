//! Messages arrive as they were sent.

use crate::{consumer, ends, producer, run_both};
use onbeat_link::{LinkSettings, LinkSink, LinkSource};
use onbeat_runtime::{
    Chunk, Context, Error, Graph, Input, Operator, Options, Output, Ports, Step, Tag, Value,
};
use onbeat_trace::Record;
use std::sync::{Arc, Mutex};

#[test]
fn numbers_arrive_in_order() {
    let (sink, source) = ends("numbers");
    let sent: Vec<u64> = (0..10_000).collect();
    let (consumer, found) = consumer::<u64>(source);
    let (one, other) = run_both(producer(sent.clone(), sink), consumer);
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(*found.lock().unwrap(), sent);
    let (from, to) = (&other.links[0], &one.links[0]);
    assert_eq!((to.messages, from.messages), (10_000, 10_000));
    assert_eq!((to.dropped, from.dropped, to.in_flight, to.cuts, from.cuts), (0, 0, 0, 0, 0));
    assert_eq!(from.name, "numbers");
    assert!(from.uncertainty_ns.is_some(), "{from:?}");
}

#[test]
fn a_producer_that_listens_is_called() {
    let (source, sink) = ends("numbers");
    let sent: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
    let (consumer, found) = consumer::<String>(source);
    let (one, other) = run_both(producer(sent.clone(), sink), consumer);
    one.unwrap();
    other.unwrap();
    assert_eq!(*found.lock().unwrap(), sent);
}

#[test]
fn a_slow_consumer_holds_the_producer() {
    let (sink, mut source) = ends("held");
    source.window = 2;
    let graph = producer((0..50_u64).collect(), sink);
    let mut slow = Graph::new("slow");
    let from = slow.add("from", LinkSource::<u64>::new(source));
    let end = slow.sink("end", |_: u64| std::thread::sleep(std::time::Duration::from_millis(2)));
    slow.connect(from, |s| &s.out, end, |s| &s.input);
    let (one, other) = run_both(graph, slow);
    let one = one.unwrap();
    assert!(one.links[0].held_ns > 0, "{:?}", one.links[0]);
    assert_eq!(other.unwrap().links[0].messages, 50);
}

#[test]
fn the_smaller_window_of_both_ends_holds() {
    for (ours, theirs) in [(1, 64), (64, 1)] {
        let (mut sink, mut source) = ends("windows");
        (sink.window, source.window) = (ours, theirs);
        let (consumer, found) = consumer::<u64>(source);
        let (one, other) = run_both(producer((0..200_u64).collect(), sink), consumer);
        one.unwrap();
        let record = other.unwrap();
        assert_eq!(found.lock().unwrap().len(), 200);
        assert_eq!((record.links[0].messages, record.links[0].dropped), (200, 0));
    }
}

#[test]
fn the_failure_of_one_run_fails_the_other() {
    let (sink, source) = ends("failing");
    let mut graph = Graph::new("producer");
    let mut n = 0_u64;
    let numbers = graph.source("numbers", move || {
        n += 1;
        Some(n)
    });
    let check = graph.map("check", |n: u64| if n < 100 { n } else { panic!("100 is too much") });
    let to = graph.add("to", LinkSink::<u64>::new(sink));
    graph.connect(numbers, |s| &s.out, check, |s| &s.input);
    graph.connect(check, |s| &s.out, to, |s| &s.input);
    let (consumer, _) = consumer::<u64>(source);
    let (one, other) = run_both(graph, consumer);
    assert!(one.is_err());
    let error = other.unwrap_err().to_string();
    assert!(error.contains("link `failing`: the run of") && error.contains("failed"), "{error}");
}

/// Sends full chunks with a number in each sample, tags, shapes and rates.
pub struct Zeros {
    pub out: Output<Chunk<f32>>,
    left: usize,
    sent: u64,
}

impl Zeros {
    pub fn new(count: usize) -> Self {
        Zeros { out: Output::default(), left: count, sent: 0 }
    }
}

impl Operator for Zeros {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.left == 0 {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let length = chunk.len() - self.left % 3;
        chunk.truncate(length);
        for (at, sample) in chunk.edit(cx)?.iter_mut().enumerate() {
            *sample = (self.sent + at as u64) as f32;
        }
        let info = chunk.info_mut();
        (info.start, info.rate_hz, info.shape) = (self.sent, 48e3, [1, length as u32, 1]);
        info.tags.push(Tag { offset: self.left % 7, key: "left".into(), value: (self.left as i64).into() });
        cx.set_time(self.sent * 1000, Some(cx.now_ns()));
        cx.set_key("n", self.left as i64);
        (self.left, self.sent) = (self.left - 1, self.sent + length as u64);
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
}

/// All that is in a chunk or with it.
type SeenChunk = (Vec<f32>, u64, f64, [u32; 3], Vec<Tag>, Option<Value>, u64, bool);

/// Keeps all of each chunk.
struct KeepAll {
    input: Input<Chunk<f32>>,
    seen: Arc<Mutex<Vec<SeenChunk>>>,
}

impl Operator for KeepAll {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            let info = chunk.info();
            let stamp = cx.stamp();
            self.seen.lock().unwrap().push((
                chunk.to_vec(),
                info.start,
                info.rate_hz,
                info.shape,
                info.tags.clone(),
                cx.key("n").cloned(),
                stamp.time_ns,
                stamp.due_ns().is_some(),
            ));
        }
        Ok(Step::Wait)
    }
}

#[test]
fn chunks_arrive_with_all_that_is_with_them() {
    for quantum in [256, 16 << 10, 1 << 20] {
        chunks_arrive(ends("chunks"), quantum);
    }
}

/// Sends chunks over a link, and compares with a run without one.
pub fn chunks_arrive((sink, source): (LinkSettings, LinkSettings), quantum: usize) -> (Record, Record) {
    let direct = Arc::new(Mutex::new(Vec::new()));
    let mut graph = Graph::new("direct");
    let zeros = graph.add("zeros", Zeros::new(30));
    let keep = graph.add("keep", KeepAll { input: Input::default(), seen: Arc::clone(&direct) });
    graph.connect(zeros, |s| &s.out, keep, |s| &s.input).quantum(quantum);
    graph.run(&Options::default()).unwrap();

    let linked = Arc::new(Mutex::new(Vec::new()));
    let mut one = Graph::new("producer");
    let zeros = one.add("zeros", Zeros::new(30));
    let to = one.add("to", LinkSink::<Chunk<f32>>::new(sink));
    one.connect(zeros, |s| &s.out, to, |s| &s.input).quantum(quantum);
    let mut other = Graph::new("consumer");
    let from = other.add("from", LinkSource::<Chunk<f32>>::new(source));
    let keep = other.add("keep", KeepAll { input: Input::default(), seen: Arc::clone(&linked) });
    other.connect(from, |s| &s.out, keep, |s| &s.input).quantum(quantum);
    let (one, other) = run_both(one, other);
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(*linked.lock().unwrap(), *direct.lock().unwrap());
    assert_eq!(direct.lock().unwrap().len(), 30);
    assert!(other.links[0].transit.is_some());
    (one, other)
}
