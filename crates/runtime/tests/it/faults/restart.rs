//! Operators that are restarted.

use super::{Came, Fail, Shaky, line, soon, ways};
use crate::splitmix::Random;
use crate::watchdog::watched;
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{
    Chunk, Condition, Context, Ending, Error, Graph, Input, Kernel, OnError, Operator, Options, Output,
    Ports, Progress, Readiness, Restart, Step, Stream, View, When,
};
use onbeat_trace::record::{FaultAction, FaultKind, OperatorState, Outcome};
use std::sync::{Arc, Mutex};

#[test]
fn the_run_goes_on_and_loses_what_the_step_had_taken() {
    watched(60, || {
        for (way, options) in ways() {
            for (how, kind, lost) in [
                (Fail::Taken, FaultKind::Error, &[3, 7][..]),
                (Fail::Panic, FaultKind::Panic, &[3, 7]),
                (Fail::Sent, FaultKind::Error, &[]),
                (Fail::Before, FaultKind::Error, &[]),
            ] {
                let (mut graph, shaky, came) = line(100, Shaky::new(how, &[3, 7]));
                graph.on_error(shaky, OnError::Restart(soon()));
                let record = graph.run(&options).unwrap();
                let expected: Vec<u64> = (0..100).filter(|n| !lost.contains(n)).collect();
                assert_eq!(*came.lock().unwrap(), expected, "{way}, {how:?}");
                let operator = record.operators.iter().find(|operator| operator.name == "shaky").unwrap();
                assert_eq!((operator.restarts, operator.state), (2, OperatorState::Done), "{way}, {how:?}");
                assert_eq!((record.result.outcome, record.result.exit_status), (Outcome::Ended, 0));
                assert_eq!((record.faults_total, record.faults.len()), (2, 2), "{way}, {how:?}");
                for fault in &record.faults {
                    assert_eq!(fault.operator.as_deref(), Some("shaky"));
                    assert_eq!((fault.what, fault.then), (kind, FaultAction::Restarted));
                }
            }
        }
    });
}

#[test]
fn it_is_stopped_as_failed_and_started_each_time() {
    let shaky = Shaky::new(Fail::Panic, &[1, 2]);
    let told = Arc::clone(&shaky.told);
    let (mut graph, handle, _) = line(5, shaky);
    graph.on_error(handle, OnError::Restart(soon()));
    graph.run(&Options::default()).unwrap();
    assert_eq!(*told.lock().unwrap(), ["start", "failed", "start", "failed", "start", "ended"]);
}

#[test]
fn the_last_message_and_the_only_one_may_fail() {
    watched(30, || {
        for (way, options) in ways() {
            for count in [1, 2, 9] {
                for how in [Fail::Taken, Fail::Before] {
                    let (mut graph, shaky, came) = line(count, Shaky::new(how, &[count - 1]));
                    graph.on_error(shaky, OnError::Restart(soon()));
                    let record = graph.run(&options).unwrap();
                    let left = count - u64::from(how == Fail::Taken);
                    assert_eq!(came.lock().unwrap().len() as u64, left, "{way}, {count}, {how:?}");
                    assert_eq!(record.result.outcome, Outcome::Ended, "{way}, {count}, {how:?}");
                }
            }
        }
    });
}

/// Counts, and fails after it has sent its third number.
struct Source(Output<u64>, u64);

impl Operator for Source {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.0);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.1 += 1;
        self.0.push(cx, self.1)?;
        match self.1 {
            3 => Err(Error::new("a hiccup")),
            6.. => Ok(Step::Done),
            _ => Ok(Step::Again),
        }
    }
}

#[test]
fn a_source_gets_its_turn_back() {
    watched(30, || {
        for (way, options) in ways() {
            let mut graph = Graph::new("hiccup");
            let came = Came::default();
            let list = Arc::clone(&came);
            let source = graph.add("source", Source(Output::default(), 0));
            let end = graph.sink("end", move |n: u64| list.lock().unwrap().push(n));
            graph.connect(source, |s| &s.0, end, |e| &e.input);
            graph.on_error(source, OnError::Restart(soon()));
            let record = graph.run(&options).unwrap();
            assert_eq!(*came.lock().unwrap(), [1, 2, 3, 4, 5, 6], "{way}");
            assert_eq!(record.faults[0].text, "a hiccup");
        }
    });
}

/// Adds pairs; fails at every third one. Keeps what it had when it asked to be stepped again.
#[derive(Default)]
struct Pairs {
    left: Input<u64>,
    right: Input<u64>,
    out: Output<u64>,
    steps: u64,
}

impl Operator for Pairs {
    fn ports(&mut self, p: &mut Ports) {
        p.input("left", &mut self.left);
        p.input("right", &mut self.right);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.steps += 1;
        if self.steps.is_multiple_of(2) {
            assert!(!self.steps.is_multiple_of(6), "in a step that it had asked for");
            return Ok(Step::Wait);
        }
        if let (Some(left), Some(right)) = (self.left.pop(cx), self.right.pop(cx)) {
            self.out.push(cx, 1000 * left + right)?;
        }
        Ok(Step::Again)
    }
}

#[test]
fn joined_inputs_stay_joined() {
    watched(30, || {
        for (way, options) in ways() {
            let mut graph = Graph::new("pairs");
            let came = Came::default();
            let list = Arc::clone(&came);
            let (mut left, mut right) = (0..50u64, 0..50u64);
            let left = graph.source("left", move || left.next());
            let right = graph.source("right", move || right.next());
            let pairs = graph.add("pairs", Pairs::default());
            let end = graph.sink("end", move |n: u64| list.lock().unwrap().push(n));
            graph.connect(left, |s| &s.out, pairs, |p| &p.left);
            graph.connect(right, |s| &s.out, pairs, |p| &p.right);
            graph.connect(pairs, |p| &p.out, end, |e| &e.input);
            graph.on_error(pairs, OnError::Restart(Restart { limit: 100, delay_ns: 1, ..soon() }));
            let record = graph.run(&options).unwrap();
            let expected: Vec<u64> = (0..50).map(|n| 1001 * n).collect();
            assert_eq!(*came.lock().unwrap(), expected, "{way}");
            assert!(record.faults_total > 10, "{way}: {}", record.faults_total);
        }
    });
}

/// Doubles each sample; panics at the sample 50.
struct Doubles {
    last: f32,
}

impl Kernel for Doubles {
    type In = f32;
    type Out = f32;
    fn start(&mut self, _: f64) -> Result<(), Error> {
        self.last = 0.0;
        Ok(())
    }
    fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
        for (input, output) in input.iter().zip(output.iter_mut()) {
            assert!(*input != 50.0, "fifty");
            *output = input + self.last;
            self.last = *input;
        }
        let done = input.len().min(output.len());
        Progress { consumed: done, produced: done }
    }
}

#[test]
fn a_stream_goes_on_at_the_instant_of_its_next_sample() {
    let samples: Vec<f32> = (0..100u8).map(f32::from).collect();
    let seen = Trial::new(Stream::new(Doubles { last: 0.0 }))
        .on_error(OnError::Restart(soon()))
        .feed("in", Feed::samples(samples).cut(&[20]))
        .run();
    assert_eq!(seen.record().faults_total, 1);
    // The third chunk is lost; the stream shows the gap.
    let starts: Vec<u64> = seen.pieces("out").iter().map(|piece| piece.start).collect();
    assert_eq!(starts, [0, 20, 60, 80]);
}

/// Lets everything through, but panics at the question number 3.
struct Touchy(u32);

impl Condition for Touchy {
    fn check(&mut self, _: &View<'_>) -> Result<Readiness, Error> {
        self.0 += 1;
        assert!(self.0 != 3, "do not ask");
        Ok(Readiness::Holds)
    }
    fn describe(&self) -> String {
        "a good mood".to_string()
    }
}

#[test]
fn conditions_that_panic_are_there_afterwards() {
    for (way, options) in ways() {
        let (mut graph, shaky, came) = line(10, Shaky::new(Fail::Taken, &[]));
        graph.on_error(shaky, OnError::Restart(soon()));
        graph.when(shaky, When::own(Touchy(0)));
        graph.when(shaky, When::count(6));
        let record = graph.run(&options).unwrap();
        assert_eq!(*came.lock().unwrap(), [0, 1, 2, 3, 4, 5], "{way}");
        assert_eq!(record.faults[0].text, "one of its conditions panicked: do not ask", "{way}");
    }
}

/// Everything fails now and then, and nothing is lost but what is said.
#[test]
fn any_number_of_failures_anywhere() {
    watched(100, || {
        let mut random = Random(7);
        for (way, options) in ways() {
            for _ in 0..4 {
                let (count, length) = (200 + random.below(500), 1 + random.below(6) as usize);
                let mut graph = Graph::new("long");
                let came = Came::default();
                let list = Arc::clone(&came);
                let mut next = 0..count;
                let numbers = graph.source("numbers", move || next.next());
                let mut lost = vec![];
                let mut before = None;
                for place in 0..length {
                    let how = [Fail::Taken, Fail::Panic, Fail::Sent][random.below(3) as usize];
                    let at: Vec<u64> = (0..random.below(9)).map(|_| random.below(count)).collect();
                    let shaky = graph.add(format!("shaky{place}"), Shaky::new(how, &at));
                    let on_error = Restart { limit: 1000, delay_ns: 1 + random.below(3000), ..soon() };
                    graph.on_error(shaky, OnError::Restart(Restart { within_ns: 1, ..on_error }));
                    match before.replace(shaky) {
                        None => graph.connect(numbers, |s| &s.out, shaky, |s| &s.input),
                        Some(before) => graph.connect(before, |s| &s.out, shaky, |s| &s.input),
                    };
                    if how != Fail::Sent {
                        lost.extend(at);
                    }
                }
                let end = graph.sink("end", move |n: u64| list.lock().unwrap().push(n));
                graph.connect(before.unwrap(), |s| &s.out, end, |e| &e.input);
                let record = graph.run(&options).unwrap();
                let expected: Vec<u64> = (0..count).filter(|n| !lost.contains(n)).collect();
                assert_eq!(*came.lock().unwrap(), expected, "{way}, {length} of {count}");
                assert_eq!(record.result.outcome, Outcome::Ended);
            }
        }
    });
}

/// An operator that cannot be restarted.
#[derive(Default)]
struct Once(Input<u64>);

impl Operator for Once {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.0);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        while self.0.pop(cx).is_some() {}
        Ok(Step::Wait)
    }
    fn restartable(&self) -> Result<(), Error> {
        Err(Error::new("its tape would be wound back"))
    }
}

#[test]
fn who_cannot_be_started_anew_says_so_before_the_run() {
    let mut graph = Graph::new("once");
    let numbers = graph.source("numbers", || Some(1u64));
    let once = graph.add("once", Once::default());
    graph.connect(numbers, |s| &s.out, once, |o| &o.0);
    graph.on_error(once, OnError::Restart(soon()));
    assert_eq!(
        graph.plan(&Options::default()).unwrap_err().to_string(),
        "`on_error` of operator `once`: it cannot be started again: its tape would be wound back"
    );
}

/// Fails once in a step, and then as often as told in its restart.
struct Stubborn {
    input: Input<u64>,
    restarts: u32,
    log: Arc<Mutex<Vec<String>>>,
}

impl Operator for Stubborn {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.input.pop(cx) {
            Some(0) => Err(Error::new("zero")),
            _ => Ok(Step::Wait),
        }
    }
    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        self.restarts -= 1;
        self.log.lock().unwrap().push(format!("{} to go", self.restarts));
        assert!(self.restarts != 1, "even worse");
        if self.restarts > 0 { Err(Error::new("still not")) } else { Ok(()) }
    }
    fn stop(&mut self, _: &mut Context, ending: Ending) -> Result<(), Error> {
        self.log.lock().unwrap().push(format!("{ending:?}"));
        Ok(())
    }
}

#[test]
fn a_restart_that_fails_counts_as_one_more_failure() {
    for (way, options) in ways() {
        let log = Arc::default();
        let mut graph = Graph::new("stubborn");
        let mut next = 0..5u64;
        let numbers = graph.source("numbers", move || next.next());
        let (input, own) = (Input::default(), Arc::clone(&log));
        let stubborn = graph.add("stubborn", Stubborn { input, restarts: 3, log: own });
        graph.connect(numbers, |s| &s.out, stubborn, |s| &s.input);
        graph.on_error(stubborn, OnError::Restart(soon()));
        let record = graph.run(&options).unwrap();
        let texts: Vec<&str> = record.faults.iter().map(|fault| fault.text.as_str()).collect();
        assert_eq!(texts, ["zero", "cannot restart: still not", "panicked: even worse"], "{way}");
        assert_eq!(*log.lock().unwrap(), ["2 to go", "1 to go", "0 to go", "Ended"], "{way}");
        assert_eq!((record.edges[0].received, record.operators[1].restarts), (5, 1), "{way}");
    }
}

/// Chunks that an operator holds go back to their store when it is restarted.
#[test]
fn chunks_of_failed_steps_go_home() {
    struct Chunks(Output<Chunk<f32>>, u32);
    impl Operator for Chunks {
        fn ports(&mut self, p: &mut Ports) {
            p.output("out", &mut self.0);
        }
        fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
            let Some(chunk) = self.0.chunk(cx) else { return Ok(Step::Wait) };
            self.1 += 1;
            assert!(!self.1.is_multiple_of(2), "with a chunk in hand");
            self.0.push(cx, chunk)?;
            Ok(if self.1 > 200 { Step::Done } else { Step::Again })
        }
    }
    watched(30, || {
        for (way, options) in ways() {
            let mut graph = Graph::new("chunks");
            let chunks = graph.add("chunks", Chunks(Output::default(), 0));
            let end = graph.sink("end", |_: Chunk<f32>| ());
            graph.connect(chunks, |c| &c.0, end, |e| &e.input);
            let often = Restart { limit: 1000, delay_ns: 1, within_ns: 1, ..soon() };
            graph.on_error(chunks, OnError::Restart(often));
            let record = graph.run(&options).unwrap();
            assert_eq!((record.faults_total, record.edges[0].received), (100, 101), "{way}");
        }
    });
}
