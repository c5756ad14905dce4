//! Operators without which a run goes on.

use super::{Came, Fail, Shaky, line, soon, ways};
use crate::watchdog::watched;
use onbeat_runtime::{Graph, OnError, Options, Restart, Then};
use onbeat_trace::record::{FaultAction, OperatorState, Outcome};
use std::sync::Arc;

/// numbers → (shaky → end, other)
fn fork(count: u64, shaky: Shaky) -> (Graph, onbeat_runtime::Handle<Shaky>, [Came; 2]) {
    let came = [Came::default(), Came::default()];
    let (first, second) = (Arc::clone(&came[0]), Arc::clone(&came[1]));
    let mut graph = Graph::new("fork");
    let mut next = 0..count;
    let numbers = graph.source("numbers", move || next.next());
    let shaky = graph.add("shaky", shaky);
    let end = graph.sink("end", move |n: u64| first.lock().unwrap().push(n));
    let other = graph.sink("other", move |n: u64| second.lock().unwrap().push(n));
    graph.connect(numbers, |s| &s.out, shaky, |s| &s.input);
    graph.connect(shaky, |s| &s.out, end, |e| &e.input);
    graph.connect(numbers, |s| &s.out, other, |o| &o.input);
    (graph, shaky, came)
}

#[test]
fn the_other_branch_gets_everything() {
    watched(60, || {
        for (way, options) in ways() {
            for how in [Fail::Taken, Fail::Panic, Fail::Before] {
                let shaky = Shaky::new(how, &[20]);
                let told = Arc::clone(&shaky.told);
                let (mut graph, shaky, [came, other]) = fork(500, shaky);
                graph.on_error(shaky, OnError::Isolate);
                let record = graph.run(&options).unwrap();
                assert_eq!(*came.lock().unwrap(), (0..20).collect::<Vec<_>>(), "{way}, {how:?}");
                assert_eq!(*other.lock().unwrap(), (0..500).collect::<Vec<_>>(), "{way}, {how:?}");
                let state = |name| record.operators.iter().find(|op| op.name == name).unwrap().state;
                assert_eq!((state("shaky"), state("end")), (OperatorState::Isolated, OperatorState::Done));
                assert_eq!((record.result.outcome, record.result.exit_status), (Outcome::Ended, 0));
                assert_eq!(record.faults[0].then, FaultAction::Isolated);
                assert!(record.result.reason.ends_with("; without `shaky`, which failed"), "{way}");
                assert_eq!(*told.lock().unwrap(), ["start", "failed"], "{way}, {how:?}");
                // Messages that were sent to it and not read are counted.
                let edge = record.edges.iter().find(|edge| edge.to == "shaky.in").unwrap();
                assert_eq!(edge.sent, edge.received + edge.unread, "{way}, {how:?}");
                assert!(edge.unread > 400, "{way}, {how:?}: {edge:?}");
            }
        }
    });
}

#[test]
fn who_sends_to_it_alone_ends_as_well() {
    watched(30, || {
        for (way, options) in ways() {
            let (mut graph, shaky, came) = line(u64::MAX, Shaky::new(Fail::Taken, &[9]));
            graph.on_error(shaky, OnError::Isolate);
            let record = graph.run(&options).unwrap();
            assert_eq!(*came.lock().unwrap(), (0..9).collect::<Vec<_>>(), "{way}");
            assert_eq!(record.result.outcome, Outcome::Ended, "{way}");
        }
    });
}

#[test]
fn restarts_that_do_not_help_end_in_what_was_said() {
    watched(30, || {
        for (way, options) in ways() {
            for then in [Then::Isolate, Then::Stop] {
                let (mut graph, shaky, [_, other]) = fork(300, Shaky::new(Fail::Before, &[7; 10]));
                let restart = Restart { limit: 3, delay_ns: 1, then, ..soon() };
                graph.on_error(shaky, OnError::Restart(restart));
                let result = graph.run(&options);
                let record = match (then, result) {
                    (Then::Isolate, Ok(record)) => {
                        assert_eq!(other.lock().unwrap().len(), 300, "{way}");
                        record
                    }
                    (Then::Stop, Err(onbeat_runtime::RunError::Failed(record))) => {
                        assert_eq!(record.result.reason, "operator `shaky`: not yet", "{way}");
                        *record
                    }
                    (then, result) => panic!("{way}, {then:?}: {result:?}"),
                };
                let thens: Vec<FaultAction> = record.faults.iter().map(|fault| fault.then).collect();
                let last = if then == Then::Stop { FaultAction::Stopped } else { FaultAction::Isolated };
                let again = FaultAction::Restarted;
                assert_eq!(thens, [again, again, again, last], "{way}, {then:?}");
            }
        }
    });
}

#[test]
fn without_a_word_a_failure_ends_the_run() {
    let (graph, _, _) = line(10, Shaky::new(Fail::Panic, &[4]));
    let error = graph.run(&Options::default()).unwrap_err().to_string();
    assert_eq!(error, "operator `shaky`: panicked: cannot do 4");
}
