//! Operators without a state on several workers: what comes out is what one worker gives, in order, however
//! long steps take and however the run ends.

mod chunks;
mod memory;
mod orders;
mod plans;
mod slow;
mod wrong;

use crate::splitmix::Random;
use crate::watchdog::watched;
use onbeat_runtime::{
    Context, Error, Graph, Idle, Input, Numbers, Operator, Options, Output, Ports, Scheduler, Stamp, Step,
};
use std::sync::{Arc, Mutex};

fn replicated(workers: usize) -> Options {
    Options { scheduler: Scheduler::Replicated, workers: Some(workers), ..Options::default() }
}

/// Sends the numbers below a limit, each under its own time and with a key for some.
struct Count {
    out: Output<u64>,
    numbers: Numbers,
    has_replicas: bool,
    /// Messages from one pause to the next.
    burst: u64,
}

impl Count {
    fn new(limit: Option<u64>, has_replicas: bool) -> Self {
        Count { out: Output::default(), numbers: Numbers::below(limit), has_replicas, burst: u64::MAX }
    }
}

impl Operator for Count {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(number) = self.numbers.next() else { return Ok(Step::Done) };
        cx.set_time(10 * number, None);
        if number.is_multiple_of(7) {
            cx.set_key("seventh", number as i64);
        }
        self.numbers.used(cx);
        self.out.push(cx, number)?;
        let pauses = (number + 1).is_multiple_of(self.burst);
        Ok(if pauses { cx.until(cx.now_ns() + 50_000) } else { Step::Again })
    }
    fn replica(&self) -> Option<Box<dyn Operator>> {
        self.has_replicas.then(|| {
            let (out, numbers) = (Output::default(), self.numbers.share());
            Box::new(Count { out, numbers, ..*self }) as _
        })
    }
}

/// What a worker does with each number.
#[derive(Clone, Copy)]
enum Does {
    /// Adds 1, after a delay of up to `rounds` rounds.
    AddsOne { rounds: u64 },
    /// Leaves out what is divisible by this.
    LeavesOut(u64),
    /// Sends what is divisible by this twice.
    Doubles(u64),
    /// Fails at this one.
    Fails(u64),
    /// Panics at this one.
    Panics(u64),
}

struct Work {
    input: Input<u64>,
    out: Output<u64>,
    does: Does,
    random: Random,
    add: u64,
}

impl Work {
    fn new(does: Does, seed: u64) -> Self {
        Work { input: Input::default(), out: Output::default(), does, random: Random(seed), add: 1 }
    }
}

impl Operator for Work {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(number) = self.input.pop(cx) else { return Ok(Step::Wait) };
        match self.does {
            Does::AddsOne { rounds } if rounds > 0 => {
                let rounds = self.random.below(rounds);
                (0..rounds).for_each(|_| std::hint::spin_loop());
                if rounds.is_multiple_of(64) {
                    std::thread::yield_now();
                }
            }
            Does::LeavesOut(n) if number.is_multiple_of(n) => return Ok(Step::Wait),
            Does::Doubles(n) if number.is_multiple_of(n) && self.out.room(cx) > 1 => {
                self.out.push(cx, number)?;
            }
            Does::Fails(n) if number == n => return Err(Error::new("cannot do this one")),
            Does::Panics(n) => assert!(number != n, "not this one"),
            _ => {}
        }
        self.out.push(cx, number + self.add)?;
        Ok(Step::Wait)
    }
    fn replica(&self) -> Option<Box<dyn Operator>> {
        // Each with delays of its own.
        let Random(seed) = self.random;
        let own = Random(seed ^ std::ptr::from_ref(self).addr() as u64).next();
        Some(Box::new(Work { add: self.add, ..Work::new(self.does, own) }))
    }
    fn settable(&self) -> &'static [&'static str] {
        &["add"]
    }
    fn set(&mut self, _: &mut Context, name: &str, value: &onbeat_runtime::Value) -> Result<(), Error> {
        self.add = value.read(name)?;
        Ok(())
    }
}

type Taken = Arc<Mutex<Vec<(u64, Stamp, Option<i64>)>>>;

/// Writes down what comes, with stamp and key.
struct Sink {
    input: Input<u64>,
    taken: Taken,
    has_replicas: bool,
    most: usize,
}

impl Operator for Sink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        // One that takes all there is, as it may.
        while let Some(number) = self.input.pop(cx) {
            let key = match cx.key("seventh") {
                Some(onbeat_runtime::Value::Int(key)) => Some(*key),
                _ => None,
            };
            let mut taken = self.taken.lock().unwrap();
            taken.push((number, cx.stamp(), key));
            if taken.len() >= self.most {
                return Ok(Step::Done);
            }
        }
        assert!(!self.input.is_ended(cx) || self.input.is_empty(cx));
        Ok(Step::Wait)
    }
    fn replica(&self) -> Option<Box<dyn Operator>> {
        self.has_replicas.then(|| {
            let (input, taken) = (Input::default(), Arc::clone(&self.taken));
            Box::new(Sink { input, taken, has_replicas: true, most: self.most }) as _
        })
    }
}

/// Operators at the ends of a stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ends {
    Copies,
    Turns,
    /// An operator with a state, on either side.
    Rest,
}

/// A source, one operator per entry of `works`, and a sink.
fn chain(ends: Ends, limit: Option<u64>, works: &[Does], capacity: usize) -> (Graph, Taken) {
    chain_of(ends, Count::new(limit, ends == Ends::Copies), works, capacity)
}

fn chain_of(ends: Ends, source: Count, works: &[Does], capacity: usize) -> (Graph, Taken) {
    let mut graph = Graph::new("chain");
    let taken = Taken::default();
    let has_replicas = source.has_replicas;
    graph.add("count", source);
    let mut last = "count".to_string();
    let mut add = |graph: &mut Graph, name: String| {
        let _ = graph.connect_names(format!("{last}.out"), format!("{name}.in")).capacity(capacity);
        last = name;
    };
    if ends == Ends::Rest {
        let mut before = None;
        graph.map("checks", move |n: u64| {
            assert!(before.replace(n).is_none_or(|before| before < n));
            n
        });
        add(&mut graph, "checks".to_string());
    }
    for (at, &does) in works.iter().enumerate() {
        graph.add(format!("work{at}"), Work::new(does, 77 + at as u64));
        add(&mut graph, format!("work{at}"));
    }
    if ends == Ends::Rest {
        graph.map("keeps", |n: u64| n);
        add(&mut graph, "keeps".to_string());
    }
    let sink = Sink { input: Input::default(), taken: Arc::clone(&taken), has_replicas, most: usize::MAX };
    graph.add("sink", sink);
    add(&mut graph, "sink".to_string());
    (graph, taken)
}

/// What came is what went in, with stamps and keys; in order but where no order is kept.
fn check(what: &str, ends: Ends, works: u64, taken: &Taken) -> u64 {
    let mut taken = taken.lock().unwrap().clone();
    if ends == Ends::Copies {
        taken.sort_by_key(|(number, ..)| *number);
    }
    for (n, (number, stamp, key)) in taken.iter().enumerate() {
        let n = n as u64;
        assert_eq!(*number, n + works, "{what}: number {n}");
        assert_eq!((stamp.time_ns, stamp.sequence()), (10 * n, n), "{what}: stamp of {n}");
        assert_eq!(*key, n.is_multiple_of(7).then_some(n as i64), "{what}: key of {n}");
    }
    taken.len() as u64
}

#[test]
fn what_comes_out_is_what_went_in() {
    watched(300, || {
        for ends in [Ends::Copies, Ends::Turns, Ends::Rest] {
            for workers in [2, 3, 5] {
                for idle in [Idle::Park, Idle::SpinFor(20_000)] {
                    for (capacity, works, rounds) in [(1, 1, 0), (1, 3, 2000), (4, 6, 500), (16, 2, 5000)] {
                        let what =
                            format!("{ends:?}, {workers} workers, {idle}, {capacity}, {works}, {rounds}");
                        let (graph, taken) =
                            chain(ends, Some(2000), &vec![Does::AddsOne { rounds }; works], capacity);
                        let record = graph.run(&Options { idle, ..replicated(workers) });
                        let record = record.unwrap_or_else(|error| panic!("{what}: {error}"));
                        assert_eq!(record.result.lost, 0, "{what}");
                        assert_eq!(check(&what, ends, works as u64, &taken), 2000, "{what}");
                        for operator in record.operators.iter().filter(|it| it.kind == "Work") {
                            assert_eq!(
                                (operator.workers, operator.steps >= 2000),
                                (workers as u64, true),
                                "{what}"
                            );
                        }
                    }
                }
            }
        }
    });
}

/// Messages that are handed out in the middle of a graph go to other workers as long as they take them, not
/// only until a queue was filled once.
#[test]
fn others_get_their_share() {
    watched(60, || {
        let (graph, taken) = chain(Ends::Rest, Some(4000), &[Does::AddsOne { rounds: 3000 }], 4);
        let record = graph.run(&replicated(2)).unwrap();
        assert_eq!(check("shares", Ends::Rest, 1, &taken), 4000);
        let other = record.edges.iter().find(|edge| edge.from == "work0.spread.1").map(|edge| edge.sent);
        assert!(other.is_some_and(|sent| sent > 40), "{other:?} of 4000 messages, and its queue holds 4");
    });
}

/// A turn of several messages that the source does not end as it began, at any place in it.
#[test]
fn a_source_that_stops_for_breath_keeps_the_order() {
    watched(120, || {
        for clock in [onbeat_runtime::ClockKind::Manual, onbeat_runtime::ClockKind::Real] {
            for (burst, workers, capacity) in
                [(3_001, 2, 8), (997, 2, 8), (1_001, 3, 3), (331, 3, 16), (100, 2, 1)]
            {
                let what = format!("{clock:?}, bursts of {burst}, {workers} workers, {capacity}");
                let source = Count { burst, ..Count::new(Some(3_000), false) };
                let works = [Does::AddsOne { rounds: 10 }];
                let (graph, taken) = chain_of(Ends::Turns, source, &works, capacity);
                let options = Options { clock, idle: Idle::SpinFor(5_000), ..replicated(workers) };
                let record = graph.run(&options).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(record.result.lost, 0, "{what}");
                assert_eq!(check(&what, Ends::Turns, 1, &taken), 3_000, "{what}");
            }
        }
    });
}

#[test]
fn virtual_time_changes_nothing() {
    watched(60, || {
        for ends in [Ends::Copies, Ends::Turns, Ends::Rest] {
            let (graph, taken) = chain(ends, Some(500), &[Does::AddsOne { rounds: 100 }; 3], 4);
            let options = Options { clock: onbeat_runtime::ClockKind::Manual, ..replicated(2) };
            let record = graph.run(&options).unwrap();
            assert_eq!(check("virtual", ends, 3, &taken), 500);
            if ends == Ends::Turns {
                // No time goes by between messages, so turns of the source have several.
                let steps = record.operators.iter().find(|it| it.kind == "Count").map(|it| it.steps);
                assert!(
                    steps.is_some_and(|steps| (64..400).contains(&steps)),
                    "{steps:?} steps for 500 messages"
                );
            }
        }
    });
}
