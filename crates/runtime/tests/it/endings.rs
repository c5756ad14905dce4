//! Ends of runs: on their own, by a stop, an error, a panic, a deadlock; and what `stop` of operators
//! receives.

use onbeat_runtime::{
    ClockKind, Context, Ending, Error, Graph, Input, Operator, Options, Output, Ports, RunError, Step,
    WhenFull,
};
use onbeat_trace::Record;
use onbeat_trace::record::{OperatorState, Outcome};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

type Log = Arc<Mutex<Vec<String>>>;

/// Does what a test asks for at a certain message, and logs its life.
struct Probe {
    name: &'static str,
    input: Input<u64>,
    out: Output<u64>,
    log: Log,
    at: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Pass,
    Fail,
    Panic,
    Done,
    FailStart,
    PanicStart,
    FailStop,
    Overfill,
}

impl Operator for Probe {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.log.lock().unwrap().push(format!("start {}", self.name));
        match self.what {
            What::FailStart => Err(Error::new("no antenna")),
            What::PanicStart => panic!("no antenna at all"),
            _ => Ok(()),
        }
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(n) = self.input.pop(cx) else { return Ok(Step::Wait) };
        if n == self.at {
            match self.what {
                What::Fail => return Err(Error::new("the cable broke")),
                What::Panic => panic!("off by one"),
                What::Done => return Ok(Step::Done),
                What::Overfill => {
                    for _ in 0..100 {
                        self.out.push(cx, n)?;
                    }
                }
                _ => {}
            }
        }
        self.out.push(cx, n)?;
        Ok(Step::Wait)
    }
    fn stop(&mut self, _: &mut Context, ending: Ending) -> Result<(), Error> {
        self.log.lock().unwrap().push(format!("stop {} {ending:?}", self.name));
        if self.what == What::FailStop { Err(Error::new("disk full")) } else { Ok(()) }
    }
}

/// numbers → first → second → end, where `second` does what it is told at message 5 of 10.
fn run(what: What) -> (Result<Record, RunError>, Vec<String>) {
    let log = Log::default();
    let mut graph = Graph::new("life");
    let mut n = 0;
    let numbers = graph.source("numbers", move || {
        n += 1;
        (n <= 10).then_some(n)
    });
    let probe = |name, what| Probe {
        name,
        input: Input::default(),
        out: Output::default(),
        log: Arc::clone(&log),
        at: 5,
        what,
    };
    let first = graph.add("first", probe("first", What::Pass));
    let second = graph.add("second", probe("second", what));
    let end = graph.sink("end", |_: u64| ());
    let _ = graph.connect(numbers, |s| &s.out, first, |p| &p.input);
    let _ = graph.connect(first, |p| &p.out, second, |p| &p.input);
    let _ = graph.connect(second, |p| &p.out, end, |e| &e.input);
    let result = watched(move || graph.run(&Options::default()));
    let log = log.lock().unwrap().clone();
    (result, log)
}

/// Fails when the run does not come back.
#[allow(clippy::disallowed_methods, reason = "a watchdog does not belong to the run")]
fn watched<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(run()));
    wait.recv_timeout(Duration::from_secs(30)).expect("the run did not end within 30 s")
}

#[test]
fn a_run_ends_when_its_sources_do() {
    let (result, log) = run(What::Pass);
    let record = result.unwrap();
    assert_eq!(record.result.outcome, Outcome::Ended);
    assert_eq!(record.result.exit_status, 0);
    assert!(record.operators.iter().all(|operator| operator.state == OperatorState::Done));
    assert!(record.edges.iter().all(|edge| (edge.sent, edge.received, edge.unread) == (10, 10, 0)));
    assert_eq!(record.operators[1].steps, 11, "ten messages and the end");
    assert_eq!(log, ["start first", "start second", "stop first Ended", "stop second Ended"]);
}

#[test]
fn failures_name_the_operator_and_stop_everyone() {
    let stops = ["start first", "start second", "stop first Failed", "stop second Failed"];
    for (what, reason) in [
        (What::Fail, "operator `second`: the cable broke"),
        (What::Panic, "operator `second`: panicked: off by one"),
        (What::Overfill, "operator `second`: the edge second.out → end.in is full"),
    ] {
        let (result, log) = run(what);
        let Err(RunError::Failed(record)) = result else { panic!("{reason}: {result:?}") };
        assert!(record.result.reason.starts_with(reason), "{}", record.result.reason);
        assert_eq!((record.result.outcome, record.result.exit_status), (Outcome::Failed, 1));
        assert_eq!(record.operators[2].state, OperatorState::Failed);
        assert_eq!((record.operators[2].steps, record.edges[1].received), (5, 5), "{reason}");
        assert_eq!(log, stops);
    }
}

#[test]
fn who_cannot_start_ends_those_who_have() {
    for (what, reason) in [
        (What::FailStart, "operator `second`: cannot start: no antenna"),
        (What::PanicStart, "operator `second`: cannot start: panicked: no antenna at all"),
    ] {
        let (result, log) = run(what);
        let Err(RunError::Failed(record)) = result else { panic!("{reason}: {result:?}") };
        assert_eq!(record.result.reason, reason);
        assert_eq!(record.operators[3].state, OperatorState::NotStarted);
        assert_eq!(log, ["start first", "start second", "stop first Failed"]);
    }
}

#[test]
fn who_cannot_finish_fails_the_run() {
    let (result, log) = run(What::FailStop);
    let Err(RunError::Failed(record)) = result else { panic!("{result:?}") };
    assert_eq!(record.result.reason, "operator `second`: cannot finish: disk full");
    assert_eq!(log[2..], ["stop first Ended", "stop second Ended"]);
}

#[test]
fn a_consumer_that_is_done_ends_those_who_only_feed_it() {
    let (result, _) = run(What::Done);
    let record = result.unwrap();
    assert_eq!(record.result.outcome, Outcome::Ended);
    assert_eq!(record.edges[2].received, 4, "messages before the fifth");
    assert_eq!(record.edges[1].received, 5);
}

#[test]
fn a_stop_works_off_what_is_under_way() {
    for clock in [ClockKind::Real, ClockKind::Manual] {
        let mut graph = Graph::new("endless");
        let mut n = 0u64;
        let numbers = graph.source("numbers", move || {
            n += 1;
            Some(n)
        });
        let end = graph.sink("end", |_: u64| ());
        let _ = graph.connect(numbers, |s| &s.out, end, |e| &e.input);
        let run = graph.start(&Options { clock, ..Options::default() }).unwrap();
        let handle = run.handle();
        handle.stop();
        handle.stop();
        let record = watched(move || run.wait()).unwrap();
        assert_eq!((record.result.outcome, record.result.exit_status), (Outcome::Stopped, 0));
        assert_eq!(record.edges[0].sent, record.edges[0].received);
    }
}

/// Steps at fixed times, forever.
struct Ticks {
    out: Output<u64>,
    next_ns: u64,
}

impl Operator for Ticks {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if cx.now_ns() >= self.next_ns {
            cx.set_time(self.next_ns, Some(self.next_ns));
            self.out.push(cx, self.next_ns)?;
            self.next_ns += 1_000_000;
        }
        Ok(cx.until(self.next_ns))
    }
}

#[test]
fn a_duration_ends_the_run_in_virtual_time_too() {
    let run = || {
        let mut graph = Graph::new("ticks");
        let ticks = graph.add("ticks", Ticks { out: Output::default(), next_ns: 0 });
        let end = graph.sink("end", |_: u64| ());
        let _ = graph.connect(ticks, |t| &t.out, end, |e| &e.input);
        let hour_ns = 3_600_000_000_000;
        let options = Options { clock: ClockKind::Manual, duration_ns: Some(hour_ns), ..Options::default() };
        watched(move || graph.run(&options)).unwrap()
    };
    let record = run();
    assert_eq!(record.result.outcome, Outcome::Stopped);
    assert_eq!(record.result.duration_ns, 3_600_000_000_000);
    assert_eq!(record.edges[0].received, 3_600_000, "one per millisecond, and the last is not due any more");
    assert_eq!(record.paths[0].latency.max_ns, 0);
    let again = run();
    assert_eq!(
        (record.operators, record.edges),
        (again.operators, again.edges),
        "virtual time is repeatable"
    );
}

/// Waits for a message that never comes, on its second input.
#[derive(Default)]
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
        self.a.pop(cx);
        Ok(Step::Wait)
    }
}

/// A source that never says what it waits for.
#[derive(Default)]
struct Silent {
    out: Output<u64>,
}

impl Operator for Silent {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Wait)
    }
}

#[test]
fn a_dead_lock_is_an_error_that_names_who_waits_for_what() {
    let mut graph = Graph::new("stuck");
    let ones = graph.source("ones", || Some(1u64));
    let silent = graph.add("silent", Silent::default());
    let both = graph.add("both", Both::default());
    let _ = graph.connect(ones, |s| &s.out, both, |b| &b.a).capacity(2);
    let _ = graph.connect(silent, |s| &s.out, both, |b| &b.b);
    let result = watched(move || graph.run(&Options::default()));
    let Err(RunError::Failed(record)) = result else { panic!("{result:?}") };
    let reason = &record.result.reason;
    for part in [
        "dead-lock: ",
        "ones waits for room on ones.out → both.a (2 of 2)",
        "both waits for a message on silent.out → both.b",
        "silent waits for something that can never come",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!((record.result.exit_status, record.edges[0].unread), (1, 2));
}

/// Takes one message per millisecond.
#[derive(Default)]
struct Slow {
    input: Input<u64>,
    got: Arc<Mutex<Vec<u64>>>,
    next_ns: u64,
}

impl Operator for Slow {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if cx.now_ns() >= self.next_ns
            && let Some(n) = self.input.pop(cx)
        {
            self.got.lock().unwrap().push(n);
            self.next_ns = cx.now_ns() + 1_000_000;
        }
        Ok(if self.input.is_ended(cx) { Step::Done } else { cx.until(self.next_ns) })
    }
}

#[test]
fn each_kind_of_full_edge_does_what_it_says() {
    for (when_full, received, dropped) in [
        (WhenFull::Wait, vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 0),
        (WhenFull::DropNewest, vec![0, 1, 2, 3], 6),
        (WhenFull::DropOldest, vec![0, 7, 8, 9], 6),
        (WhenFull::Latest, vec![0, 9], 8),
    ] {
        let got = Arc::new(Mutex::new(Vec::new()));
        let mut graph = Graph::new("full");
        let mut n = 0;
        let numbers = graph.source("numbers", move || {
            n += 1;
            (n <= 10).then_some(n - 1)
        });
        let slow = graph.add("slow", Slow { got: Arc::clone(&got), ..Slow::default() });
        let _ = graph.connect(numbers, |s| &s.out, slow, |s| &s.input).capacity(3).when_full(when_full);
        let record =
            watched(move || graph.run(&Options { clock: ClockKind::Manual, ..Options::default() })).unwrap();
        assert_eq!(*got.lock().unwrap(), received, "{when_full}");
        let edge = &record.edges[0];
        assert_eq!(
            (edge.sent, edge.received, edge.dropped),
            (10, received.len() as u64, dropped),
            "{when_full}"
        );
        assert_eq!(
            (edge.unread, record.result.exit_status),
            (0, 0),
            "a chosen drop does not count as a loss"
        );
    }
}

#[test]
fn a_full_edge_may_be_an_error() {
    let mut graph = Graph::new("full");
    let numbers = graph.source("numbers", || Some(1u64));
    let slow = graph.add("slow", Slow::default());
    let _ = graph.connect(numbers, |s| &s.out, slow, |s| &s.input).capacity(3).when_full(WhenFull::Error);
    let result = watched(move || graph.run(&Options { clock: ClockKind::Manual, ..Options::default() }));
    let Err(RunError::Failed(record)) = result else { panic!("{result:?}") };
    assert!(record.result.reason.contains("`numbers`: the edge numbers.out → slow.in is full"), "{record:?}");
}
