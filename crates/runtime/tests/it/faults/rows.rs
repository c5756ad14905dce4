//! Times at which operators are restarted, exact because the clock is virtual.

use super::{Fail, Shaky, line, soon, ways};
use crate::watchdog::watched;
use onbeat_runtime::{
    Activity, ClockKind, Context, Error, Graph, OnError, Operator, Options, Output, Overrun, Ports, Restart,
    Step, Ticker,
};
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

/// Ticks each millisecond, and fails when it is late.
struct Strict(Output<u64>, Ticker);

impl Operator for Strict {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.0);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.1.number() >= 1000 {
            return Ok(Step::Done);
        }
        if let Some(wait) = self.1.wait(cx)? {
            return Ok(wait);
        }
        self.0.push(cx, self.1.number())?;
        self.1.next(cx);
        Ok(Step::Again)
    }
}

#[test]
fn a_source_that_was_late_once_is_on_time_after_its_restart() {
    watched(60, || {
        let mut graph = Graph::new("late once");
        let ticker = Ticker::new(MS, Overrun::Stop).unwrap();
        let beat = graph.add("beat", Strict(Output::default(), ticker));
        let end = graph.sink("end", |tick: u64| {
            if tick == 10 {
                std::thread::sleep(Duration::from_millis(40));
            }
        });
        graph.connect(beat, |b| &b.0, end, |e| &e.input);
        // Another thread may make ticks late as well, but a restart ends that.
        let restart = Restart { limit: 100, ..soon() };
        graph.on_error(beat, OnError::Restart(restart));
        let record = graph.run(&Options::default()).unwrap();
        let faults: Vec<&str> = record.faults.iter().map(|fault| fault.text.as_str()).collect();
        assert!(faults.iter().any(|text| text.starts_with("tick 11 came ")), "{faults:?}");
        let ticks = |text: &&str| text.split(' ').nth(1).and_then(|tick| tick.parse::<u64>().ok());
        let late: Vec<u64> = faults.iter().filter_map(ticks).collect();
        assert!(late.windows(2).all(|pair| pair[0] < pair[1]), "none is late twice: {late:?}");
        assert_eq!(record.result.outcome, Outcome::Ended, "{faults:?}");
        assert_eq!(record.edges[0].received, record.edges[0].sent);
    });
}
