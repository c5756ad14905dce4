//! What travels beside a message: stamps, sequence numbers, user keys; and how several inputs are joined.

use onbeat_runtime::{
    ClockKind, Context, Error, Graph, Input, Merge, Operator, Options, Output, Ports, Step, Value,
};
use std::sync::{Arc, Mutex};

/// Sends `n` at `n * period`, with a key on every third message.
struct Source {
    out: Output<u64>,
    n: u64,
    len: u64,
    period: u64,
    name: &'static str,
}

impl Operator for Source {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.n == self.len {
            return Ok(Step::Done);
        }
        cx.set_time(self.n * self.period, Some(cx.start_ns() + self.n * self.period));
        if self.n.is_multiple_of(3) {
            cx.set_key("from", self.name);
            cx.set_key("n", self.n as i64);
        }
        self.out.push(cx, self.n)?;
        self.n += 1;
        Ok(Step::Again)
    }
}

fn source(name: &'static str, len: u64, period: u64) -> Source {
    Source { out: Output::default(), n: 0, len, period, name }
}

/// (time, sequence, value, key "from", key "n")
type Seen = (u64, u64, u64, Option<String>, Option<i64>);

struct Collect {
    input: Input<u64>,
    many: Option<Merge>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Operator for Collect {
    fn ports(&mut self, p: &mut Ports) {
        let port = p.input("in", &mut self.input);
        if let Some(merge) = self.many {
            port.many(merge);
        }
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        while let Some(value) = self.input.pop(cx) {
            let from = cx.key("from").map(Value::to_string);
            let n = match cx.key("n") {
                Some(Value::Int(n)) => Some(*n),
                _ => None,
            };
            let stamp = cx.stamp();
            self.seen.lock().unwrap().push((stamp.time_ns, stamp.sequence(), value, from, n));
        }
        Ok(Step::Wait)
    }
}

fn options() -> Options {
    Options { clock: ClockKind::Manual, ..Options::default() }
}

#[test]
fn stamps_and_keys_travel_through_maps_and_forks() {
    for capacity in [1, 5] {
        let seen: Vec<Arc<Mutex<Vec<Seen>>>> = (0..2).map(|_| Arc::default()).collect();
        let mut graph = Graph::new("keys");
        graph.add("source", source("a", 10, 7));
        graph.map("double", |n: u64| n * 2);
        graph.map("more", |n: u64| n + 1);
        for (name, seen) in ["one", "two"].into_iter().zip(&seen) {
            graph.add(name, Collect { input: Input::default(), many: None, seen: Arc::clone(seen) });
        }
        for (from, to) in [("source", "double"), ("double", "more"), ("double", "one"), ("more", "two")] {
            let _ = graph.connect_names(from, to).capacity(capacity);
        }
        graph.run(&options()).unwrap();
        for (at, seen) in seen.iter().enumerate() {
            let expected: Vec<Seen> = (0..10)
                .map(|n| {
                    let keyed = n % 3 == 0;
                    (n * 7, n, n * 2 + at as u64, keyed.then(|| "a".to_string()), keyed.then_some(n as i64))
                })
                .collect();
            assert_eq!(*seen.lock().unwrap(), expected, "capacity {capacity}");
        }
    }
}

#[test]
fn fan_in_is_ordered_by_time_sequence_edge() {
    for capacity in [1, 2, 64] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut graph = Graph::new("merge");
        for (name, len, period) in [("a", 9, 4), ("b", 20, 1), ("c", 0, 1), ("d", 5, 4)] {
            graph.add(name, source(name, len, period));
        }
        let input = Input::default();
        graph.add("end", Collect { input, many: Some(Merge::Ordered), seen: Arc::clone(&seen) });
        for name in ["a", "b", "c", "d"] {
            let _ = graph.connect_names(name, "end").capacity(capacity);
        }
        let record = graph.run(&options()).unwrap();
        let mut expected: Vec<(u64, u64, usize)> = Vec::new();
        for (edge, (len, period)) in [(9, 4), (20, 1), (0, 1), (5, 4)].into_iter().enumerate() {
            expected.extend((0..len).map(|n| (n * period, n, edge)));
        }
        expected.sort_unstable();
        assert_eq!(expected.len(), 34);
        let got: Vec<_> = seen.lock().unwrap().iter().map(|seen| (seen.0, seen.1)).collect();
        assert_eq!(got, expected.iter().map(|e| (e.0, e.1)).collect::<Vec<_>>());
        assert_eq!(record.edges.iter().map(|edge| edge.received).sum::<u64>(), 34);
        assert_eq!(record.paths.iter().map(|path| path.latency.count).collect::<Vec<_>>(), [9, 20, 0, 5]);
    }
}

#[test]
fn fan_in_by_arrival_takes_what_is_there() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut graph = Graph::new("merge");
    graph.add("a", source("a", 30, 1));
    graph.add("b", source("b", 3, 1));
    let input = Input::default();
    graph.add("end", Collect { input, many: Some(Merge::Arrival), seen: Arc::clone(&seen) });
    let _ = graph.connect_names("a", "end");
    let _ = graph.connect_names("b", "end");
    let record = graph.run(&options()).unwrap();
    assert_eq!((record.edges[0].received, record.edges[1].received), (30, 3));
    let seen = seen.lock().unwrap();
    assert!(seen[..6].iter().filter(|seen| seen.1 < 3).count() >= 5, "both edges have their turn: {seen:?}");
}

/// Adds one message of each input.
#[derive(Default)]
struct Sum {
    a: Input<u64>,
    b: Input<u64>,
    out: Output<u64>,
}

impl Operator for Sum {
    fn ports(&mut self, p: &mut Ports) {
        p.input("a", &mut self.a);
        p.input("b", &mut self.b);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        assert!(!self.a.is_empty(cx) || self.a.is_ended(cx), "stepped before all inputs had a message");
        let (Some(a), Some(b)) = (self.a.pop(cx), self.b.pop(cx)) else { return Ok(Step::Done) };
        self.out.push(cx, a + b)?;
        Ok(Step::Wait)
    }
}

#[test]
fn what_is_made_of_two_messages_has_the_older_stamp_and_all_keys() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut graph = Graph::new("join");
    graph.add("a", source("a", 4, 10));
    graph.add("b", source("b", 6, 3));
    graph.add("sum", Sum::default());
    graph.add("end", Collect { input: Input::default(), many: None, seen: Arc::clone(&seen) });
    for (from, to) in [("a", "sum.a"), ("b", "sum.b"), ("sum", "end")] {
        let _ = graph.connect_names(from, to);
    }
    graph.run(&options()).unwrap();
    let from = |n: u64| n.is_multiple_of(3).then(|| "b".to_string());
    let expected: Vec<Seen> = (0..4).map(|n| (n * 3, n, n * 2, from(n), from(n).map(|_| n as i64))).collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

/// Passes one message per millisecond.
#[derive(Default)]
struct Slow {
    input: Input<u64>,
    out: Output<u64>,
    next_ns: u64,
}

impl Operator for Slow {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if cx.now_ns() < self.next_ns {
            return Ok(cx.until(self.next_ns));
        }
        if let Some(n) = self.input.pop(cx) {
            self.out.push(cx, n)?;
            self.next_ns = cx.now_ns() + 1_000_000;
        }
        Ok(Step::Wait)
    }
}

#[test]
fn late_messages_are_misses_of_their_path_and_deadline() {
    let mut graph = Graph::new("late");
    // All ten are due at 0; the n-th passes at n ms.
    graph.add("source", source("a", 10, 0));
    let slow = graph.add("slow", Slow::default());
    graph.sink("end", |_: u64| ());
    graph.deadline(slow, 6_500_000);
    graph.path("source", "end", Some(2_500_000));
    let _ = graph.connect_names("source", "slow").capacity(16);
    let _ = graph.connect_names("slow", "end");
    let run = Options { clock: ClockKind::Manual, ..Options::default() };
    let record = graph.run(&run).unwrap();
    let path = &record.paths[0];
    assert_eq!((path.latency.count, path.latency.max_ns, path.misses), (10, 9_000_000, 7));
    let slow = record.operators.iter().find(|operator| operator.name == "slow").unwrap();
    assert_eq!((slow.late, record.misses_total, record.misses.len()), (3, 10, 10));
    let first = &record.misses[0];
    assert_eq!((first.name.as_str(), first.sequence), ("source → end", 3));
    assert_eq!((first.value_ns, first.limit_ns, first.late_ns), (3_000_000, 2_500_000, 500_000));
}

/// Joins a slow stream of pairs with a fast one of single messages: of each pair one half is held.
#[derive(Default)]
struct Halves {
    pairs: Input<(u64, u64)>,
    singles: Input<u64>,
    out: Output<(u64, u64)>,
    held: Vec<u64>,
}

impl Operator for Halves {
    fn ports(&mut self, p: &mut Ports) {
        p.input("pairs", &mut self.pairs);
        p.input("singles", &mut self.singles);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.held.is_empty()
            && let Some((one, two)) = self.pairs.pop(cx)
        {
            self.held = vec![two, one];
        }
        if let Some(single) = self.singles.pop(cx)
            && let Some(half) = self.held.pop()
        {
            self.out.push(cx, (half, single))?;
        }
        if !self.held.is_empty() {
            self.pairs.keep(cx);
        }
        Ok(Step::Wait)
    }
}

#[test]
fn an_operator_need_not_wait_for_an_input_of_which_it_still_holds_a_part() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let got = Arc::clone(&seen);
    let mut graph = Graph::new("halves");
    // The singles come one per millisecond, the pairs all at once.
    graph.add("ticks", Slow::default());
    let (mut pair, mut single) = (0u64, 0u64);
    graph.source("pairs", move || {
        pair += 1;
        (pair <= 3).then_some((10 * pair, 10 * pair + 1))
    });
    graph.source("singles", move || {
        single += 1;
        (single <= 6).then_some(single)
    });
    graph.add("halves", Halves::default());
    graph.sink("end", move |both: (u64, u64)| got.lock().unwrap().push(both));
    for (from, to) in
        [("singles", "ticks"), ("pairs", "halves.pairs"), ("ticks", "halves.singles"), ("halves", "end")]
    {
        let _ = graph.connect_names(from, to).capacity(1);
    }
    graph.run(&options()).unwrap();
    assert_eq!(*seen.lock().unwrap(), [(10, 1), (11, 2), (20, 3), (21, 4), (30, 5), (31, 6)]);
}
