//! Periods, counts of steps, and the scale of the clock.

use super::{keep, manual, numbers, ways};
use crate::watchdog::watched;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_runtime::{
    ClockKind, Context, Error, Graph, Input, Operator, Options, Overrun, Ports, Step, When,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_count_ends_the_operator() {
    watched(60, || {
        for options in ways() {
            // A source, an operator in between, and one that would have more.
            let mut graph = Graph::new("count");
            let source = numbers(&mut graph, u64::MAX);
            let pass = graph.map("pass", |x: u64| x);
            let kept = keep(&mut graph, "end");
            graph.connect_names("numbers", "pass");
            graph.connect_names("pass", "end");
            graph.when(source, When::count(7));
            graph.when(pass, When::count(5));
            let record = graph.run(&options).unwrap();
            assert_eq!(*kept.lock().unwrap(), [1, 2, 3, 4, 5]);
            assert!(record.operators[0].steps <= 7);
            assert_eq!(record.result.exit_status, 0);
        }
    });
}

#[test]
fn a_period_spaces_steps() {
    watched(60, || {
        for options in ways().iter().map(manual) {
            let mut graph = Graph::new("period");
            let source = numbers(&mut graph, 5);
            let taker = Arc::new(Mutex::new(Vec::new()));
            let times = Arc::clone(&taker);
            graph.add("end", Times { input: Input::default(), times });
            graph.connect_names("numbers", "end");
            graph.when(source, When::period_ns(1000, Overrun::CatchUp));
            graph.run(&options).unwrap();
            // The message of tick k is due, and comes, k periods after the start.
            assert_eq!(
                *taker.lock().unwrap(),
                [(0, 0), (1000, 1000), (2000, 2000), (3000, 3000), (4000, 4000)]
            );
        }
    });
}

/// Messages in flight get through, as they do through gates.
#[test]
fn a_stop_does_not_wait_for_ticks() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    watched(60, || {
        for options in ways() {
            for duration_ns in [None, Some(20_000_000)] {
                for overrun in [Overrun::CatchUp, Overrun::Skip, Overrun::MinGap, Overrun::Stop] {
                    let mut graph = Graph::new("hours");
                    numbers(&mut graph, u64::MAX);
                    let pass = graph.map("pass", |x: u64| x);
                    let kept = keep(&mut graph, "end");
                    graph.connect_names("numbers", "pass");
                    graph.connect_names("pass", "end");
                    graph.when(pass, When::period_ns(HOUR_NS, overrun));
                    let run = graph.start(&Options { duration_ns, ..options.clone() }).unwrap();
                    if duration_ns.is_none() {
                        std::thread::sleep(Duration::from_millis(2));
                        run.stop();
                    }
                    let record = run.wait().unwrap();
                    assert_eq!((record.result.lost, record.result.exit_status), (0, 0));
                    assert_eq!(kept.lock().unwrap().len() as u64, record.edges[0].sent);
                }
            }
        }
    });
}

/// An hour and more in some milliseconds.
#[test]
fn a_clock_may_go_faster() {
    watched(60, || {
        for options in ways() {
            let options = Options { scale: 1e6, ..options };
            let mut graph = Graph::new("fast");
            let source = numbers(&mut graph, 5);
            let seen = Arc::new(Mutex::new(Vec::new()));
            graph.add("end", Times { input: Input::default(), times: Arc::clone(&seen) });
            graph.connect_names("numbers", "end");
            const PERIOD_NS: u64 = 1_000_000_000_000;
            graph.when(source, When::period_ns(PERIOD_NS, Overrun::CatchUp));
            let record = graph.run(&options).unwrap();
            for (tick, &(due_ns, at_ns)) in seen.lock().unwrap().iter().enumerate() {
                assert_eq!(due_ns, tick as u64 * PERIOD_NS);
                assert!(at_ns >= due_ns, "nothing comes before its time");
            }
            assert!(record.result.duration_ns >= 4 * PERIOD_NS);
        }
        for (scale, clock) in [
            (0.0, ClockKind::Real),
            (f64::NAN, ClockKind::Real),
            (2e6, ClockKind::Real),
            (2.0, ClockKind::Manual),
        ] {
            let mut graph = Graph::new("wrong");
            numbers(&mut graph, 1);
            graph.connect_names("numbers", "end");
            graph.sink("end", |_: u64| ());
            let error = graph.plan(&Options { scale, clock, ..Options::default() }).unwrap_err();
            assert!(error.to_string().contains("`scale`"), "{error}");
        }
    });
}

struct Times {
    input: Input<u64>,
    times: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Operator for Times {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.input.pop(cx).is_some() {
            let due_ns = cx.stamp().due_ns().expect("a period has due times") - cx.start_ns();
            self.times.lock().unwrap().push((due_ns, cx.now_ns() - cx.start_ns()));
        }
        Ok(Step::Wait)
    }
}

/// Works for a millisecond per step, all the time.
struct Busy(Arc<AtomicU64>);

impl Operator for Busy {
    fn ports(&mut self, _: &mut Ports) {}

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let end_ns = cx.now_ns() + 1_000_000;
        while cx.now_ns() < end_ns {}
        Ok(if cx.is_stopping() { Step::Done } else { Step::Again })
    }
}

/// However many operators always have something to do: one that is due has its turn after a few of their
/// steps.
#[test]
fn a_period_is_kept_beside_operators_that_never_rest() {
    const TICKS: u64 = 50;
    watched(60, || {
        for options in ways() {
            for loads in [1, 2, 3] {
                let busy = Arc::new(AtomicU64::new(0));
                let mut graph = Graph::new("busy");
                for at in 0..loads {
                    graph.add(format!("busy{at}"), Busy(Arc::clone(&busy)));
                }
                let (mut ticks, steps) = (0, Arc::clone(&busy));
                let (tell, told) = std::sync::mpsc::channel();
                let tick = graph.source("tick", move || {
                    ticks += 1;
                    if ticks == TICKS {
                        tell.send(steps.load(Ordering::Relaxed)).unwrap();
                    }
                    (ticks < TICKS).then_some(ticks)
                });
                let end = graph.sink("end", |_: u64| ());
                graph.connect(tick, |t| &t.out, end, |e| &e.input);
                graph.when(tick, When::period_ns(2_000_000, Overrun::Skip));
                let run = graph.start(&options).unwrap();
                let steps = told.recv().unwrap();
                run.stop();
                run.wait().unwrap();
                let what = format!("{options:?}, {loads} loads: {steps} steps of these");
                assert!(steps <= TICKS * 8 * loads, "{what}");
            }
        }
    });
}
