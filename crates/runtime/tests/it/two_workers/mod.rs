//! Runs on two workers come to their end whatever happens: an error, a panic, a stop, a dead-lock, a consumer
//! that leaves. Every test has a watchdog.

mod edges;

use crate::watchdog::watched;
use onbeat_runtime::{
    Context, Ending, Error, Graph, Idle, Input, Operator, Options, Output, Ports, RunError, Scheduler, Share,
    Step,
};
use onbeat_trace::Record;
use onbeat_trace::record::Outcome;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A way to have two workers.
#[derive(Clone, Copy, Debug)]
struct Way {
    scheduler: Scheduler,
    share: Share,
    idle: Idle,
}

fn two(Way { scheduler, share, idle }: Way) -> Options {
    Options { scheduler, share, workers: Some(2), idle, ..Options::default() }
}

const PINNED: Way = Way { scheduler: Scheduler::Pinned, share: Share::Heavy, idle: Idle::Park };
const EVENT: Way = Way { scheduler: Scheduler::Event, ..PINNED };
const ALWAYS: Way = Way { share: Share::Always, ..EVENT };

const WAYS: [Way; 8] = [
    PINNED,
    Way { idle: Idle::Spin, ..PINNED },
    Way { idle: Idle::SpinFor(20_000), ..PINNED },
    EVENT,
    Way { idle: Idle::Spin, ..EVENT },
    ALWAYS,
    Way { idle: Idle::Spin, ..ALWAYS },
    Way { idle: Idle::SpinFor(20_000), ..ALWAYS },
];

#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    Pass,
    Fail,
    Panic,
    Done,
    FailStart,
    PanicStart,
    FailStop,
}

/// Does what a test asks for at message 1000, and logs its end.
struct Probe {
    name: &'static str,
    input: Input<u64>,
    out: Output<u64>,
    log: Arc<Mutex<Vec<String>>>,
    what: What,
}

impl Operator for Probe {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        match self.what {
            What::FailStart => Err(Error::new("no antenna")),
            What::PanicStart => panic!("no antenna at all"),
            _ => Ok(()),
        }
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(n) = self.input.pop(cx) else { return Ok(Step::Wait) };
        match self.what {
            What::Fail if n == 1000 => return Err(Error::new("the cable broke")),
            What::Panic if n == 1000 => panic!("off by one"),
            What::Done if n == 1000 => return Ok(Step::Done),
            _ => {}
        }
        self.out.push(cx, n)?;
        Ok(Step::Wait)
    }
    fn stop(&mut self, _: &mut Context, ending: Ending) -> Result<(), Error> {
        self.log.lock().unwrap().push(format!("{} {ending:?}", self.name));
        if self.what == What::FailStop { Err(Error::new("disk full")) } else { Ok(()) }
    }
}

/// numbers → first | second → end, cut at the bar. `numbers` ends after `count`.
fn chain(count: u64, first: What, second: What) -> (Graph, Arc<Mutex<Vec<String>>>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut graph = Graph::new("two");
    let mut n = 0;
    graph.source("numbers", move || {
        n += 1;
        (n <= count).then_some(n)
    });
    for (name, what) in [("first", first), ("second", second)] {
        let log = Arc::clone(&log);
        graph.add(name, Probe { name, input: Input::default(), out: Output::default(), log, what });
    }
    graph.sink("end", |_: u64| ());
    graph.connect_names("numbers", "first").capacity(2);
    graph.connect_names("first", "second").capacity(3);
    graph.connect_names("second", "end");
    (graph, log)
}

fn run(count: u64, first: What, second: What, way: Way) -> (Result<Record, RunError>, Vec<String>) {
    let (graph, log) = chain(count, first, second);
    let plan = graph.plan(&two(way)).unwrap();
    assert_eq!(plan.workers.len(), 2);
    let result = graph.start_plan(plan).and_then(onbeat_runtime::Run::wait);
    let mut log = log.lock().unwrap().clone();
    log.sort_unstable();
    (result, log)
}

fn failed(result: Result<Record, RunError>) -> Record {
    match result {
        Err(RunError::Failed(record)) => *record,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fault_on_either_worker_ends_both() {
    watched(60, || {
        for way in WAYS {
            for (first, second, reason) in [
                (What::Fail, What::Pass, "operator `first`: the cable broke"),
                (What::Pass, What::Fail, "operator `second`: the cable broke"),
                (What::Panic, What::Pass, "operator `first`: panicked: off by one"),
                (What::Pass, What::Panic, "operator `second`: panicked: off by one"),
            ] {
                let (result, log) = run(u64::MAX, first, second, way);
                let record = failed(result);
                assert_eq!(record.result.reason, reason);
                assert_eq!(record.result.exit_status, 1);
                assert_eq!(log, ["first Failed", "second Failed"], "{first:?} {second:?} {way:?}");
            }
        }
    });
}

#[test]
fn a_start_that_fails_steps_nobody() {
    watched(60, || {
        for (what, way) in
            [What::FailStart, What::PanicStart].into_iter().flat_map(|what| WAYS.map(|way| (what, way)))
        {
            let (result, log) = run(10, What::Pass, what, way);
            let record = failed(result);
            assert!(record.result.reason.contains("operator `second`: cannot start: "), "{record:?}");
            assert!(record.operators.iter().all(|operator| operator.steps == 0));
            // The workers start theirs at the same time, so the other one may not have come to it. If it has,
            // it is stopped.
            assert!(log.is_empty() || log == ["first Failed"], "{log:?}");
        }
    });
}

#[test]
fn a_stop_that_fails_is_told() {
    watched(60, || {
        let (result, log) = run(10, What::FailStop, What::Pass, PINNED);
        assert_eq!(failed(result).result.reason, "operator `first`: cannot finish: disk full");
        assert_eq!(log, ["first Ended", "second Failed"]);
    });
}

#[test]
fn a_stop_works_off_what_is_under_way() {
    watched(60, || {
        for way in WAYS {
            let (graph, log) = chain(u64::MAX, What::Pass, What::Pass);
            let run = graph.start(&two(way)).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            run.stop();
            let record = run.wait().unwrap();
            assert_eq!((record.result.outcome, record.result.lost), (Outcome::Stopped, 0));
            for edge in &record.edges {
                assert_eq!((edge.sent, edge.unread), (edge.received, 0), "{edge:?}");
            }
            let mut log = log.lock().unwrap().clone();
            log.sort_unstable();
            assert_eq!(log, ["first Stopped", "second Stopped"]);
        }
    });
}

/// A stop that comes before the first step, and again and again.
#[test]
fn a_stop_may_come_at_any_time() {
    watched(60, || {
        for round in 0..200 {
            let (graph, _) = chain(u64::MAX, What::Pass, What::Pass);
            let run = graph.start(&two(WAYS[round % WAYS.len()])).unwrap();
            let handle = run.handle();
            let other =
                onbeat_os::thread::spawn("handle", move || (0..10).for_each(|_| handle.stop())).unwrap();
            assert_eq!(run.wait().unwrap().result.outcome, Outcome::Stopped);
            other.join().unwrap();
        }
    });
}

#[test]
fn a_consumer_that_leaves_ends_its_producers() {
    watched(60, || {
        for way in WAYS {
            let record = run(u64::MAX, What::Pass, What::Done, way).0.unwrap();
            assert_eq!((record.result.outcome, record.result.lost), (Outcome::Ended, 0));
            assert_eq!(record.edges[2].received, 999);
            let edge = &record.edges[1];
            assert_eq!((edge.received, edge.sent), (1000, 1000 + edge.unread));
        }
    });
}

/// A diamond whose join wants both arms, one of which never sends: the other fills up.
#[test]
fn a_dead_lock_names_who_waits_on_both_workers() {
    struct Both {
        a: Input<u64>,
        b: Input<u64>,
    }
    impl Operator for Both {
        fn ports(&mut self, p: &mut Ports) {
            p.input("a", &mut self.a);
            p.input("b", &mut self.b);
        }
        fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
            let _ = (self.a.pop(cx), self.b.pop(cx));
            Ok(Step::Wait)
        }
    }
    struct Silent {
        input: Input<u64>,
        out: Output<u64>,
    }
    impl Operator for Silent {
        fn ports(&mut self, p: &mut Ports) {
            p.input("in", &mut self.input);
            p.output("out", &mut self.out);
        }
        fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
            self.input.pop(cx);
            Ok(Step::Wait)
        }
    }
    watched(60, || {
        for way in WAYS {
            let mut graph = Graph::new("stuck");
            graph.source("numbers", || Some(1u64));
            graph.map("loud", |x: u64| x);
            graph.add("silent", Silent { input: Input::default(), out: Output::default() });
            graph.add("both", Both { a: Input::default(), b: Input::default() });
            graph.connect_names("numbers", "loud");
            graph.connect_names("numbers", "silent");
            graph.connect_names("loud", "both.a");
            graph.connect_names("silent", "both.b");
            let reason = failed(graph.run(&two(way))).result.reason;
            for part in
                ["dead-lock", "numbers waits for room", "both waits for a message on silent.out → both.b"]
            {
                assert!(reason.contains(part), "{way:?}: {reason}");
            }
        }
    });
}
