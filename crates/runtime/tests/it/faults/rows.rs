//! Times at which operators are restarted, exact because the clock is virtual.

use super::{Fail, Shaky, line, soon, ways};
use crate::watchdog::watched;
use onbeat_runtime::{Activity, ClockKind, Graph, OnError, Options, Restart};
use onbeat_trace::record::Outcome;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

/// Times of failures, in ms; one of `times` (in ms) each comes a number for it to fail at.
fn times(restart: Restart, at: &[u64], spacing_ms: u64) -> Vec<u64> {
    let (mut graph, came) = (Graph::new("times"), super::Came::default());
    let mut next = 0..20u64;
    let numbers = graph.source("numbers", move || next.next());
    let period = onbeat_runtime::When::period_ns(spacing_ms * MS, onbeat_runtime::Overrun::default());
    graph.when(numbers, period);
    let shaky = graph.add("shaky", Shaky::new(Fail::Before, at));
    let end = graph.sink("end", move |n: u64| came.lock().unwrap().push(n));
    graph.connect(numbers, |s| &s.out, shaky, |s| &s.input);
    graph.connect(shaky, |s| &s.out, end, |e| &e.input);
    graph.on_error(shaky, OnError::Restart(restart));
    let record = graph.run(&Options { clock: ClockKind::Manual, ..Options::default() }).unwrap();
    assert_eq!(record.edges[1].received, 20);
    record.faults.iter().map(|fault| fault.time_ns / MS).collect()
}

#[test]
fn each_failure_of_a_row_waits_twice_as_long_as_the_one_before() {
    let restart = Restart { delay_ns: 10 * MS, within_ns: 1000 * MS, ..soon() };
    let found = times(restart, &[0; 4], 1);
    let first = found[0];
    assert_eq!(found, [first, first + 10, first + 30, first + 70]);
}

#[test]
fn a_row_ends_when_all_was_well_for_long_enough() {
    // Two numbers that fail once each, 100 ms apart.
    let restart = Restart { limit: 1, delay_ns: 10 * MS, within_ns: 50 * MS, ..soon() };
    let found = times(restart, &[0, 1], 100);
    assert_eq!(found[1] - found[0], 100);
}

#[test]
fn a_run_that_stops_does_not_wait_for_restarts() {
    watched(60, || {
        for (way, options) in ways() {
            // In virtual time an hour is nothing.
            if options.clock == ClockKind::Manual {
                continue;
            }
            let (mut graph, shaky, came) = line(u64::MAX, Shaky::new(Fail::Before, &[5]));
            graph.on_error(shaky, OnError::Restart(Restart { delay_ns: 3_600_000 * MS, ..soon() }));
            let run = graph.start(&options).unwrap();
            let begin = Instant::now();
            while run.status().operators.iter().all(|it| it.state != Activity::Restarting) {
                assert!(begin.elapsed() < Duration::from_secs(20), "{way}: {:?}", run.status());
            }
            run.stop();
            let record = run.wait().unwrap();
            assert_eq!(record.result.outcome, Outcome::Stopped, "{way}");
            // Messages that waited for it were processed.
            let came = came.lock().unwrap();
            assert!(came.len() > 5 && record.edges.iter().all(|edge| edge.unread == 0), "{way}: {record:?}");
        }
    });
}

#[test]
fn a_pause_holds_restarts_back() {
    watched(60, || {
        for (way, options) in ways() {
            if options.clock == ClockKind::Manual {
                continue;
            }
            let (mut graph, shaky, _) = line(u64::MAX, Shaky::new(Fail::Before, &[5]));
            graph.on_error(shaky, OnError::Restart(Restart { delay_ns: 50 * MS, ..soon() }));
            let run = graph.start(&options).unwrap();
            let state = || run.status().operators.into_iter().find(|it| it.name == "shaky").unwrap().state;
            while state() != Activity::Restarting {
                std::thread::yield_now();
            }
            run.pause_operator("shaky").unwrap();
            std::thread::sleep(Duration::from_millis(80));
            assert_eq!(state(), Activity::Paused, "{way}");
            run.resume_operator("shaky").unwrap();
            while matches!(state(), Activity::Paused | Activity::Restarting) {
                std::thread::yield_now();
            }
            run.stop();
            let record = run.wait().unwrap();
            let operator = record.operators.iter().find(|it| it.name == "shaky").unwrap();
            assert_eq!(operator.restarts, 1, "{way}");
        }
    });
}
