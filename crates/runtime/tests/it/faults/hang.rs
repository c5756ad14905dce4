//! Operators whose code does not return.

use super::{Came, ways};
use crate::watchdog::watched;
use onbeat_runtime::{
    Activity, Call, Context, Ending, Error, Graph, Input, OnError, OnHang, Operator, Options, Output, Ports,
    Restart, RunError, Step,
};
use onbeat_trace::Record;
use onbeat_trace::record::{FaultAction, FaultKind, OperatorState};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Does not return from one of its calls until it is let go.
struct Stuck {
    input: Input<u64>,
    out: Output<u64>,
    call: Call,
    /// At this number it gets stuck, where it is its step.
    at: u64,
    wait: Receiver<()>,
}

impl Operator for Stuck {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        if self.call == Call::Start {
            let _ = self.wait.recv();
        }
        Ok(())
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(number) = self.input.pop(cx) {
            if self.call == Call::Step && number == self.at {
                let _ = self.wait.recv();
            }
            self.out.push(cx, number)?;
        }
        Ok(Step::Wait)
    }
    fn stop(&mut self, _: &mut Context, _: Ending) -> Result<(), Error> {
        if self.call == Call::Stop {
            let _ = self.wait.recv();
        }
        Ok(())
    }
}

/// Counts, and says how it was stopped.
struct Counts(Output<u64>, u64, Arc<Mutex<Vec<Ending>>>);

impl Operator for Counts {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.0);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.0.push(cx, self.1)?;
        self.1 += 1;
        Ok(if self.1 == 100 { Step::Done } else { Step::Again })
    }
    fn stop(&mut self, _: &mut Context, ending: Ending) -> Result<(), Error> {
        self.2.lock().unwrap().push(ending);
        Ok(())
    }
}

struct Line {
    graph: Graph,
    /// Dropped, it lets the one in the middle go.
    go: Sender<()>,
    came: Came,
    endings: Arc<Mutex<Vec<Ending>>>,
}

/// numbers (0 to 99) → stuck → end
fn line(call: Call) -> Line {
    let (go, wait) = mpsc::channel();
    let (came, endings) = (Came::default(), Arc::default());
    let mut graph = Graph::new("line");
    let numbers = graph.add("numbers", Counts(Output::default(), 0, Arc::clone(&endings)));
    let (input, out) = Default::default();
    let stuck = graph.add("stuck", Stuck { input, out, call, at: 7, wait });
    let list = Arc::clone(&came);
    let end = graph.sink("end", move |n: u64| list.lock().unwrap().push(n));
    graph.connect(numbers, |n| &n.0, stuck, |s| &s.input);
    graph.connect(stuck, |s| &s.out, end, |e| &e.input);
    Line { graph, go, came, endings }
}

fn limited(options: &Options, on_hang: OnHang) -> Options {
    Options { watchdog_ns: Some(60_000_000), on_hang, ..options.clone() }
}

fn failed(result: Result<Record, RunError>, way: &str) -> Record {
    match result {
        Err(RunError::Failed(record)) => *record,
        other => panic!("{way}: {other:?}"),
    }
}

#[test]
fn the_run_ends_without_it() {
    watched(100, || {
        for (way, options) in ways() {
            for call in [Call::Start, Call::Step, Call::Stop] {
                let what = format!("{way}, {call:?}");
                let Line { graph, go, endings, .. } = line(call);
                let run = graph.start(&limited(&options, OnHang::Stop)).unwrap();
                let (tell, told) = mpsc::channel();
                run.on_hang(move |hang| tell.send(hang.clone()).unwrap());
                let record = failed(run.wait(), &what);
                let hang = told.recv().unwrap();
                assert_eq!((hang.operator.as_str(), hang.call), ("stuck", call), "{what}");
                // Names are whole or short, as the build has them; the place is there in any case.
                assert!(hang.stack.iter().any(|it| it.contains("faults/hang.rs")), "{what}: {hang}");
                // Of the engine nothing is shown.
                let is_engine = |call: &String| call.contains("worker::") || call.contains("runtime/src/");
                assert!(!hang.stack.iter().any(is_engine), "{what}: {hang}");
                let reason = &record.result.reason;
                assert!(reason.starts_with("operator `stuck`: its ") && reason.contains("not returned"));
                let fault = record.faults.iter().find(|fault| fault.what == FaultKind::Hang).unwrap();
                assert_eq!(fault.then, FaultAction::Stopped, "{what}");
                assert_eq!(fault.stack, hang.stack, "{what}");
                let names: Vec<&str> = record.operators.iter().map(|it| it.name.as_str()).collect();
                assert_eq!(names, ["numbers", "stuck", "end"], "{what}");
                assert_eq!(record.result.exit_status, 1, "{what}");
                // What lay with the thread that hangs is stopped by others that share it.
                if way.starts_with("event 2") && call == Call::Step {
                    assert_eq!(endings.lock().unwrap().len(), 1, "{what}");
                }
                let threads = record.threads.iter().filter(|it| it.purpose.contains("did not come back"));
                assert_eq!(threads.count(), 1, "{what}");
                // It comes back at last, and does no harm.
                drop(go);
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
}

#[test]
fn a_run_that_waits_goes_on_when_it_comes_back() {
    watched(100, || {
        for (way, options) in ways() {
            let Line { graph, go, came, .. } = line(Call::Step);
            let run = graph.start(&limited(&options, OnHang::Wait)).unwrap();
            while run.hangs().is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let status = run.status();
            let stuck = status.operators.iter().find(|operator| operator.name == "stuck").unwrap();
            assert_eq!(stuck.state, Activity::Hangs, "{way}");
            drop(go);
            let handle = run.handle();
            let record = run.wait().unwrap();
            assert_eq!(*came.lock().unwrap(), (0..100).collect::<Vec<_>>(), "{way}");
            assert_eq!((record.result.exit_status, record.faults_total), (0, 1), "{way}");
            assert_eq!(record.faults[0].then, FaultAction::Waited, "{way}");
            assert_eq!(handle.status().operators[0].state, Activity::Done, "{way}");
        }
    });
}

#[test]
fn who_asks_for_the_end_does_not_wait_for_it() {
    watched(100, || {
        for (way, options) in ways() {
            let Line { graph, go, .. } = line(Call::Step);
            let run = graph.start(&limited(&options, OnHang::Wait)).unwrap();
            while run.hangs().is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
            run.stop();
            let record = failed(run.wait(), &way);
            assert_eq!(record.faults_total, 2, "{way}: {:?}", record.faults);
            drop(go);
        }
    });
}

/// Fails, and gets stuck in its restart.
struct Twice(Input<u64>, Receiver<()>);

impl Operator for Twice {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.0);
    }
    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Err(Error::new("broken"))
    }
    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        let _ = self.1.recv();
        Ok(())
    }
}

#[test]
fn a_restart_may_hang_too() {
    watched(60, || {
        let (go, wait) = mpsc::channel();
        let mut graph = Graph::new("twice");
        let numbers = graph.source("numbers", || Some(1u64));
        let twice = graph.add("twice", Twice(Input::default(), wait));
        graph.connect(numbers, |s| &s.out, twice, |t| &t.0);
        graph.on_error(twice, OnError::Restart(Restart { delay_ns: 1, ..Restart::default() }));
        let record = failed(graph.run(&limited(&Options::default(), OnHang::Stop)), "greedy");
        assert!(record.result.reason.starts_with("operator `twice`: its step has not returned"));
        drop(go);
    });
}

/// Many parts on few threads: those that lay with the thread that hangs are stopped by the others.
#[test]
fn others_stop_what_a_lost_thread_had() {
    watched(60, || {
        for round in 0..20u64 {
            let (go, wait) = mpsc::channel();
            let endings: Arc<Mutex<Vec<Ending>>> = Arc::default();
            let mut graph = Graph::new("many");
            for branch in 0..8 {
                let counts = Counts(Output::default(), 0, Arc::clone(&endings));
                graph.add(format!("numbers{branch}"), counts);
                graph.sink(format!("end{branch}"), |_: u64| ());
                graph.connect_names(format!("numbers{branch}"), format!("end{branch}"));
            }
            let mut n = 0u64;
            graph.source("numbers", move || {
                n += 1;
                Some(n)
            });
            let (input, out) = Default::default();
            let stuck = Stuck { input, out, call: Call::Step, at: 1 + round, wait };
            graph.add("stuck", stuck);
            graph.sink("end", |_: u64| ());
            graph.connect_names("numbers", "stuck");
            graph.connect_names("stuck", "end");
            let (_, options) = ways().into_iter().find(|(way, _)| way.starts_with("event 2")).unwrap();
            let record = failed(graph.run(&limited(&options, OnHang::Stop)), "event 2");
            assert_eq!(endings.lock().unwrap().len(), 8, "{round}");
            let done = record.operators.iter().filter(|it| it.state == OperatorState::Done).count();
            assert!(done > 0, "{round}: {record:?}");
            drop(go);
        }
    });
}
