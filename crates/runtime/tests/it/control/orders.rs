//! Orders: who gets them, who does not, and what comes of an operator that is stopped.

use super::{line, until, ways};
use crate::watchdog::watched;
use onbeat_runtime::{Activity, Graph, Options, OrderError};
use onbeat_trace::record::{OperatorState, Outcome};
use std::time::Duration;

#[test]
fn an_operator_that_is_stopped_ends_what_feeds_only_it_and_what_lives_of_it() {
    watched(60, || {
        for (name, options) in ways() {
            for stopped in ["numbers", "double", "end"] {
                let (graph, line) = line();
                let run = graph.start(&options).unwrap();
                until(&run, |status| status.edges[1].sent > 0);
                run.stop_operator(stopped).unwrap();
                let record = run.wait().unwrap();
                let what = format!("{name}, {stopped}");
                assert_eq!((record.result.outcome, record.result.exit_status), (Outcome::Ended, 0), "{what}");
                assert!(
                    record.operators.iter().all(|operator| operator.state == OperatorState::Done),
                    "{what}"
                );
                let came = line.came.lock().unwrap();
                assert_eq!(came.len() as u64, record.edges[1].received, "{what}");
                assert!(came.iter().zip(0u64..).all(|(&n, number)| n == 2 * number), "{what}");
                let unread: Vec<u64> = record.edges.iter().map(|edge| edge.sent - edge.received).collect();
                assert_eq!(unread, record.edges.iter().map(|edge| edge.unread).collect::<Vec<_>>(), "{what}");
                match stopped {
                    "numbers" => assert_eq!(unread, [0, 0], "{what}: all messages are processed"),
                    "double" => {
                        assert_eq!(unread[1], 0, "{what}: the operator after it processes what it has sent");
                    }
                    _ => {}
                }
            }
        }
    });
}

/// One of two branches ends, and the other goes on.
#[test]
fn others_go_on_without_it() {
    watched(60, || {
        for (name, options) in ways() {
            let mut graph = Graph::new("two branches");
            let numbers = graph.source("numbers", || Some(1u64));
            let left = graph.sink("left", |_: u64| ());
            let right = graph.sink("right", |_: u64| ());
            graph.connect(numbers, |s| &s.out, left, |e| &e.input);
            graph.connect(numbers, |s| &s.out, right, |e| &e.input);
            let run = graph.start(&options).unwrap();
            // One that is paused may be stopped too.
            run.pause_operator("left").unwrap();
            until(&run, |status| status.operators[0].state == Activity::Waiting);
            run.stop_operator("left").unwrap();
            let before = run.status();
            assert_eq!(before.operators[1].state, Activity::Done, "{name}");
            until(&run, |status| status.operators[2].steps > before.operators[2].steps + 100);
            for order in [run.stop_operator("left"), run.pause_operator("left"), run.resume_operator("left")]
            {
                assert_eq!(order.unwrap_err().to_string(), "operator `left` has ended", "{name}");
            }
            run.stop();
            let record = run.wait().unwrap();
            assert_eq!(record.result.exit_status, 0, "{name}");
            assert_eq!(record.edges[1].unread, 0, "{name}");
        }
    });
}

#[test]
fn orders_that_cannot_be_carried_out_say_why() {
    watched(60, || {
        for (name, options) in ways() {
            let run = line().0.start(&options).unwrap();
            let unknown = run.pause_operator("duble").unwrap_err();
            assert_eq!(unknown.to_string(), "there is no operator `duble`: did you mean `double`?", "{name}");
            assert!(matches!(unknown, OrderError::UnknownOperator { .. }));
            let handle = run.handle();
            run.stop();
            run.wait().unwrap();
            let orders = [
                handle.pause(),
                handle.resume(),
                handle.pause_operator("end"),
                handle.resume_operator("end"),
                handle.stop_operator("end"),
            ];
            for order in orders {
                assert_eq!(order.unwrap_err().to_string(), "the run has ended", "{name}");
            }
        }
    });
}

/// Before the first step, and while operators are started.
#[test]
fn orders_may_come_at_any_time() {
    watched(60, || {
        for round in 0..40 {
            for (name, options) in ways() {
                let (graph, line) = line();
                let run = graph.start(&options).unwrap();
                if round % 2 == 0 {
                    run.pause_operator("numbers").unwrap();
                    run.stop_operator("numbers").unwrap();
                } else {
                    run.pause().unwrap();
                    run.stop();
                }
                run.wait().unwrap();
                line.check(&name);
            }
        }
    });
}

/// A worker that is in a long step carries its orders out later, and does not hold the others up.
#[test]
fn a_long_step_delays_its_own_worker_only() {
    watched(60, || {
        let mut graph = Graph::new("slow");
        let numbers = graph.source("numbers", || Some(1u64));
        let slow = graph.sink("slow", |_: u64| std::thread::sleep(Duration::from_millis(300)));
        graph.connect(numbers, |s| &s.out, slow, |e| &e.input);
        let run = graph
            .start(&Options {
                scheduler: onbeat_runtime::Scheduler::Pinned,
                workers: Some(2),
                ..Options::default()
            })
            .unwrap();
        until(&run, |status| status.operators[0].state == Activity::Waiting);
        run.pause_operator("numbers").unwrap();
        assert_eq!(run.status().operators[0].state, Activity::Paused);
        run.pause_operator("slow").unwrap();
        run.stop();
        run.wait().unwrap();
    });
}
