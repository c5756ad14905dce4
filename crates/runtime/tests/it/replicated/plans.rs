//! What the plan finds, and what it says.

use super::*;
use onbeat_runtime::{OnError, When};

#[test]
fn the_plan_says_what_is_replicated() {
    for (ends, said) in [
        (Ends::Copies, "replicated on 2 workers: count, work0, work1, sink; each worker has ends of its own"),
        (
            Ends::Turns,
            "replicated on 2 workers: count, work0, work1, sink; source and sink go from worker to worker",
        ),
        (
            Ends::Rest,
            "replicated on 2 workers: work0, work1; `work0.spread` and `work0.gather` keep the order",
        ),
    ] {
        let (graph, _) = chain(ends, None, &[Does::AddsOne { rounds: 0 }; 2], 4);
        let plan = graph.plan(&replicated(2)).unwrap();
        assert!(plan.notes.iter().any(|note| note.starts_with(said)), "{:?}", plan.notes);
        assert_eq!(plan.workers.len(), 2);
        assert!(plan.obtained.is_empty(), "{:?}", plan.obtained);
    }
}

/// What the others are to do until the first worker hands out again waits before their lanes, and what they
/// have done until it is its turn behind them.
#[test]
fn queues_at_the_ends_of_a_stretch_are_twice_as_long() {
    watched(60, || {
        for (capacity, wanted) in [(1, 2), (4, 8), (16, 32)] {
            for stretches in [1, 2] {
                let (mut graph, taken) =
                    chain(Ends::Rest, Some(500), &[Does::AddsOne { rounds: 0 }; 2], capacity);
                if stretches == 2 {
                    graph.add("more", Work::new(Does::AddsOne { rounds: 0 }, 5));
                    graph.map("keeps_again", |n: u64| n);
                    graph.sink("end", |_: u64| ());
                    for edge in
                        ["keeps.out → more.in", "more.out → keeps_again.in", "keeps_again.out → end.in"]
                    {
                        let (from, to) = edge.split_once(" → ").unwrap();
                        let _ = graph.connect_names(from, to).capacity(capacity);
                    }
                }
                let plan = graph.plan(&replicated(2)).unwrap();
                let joins = |edge: &&onbeat_runtime::EdgePlan| {
                    edge.from.contains(".spread.") || edge.to.contains(".gather.")
                };
                let found: Vec<usize> = plan.edges.iter().filter(joins).map(|edge| edge.capacity).collect();
                assert_eq!(found, vec![wanted; 4 * stretches], "queues of {capacity}, {stretches} stretches");
                let record = graph.run(&replicated(2)).unwrap();
                assert_eq!(check("queues", Ends::Rest, 2, &taken), 500);
                assert_eq!(record.result.lost, 0);
            }
        }
    });
}

#[test]
fn what_cannot_be_replicated_is_said() {
    let (mut graph, _) = chain(Ends::Turns, None, &[Does::AddsOne { rounds: 0 }; 2], 4);
    let first = graph.add("extra", Work::new(Does::AddsOne { rounds: 0 }, 5));
    let end = graph.sink("end", |_: u64| ());
    graph.connect_names("work1.out", "extra.in");
    graph.connect_names("extra.out", "end.in");
    graph.on_error(first, OnError::Isolate);
    let plan = graph.plan(&replicated(2)).unwrap();
    let has = |text: &str| plan.notes.iter().any(|note| note.contains(text));
    assert!(has("extra is not replicated: a failure of it does not end the run"), "{:?}", plan.notes);
    assert!(has("replicated on 2 workers: work0, work1; `work0.spread`"), "{:?}", plan.notes);
    graph.when(end, When::count(3));
    assert!(graph.plan(&replicated(2)).is_ok());
}

#[test]
fn nothing_to_replicate_is_said_and_strict_refuses_it() {
    let build = || {
        let mut graph = Graph::new("g");
        let ones = graph.source("ones", || Some(1u64));
        let end = graph.sink("end", |_: u64| ());
        graph.connect(ones, |s| &s.out, end, |e| &e.input);
        graph
    };
    let plan = build().plan(&replicated(2)).unwrap();
    assert_eq!(plan.workers.len(), 1);
    let missing = &plan.obtained[0];
    assert_eq!((missing.asked.as_str(), missing.obtained.as_str()), ("on 2 workers", "none, on one worker"));
    let error = build().plan(&Options { strict: true, ..replicated(2) }).unwrap_err().to_string();
    assert!(error.contains("no operator says that it has no state"), "{error}");
    assert!(
        build().plan(&Options { strict: true, ..replicated(1) }).is_ok(),
        "one worker is what was asked for"
    );
}

#[test]
fn a_path_is_measured_over_all_workers() {
    watched(60, || {
        for ends in [Ends::Copies, Ends::Turns, Ends::Rest] {
            let (mut graph, _) = chain(ends, Some(2000), &[Does::AddsOne { rounds: 100 }; 2], 4);
            graph.path("count", "sink", Some(60_000_000_000));
            let record = graph.run(&replicated(2)).unwrap();
            assert_eq!(record.paths.len(), 1, "{ends:?}: {:?}", record.paths);
            assert!(record.paths[0].latency.count > 0, "{ends:?}");
            let edges: Vec<_> = record.edges.iter().map(|edge| (&edge.from, &edge.to)).collect();
            assert!(
                edges.iter().enumerate().all(|(at, edge)| !edges[..at].contains(edge)),
                "{ends:?}: {edges:?}"
            );
        }
    });
}
