//! What a status says.

use super::{line, until, ways};
use crate::watchdog::watched;
use onbeat_runtime::{Activity, Options, RunState};

/// A worker makes its first snapshot after its first step has returned; the status shows the step before
/// that.
#[test]
fn a_long_step_is_shown_while_it_lasts() {
    watched(60, || {
        for (name, options) in ways() {
            let (go, wait) = std::sync::mpsc::channel::<()>();
            let mut graph = onbeat_runtime::Graph::new("long");
            let mut left = 1;
            let source = graph.source("long", move || {
                let _ = wait.recv();
                left -= 1;
                (left >= 0).then_some(1u64)
            });
            let end = graph.sink("end", |_: u64| ());
            graph.connect(source, |s| &s.out, end, |e| &e.input);
            let run = graph.start(&options).unwrap();
            let shown = until(&run, |status| status.operators[0].state == Activity::Running);
            assert_eq!(shown.operators[0].steps, 0, "{name}");
            if options.clock == onbeat_runtime::ClockKind::Real {
                until(&run, |status| status.elapsed_ns > shown.elapsed_ns);
            }
            drop(go);
            run.wait().unwrap();
        }
    });
}

#[test]
fn everything_is_shown_with_what_it_waits_for() {
    watched(60, || {
        for (name, options) in ways() {
            let (graph, line) = line();
            let run = graph.start(&options).unwrap();
            run.pause_operator("end").unwrap();
            // Everything before it runs full.
            let expected = [
                ("numbers", Activity::Waiting, Some("room on numbers.out → double.in")),
                ("double", Activity::Waiting, Some("room on double.out → end.in")),
                ("end", Activity::Paused, None),
            ];
            let status = until(&run, |status| {
                let shown = status.operators.iter();
                let shown = shown.map(|one| (one.name.as_str(), one.state, one.waits_for.as_deref()));
                status.edges.iter().all(|edge| edge.depth == edge.capacity) && shown.eq(expected)
            });
            assert_eq!((status.name.as_str(), status.state), ("line", RunState::Running), "{name}");
            let [numbers, double, end] = [0, 1, 2].map(|at| status.operators[at].steps);
            assert_eq!((numbers, double), (line.made(), line.made() - 4), "{name}");
            assert_eq!(end, double - 4, "{name}");
            let (sent, edge) = (line.made(), &status.edges[0]);
            assert_eq!((edge.from.as_str(), edge.to.as_str()), ("numbers.out", "double.in"), "{name}");
            assert_eq!((edge.depth, edge.sent, edge.dropped), (4, sent, 0), "{name}");

            run.resume().unwrap();
            run.pause_operator("numbers").unwrap();
            // The parts of a picture are painted one after the other, so it may take several until they fit.
            let expected =
                [Some("a message on numbers.out → double.in"), Some("a message on double.out → end.in")];
            until(&run, |status| {
                let waits = status.operators[1..].iter().map(|operator| operator.waits_for.as_deref());
                status.edges.iter().all(|edge| edge.depth == 0) && waits.eq(expected)
            });
            let handle = run.handle();
            run.stop();
            run.wait().unwrap();
            line.check(&name);
            let status = handle.status();
            assert_eq!(status.state, RunState::Ended, "{name}");
            assert!(
                status.operators.iter().all(|operator| operator.state == Activity::Done),
                "{name}: {status:#?}"
            );
            assert_eq!(status.operators[0].steps, line.made(), "{name}");
        }
    });
}

#[test]
fn alarms_and_failures_are_shown() {
    watched(60, || {
        let mut graph = onbeat_runtime::Graph::new("failing");
        let numbers = graph.source("numbers", || Some(1u8));
        let end = graph.sink("end", |_: u8| panic!("as it was meant to"));
        graph.connect(numbers, |s| &s.out, end, |e| &e.input);
        let run = graph.start(&Options::default()).unwrap();
        let handle = run.handle();
        assert!(run.wait().is_err());
        let status = handle.status();
        assert_eq!(status.state, RunState::Ended);
        assert_eq!(status.operators[1].state, Activity::Failed);
    });
}

/// As programs read it.
#[test]
fn a_status_is_plain_data() {
    watched(60, || {
        let run = line().0.start(&Options::default()).unwrap();
        run.pause().unwrap();
        until(&run, |status| status.edges.iter().all(|edge| edge.depth == 0));
        let status = serde_json::to_value(run.status()).unwrap();
        assert_eq!(status["state"], "paused");
        assert_eq!(status["operators"][0]["state"], "paused");
        assert_eq!(status["operators"][2]["waits_for"], "a message on double.out → end.in");
        assert_eq!(status["edges"][1]["capacity"], 4);
        run.stop();
        run.wait().unwrap();
    });
}
