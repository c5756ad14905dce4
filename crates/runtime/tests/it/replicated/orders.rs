//! Orders to a run from outside.

use super::*;
use std::time::{Duration, Instant};

/// Returns when `count` messages have been taken, or panics after a while.
fn until(taken: &Taken, count: usize) {
    let begin = Instant::now();
    while taken.lock().unwrap().len() < count {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "it does not go on: {}",
            taken.lock().unwrap().len()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_stop_leaves_no_gap() {
    watched(120, || {
        for ends in [Ends::Copies, Ends::Turns, Ends::Rest] {
            for round in 0..5 {
                let (graph, taken) = chain(ends, None, &[Does::AddsOne { rounds: 300 }; 3], 4);
                let run = graph.start(&replicated(2 + round % 2)).unwrap();
                until(&taken, 100 * round);
                run.stop();
                let record = run.wait().unwrap();
                assert_eq!(
                    (record.result.outcome.to_string(), record.result.lost),
                    ("stopped".to_string(), 0)
                );
                // Those who share numbers have some each when they are told to stop.
                if ends != Ends::Copies {
                    check(&format!("{ends:?}, round {round}"), ends, 3, &taken);
                }
            }
        }
    });
}

#[test]
fn a_pause_is_one() {
    watched(120, || {
        for ends in [Ends::Copies, Ends::Turns, Ends::Rest] {
            let (graph, taken) = chain(ends, None, &[Does::AddsOne { rounds: 300 }; 2], 4);
            let run = graph.start(&replicated(2)).unwrap();
            until(&taken, 50);
            for operator in [None, Some("count"), Some("work1"), Some("sink")] {
                match operator {
                    None => run.pause().unwrap(),
                    Some(operator) => run.pause_operator(operator).unwrap(),
                }
                std::thread::sleep(Duration::from_millis(30));
                let before = taken.lock().unwrap().len();
                std::thread::sleep(Duration::from_millis(30));
                assert_eq!(taken.lock().unwrap().len(), before, "{ends:?}, {operator:?}");
                match operator {
                    None => run.resume().unwrap(),
                    Some(operator) => run.resume_operator(operator).unwrap(),
                }
                until(&taken, before + 50);
            }
            run.stop();
            run.wait().unwrap();
            if ends != Ends::Copies {
                check("paused", ends, 2, &taken);
            }
        }
    });
}

#[test]
fn a_parameter_reaches_all() {
    watched(60, || {
        for ends in [Ends::Copies, Ends::Turns, Ends::Rest] {
            let (graph, taken) = chain(ends, None, &[Does::AddsOne { rounds: 300 }; 2], 4);
            let run = graph.start(&replicated(3)).unwrap();
            until(&taken, 50);
            run.set("work0", "add", 1_000_000_000i64, None).unwrap();
            let error = run.set("work0", "mul", 3i64, None).unwrap_err().to_string();
            assert!(error.contains("no parameter `mul`"), "{error}");
            // All messages that were in flight have come out by then.
            let now = taken.lock().unwrap().len();
            until(&taken, now + 500);
            run.stop();
            let record = run.wait().unwrap();
            assert_eq!(record.changes.len(), 1, "told once: {:?}", record.changes);
            let taken = taken.lock().unwrap();
            assert!(taken[now + 300..].iter().all(|(number, ..)| *number > 1_000_000_000));
        }
    });
}

#[test]
fn status_tells_of_one_operator() {
    watched(60, || {
        let (graph, taken) = chain(Ends::Turns, None, &[Does::AddsOne { rounds: 300 }; 2], 4);
        let run = graph.start(&replicated(2)).unwrap();
        until(&taken, 50);
        let status = run.status();
        let names: Vec<&str> = status.operators.iter().map(|operator| operator.name.as_str()).collect();
        assert_eq!(names, ["count", "work0", "work1", "sink"]);
        assert!(status.operators[1].steps >= 50);
        assert_eq!(status.edges.len(), 3);
        run.stop_operator("count").unwrap();
        let record = run.wait().unwrap();
        assert_eq!(record.result.lost, 0);
        check("ended from outside", Ends::Turns, 2, &taken);
    });
}

/// Nothing grows: chunk stores and queues are as the plan has them.
#[test]
fn a_duration_ends_it() {
    watched(60, || {
        for ends in [Ends::Copies, Ends::Turns, Ends::Rest] {
            let (graph, _) = chain(ends, None, &[Does::AddsOne { rounds: 300 }; 2], 4);
            let record = graph.run(&Options { duration_ns: Some(100_000_000), ..replicated(2) }).unwrap();
            assert_eq!((record.result.outcome.to_string(), record.result.lost), ("stopped".to_string(), 0));
        }
    });
}
