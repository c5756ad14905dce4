//! Operators that fail, or are not what they say.

use super::*;

fn reason(ends: Ends, works: &[Does]) -> String {
    let (graph, _) = chain(ends, Some(5000), works, 4);
    graph.run(&replicated(2)).unwrap_err().to_string()
}

#[test]
fn a_failure_of_one_copy_ends_the_run() {
    watched(120, || {
        for ends in [Ends::Copies, Ends::Turns, Ends::Rest] {
            for at in [1, 77, 4998] {
                let works = [Does::AddsOne { rounds: 100 }, Does::Fails(at), Does::AddsOne { rounds: 100 }];
                assert_eq!(reason(ends, &works), "operator `work1`: cannot do this one");
                let works = [Does::AddsOne { rounds: 100 }, Does::Panics(at), Does::AddsOne { rounds: 100 }];
                assert!(reason(ends, &works).starts_with("operator `work1`: panicked: "));
            }
        }
    });
}

/// An operator that leaves messages out, or sends more, is found out; nothing hangs.
#[test]
fn one_that_is_not_one_for_one_is_found_out() {
    watched(120, || {
        for ends in [Ends::Turns, Ends::Rest] {
            for does in [Does::LeavesOut(50), Does::LeavesOut(4999), Does::Doubles(50)] {
                let text = reason(ends, &[does, Does::AddsOne { rounds: 100 }]);
                let is_said = text.contains("sends exactly one for each that it takes");
                assert!(is_said || text.contains("dead-lock"), "{ends:?}: {text}");
            }
        }
    });
}

/// A sink that has enough ends what leads to it.
#[test]
fn a_sink_may_end_early() {
    watched(60, || {
        for ends in [Ends::Turns, Ends::Rest] {
            let (mut graph, _) = chain(ends, None, &[Does::AddsOne { rounds: 100 }; 2], 4);
            let taken = Taken::default();
            let _ = &mut graph;
            let mut graph = Graph::new("early");
            graph.add("count", Count::new(None, false));
            graph.add("work", Work::new(Does::AddsOne { rounds: 50 }, 3));
            let sink =
                Sink { input: Input::default(), taken: Arc::clone(&taken), has_replicas: false, most: 300 };
            graph.add("sink", sink);
            graph.connect_names("count.out", "work.in");
            graph.connect_names("work.out", "sink.in");
            let record = graph.run(&replicated(2)).unwrap();
            assert_eq!(record.result.outcome.to_string(), "ended");
            assert_eq!(check("early", ends, 1, &taken), 300);
        }
    });
}
