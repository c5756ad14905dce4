//! Pauses: nothing happens in them, nothing is lost by them, and they do not count.

use super::{line, until, ways};
use crate::watchdog::watched;
use onbeat_runtime::{
    Activity, ClockKind, Context, Error, Graph, Input, Operator, Options, Output, Overrun, Ports, RunState,
    Step, Ticker, When,
};
use onbeat_trace::record::Outcome;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[test]
fn a_pause_of_all_lets_everything_run_empty() {
    watched(60, || {
        for (name, options) in ways() {
            let (graph, line) = line();
            let run = graph.start(&options).unwrap();
            for _ in 0..5 {
                let before = line.made();
                until(&run, |_| line.made() > before);
                run.pause().unwrap();
                let made = line.made();
                let empty = until(&run, |status| status.edges.iter().all(|edge| edge.depth == 0));
                assert_eq!(
                    (empty.state, empty.operators[0].state),
                    (RunState::Paused, Activity::Paused),
                    "{name}"
                );
                std::thread::sleep(Duration::from_millis(2));
                assert_eq!(line.made(), made, "{name}: nothing is made in a pause");
                line.check(&name);
                // Twice is as good as once.
                run.pause().unwrap();
                run.resume().unwrap();
                run.resume().unwrap();
                assert_eq!(run.status().state, RunState::Running, "{name}");
            }
            run.stop();
            let record = run.wait().unwrap();
            assert_eq!((record.result.outcome, record.result.lost), (Outcome::Stopped, 0), "{name}");
            line.check(&name);
        }
    });
}

/// A paused operator is not a deadlock. An operator that ends meanwhile ends when it is resumed.
#[test]
fn a_run_does_not_end_while_something_is_paused() {
    watched(60, || {
        for (name, options) in ways() {
            let (graph, line) = line();
            let run = graph.start(&options).unwrap();
            run.pause_operator("double").unwrap();
            until(&run, |status| status.edges[0].depth == 4);
            line.ended.store(true, onbeat_queue::sync::atomic::Ordering::Relaxed);
            run.pause_operator("end").unwrap();
            run.resume_operator("double").unwrap();
            until(&run, |status| status.operators[0].state == Activity::Done);
            std::thread::sleep(Duration::from_millis(2));
            assert!(!run.is_finished(), "{name}");
            run.resume().unwrap();
            let record = run.wait().unwrap();
            assert_eq!((record.result.outcome, record.result.exit_status), (Outcome::Ended, 0), "{name}");
            line.check(&name);
        }
    });
}

#[test]
fn a_stop_ends_every_pause() {
    watched(60, || {
        for (name, options) in ways() {
            for paused in [&["numbers"][..], &["double"], &["end", "numbers"], &["end", "double", "numbers"]]
            {
                let (graph, line) = line();
                let run = graph.start(&options).unwrap();
                for operator in paused {
                    run.pause_operator(operator).unwrap();
                }
                run.stop();
                let record = run.wait().unwrap();
                assert_eq!(record.result.lost, 0, "{name}, {paused:?}");
                line.check(&format!("{name}, {paused:?}"));
            }
        }
    });
}

/// Writes down the due time of each tick. Without a ticker of its own it has a period as a condition.
struct Beat {
    out: Output<u64>,
    ticker: Option<Ticker>,
    number: u64,
    due_ns: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Operator for Beat {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(ticker) = &mut self.ticker {
            if let Some(wait) = ticker.wait(cx)? {
                return Ok(wait);
            }
            self.number = ticker.number();
        }
        self.due_ns.lock().unwrap().push((self.number, cx.stamp().due_ns().unwrap()));
        self.out.push(cx, self.number)?;
        self.number += 1;
        if let Some(ticker) = &mut self.ticker {
            ticker.next(cx);
        }
        Ok(Step::Again)
    }
}

/// Takes what comes.
#[derive(Default)]
struct End {
    input: Input<u64>,
}

impl Operator for End {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.input.pop(cx);
        Ok(Step::Wait)
    }
}

type Due = Arc<Mutex<Vec<(u64, u64)>>>;

fn beat(period_ns: u64, condition: bool) -> (Graph, Due) {
    let due_ns = Due::default();
    let mut graph = Graph::new("beat");
    let ticker = (!condition).then(|| Ticker::new(period_ns, Overrun::CatchUp).unwrap());
    let beat = Beat { out: Output::default(), ticker, number: 0, due_ns: Arc::clone(&due_ns) };
    let beat = graph.add("beat", beat);
    if condition {
        graph.when(beat, When::period_ns(period_ns, Overrun::CatchUp));
    }
    let end = graph.add("end", End::default());
    graph.connect(beat, |b| &b.out, end, |e| &e.input);
    (graph, due_ns)
}

/// Ticks keep their numbers, and their due times move by the length of the pause, which is between the time
/// from the end of the one call to the begin of the other and that from the begin of the one to the end of
/// the other.
#[test]
fn a_clock_stands_still_in_a_pause() {
    const PERIOD_NS: u64 = 1_000_000;
    watched(60, || {
        for (name, options) in ways().into_iter().filter(|(_, options)| options.clock == ClockKind::Real) {
            for (all, condition) in [(true, false), (false, false), (true, true), (false, true)] {
                let (graph, due_ns) = beat(PERIOD_NS, condition);
                let run = graph.start(&options).unwrap();
                until(&run, |_| due_ns.lock().unwrap().len() > 3);
                let outer = Instant::now();
                if all { run.pause() } else { run.pause_operator("beat") }.unwrap();
                let inner = Instant::now();
                let before = due_ns.lock().unwrap().len();
                std::thread::sleep(Duration::from_millis(20));
                let least = inner.elapsed();
                assert_eq!(due_ns.lock().unwrap().len(), before, "{name}: no tick in a pause");
                if all { run.resume() } else { run.resume_operator("beat") }.unwrap();
                let most = outer.elapsed();
                until(&run, |_| due_ns.lock().unwrap().len() > before + 3);
                run.stop();
                run.wait().unwrap();
                let due_ns = due_ns.lock().unwrap();
                assert!(
                    due_ns.iter().zip(0..).all(|(&(number, _), count)| number == count),
                    "{name}: none is left out"
                );
                let begin_ns = |&(number, due_ns): &(u64, u64)| due_ns - number * PERIOD_NS;
                let (first, last) = (begin_ns(&due_ns[0]), begin_ns(due_ns.last().unwrap()));
                let moved = Duration::from_nanos(last - first);
                assert!(least <= moved && moved <= most, "{name}: {least:?} <= {moved:?} <= {most:?}");
            }
        }
    });
}

/// In virtual time a pause takes no time: the ticks are the same as without it.
#[test]
fn virtual_time_does_not_pass_in_a_pause() {
    watched(60, || {
        for (name, options) in ways().into_iter().filter(|(_, options)| options.clock == ClockKind::Manual) {
            let (graph, due_ns) = beat(1_000_000, false);
            let run = graph.start(&Options { duration_ns: Some(20_000_000_000), ..options }).unwrap();
            for _ in 0..20 {
                // The run may be over before.
                let _ = run.pause();
                let count = due_ns.lock().unwrap().len();
                std::thread::sleep(Duration::from_millis(1));
                assert_eq!(due_ns.lock().unwrap().len(), count, "{name}");
                let _ = run.resume();
            }
            run.wait().unwrap();
            let due_ns = due_ns.lock().unwrap();
            assert_eq!(due_ns.len(), 20_000, "{name}");
            assert!(due_ns.iter().all(|&(number, due_ns)| due_ns == number * 1_000_000), "{name}");
        }
    });
}

/// The time of a pause of all does not count for the duration.
#[test]
fn a_duration_stands_still_with_its_sources() {
    watched(60, || {
        for (name, options) in ways().into_iter().filter(|(_, options)| options.clock == ClockKind::Real) {
            let (graph, due_ns) = beat(1_000_000, false);
            let run = graph.start(&Options { duration_ns: Some(50_000_000), ..options }).unwrap();
            if run.pause().is_err() {
                // It was over before this thread had its turn.
                continue;
            }
            let begin = Instant::now();
            std::thread::sleep(Duration::from_millis(70));
            assert!(!run.is_finished(), "{name}");
            let paused_ns = begin.elapsed().as_nanos() as u64;
            run.resume().unwrap();
            let record = run.wait().unwrap();
            assert!(
                record.result.reason.contains("the duration was over"),
                "{name}: {}",
                record.result.reason
            );
            assert!(
                record.result.duration_ns >= 50_000_000 + paused_ns,
                "{name}: {}",
                record.result.duration_ns
            );
            assert!(due_ns.lock().unwrap().len() <= 51, "{name}");
        }
    });
}
