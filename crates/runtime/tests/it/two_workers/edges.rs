//! Edges between two workers: full ones, a choice of outputs, and how many messages cross them.

use super::{EVENT, PINNED, WAYS, failed, two};
use crate::watchdog::watched;
use onbeat_runtime::{Context, Error, Graph, Input, Operator, Options, Output, Ports, Step, WhenFull};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// All five kinds of full edges from worker to worker: what is dropped is counted, the order is kept, and
/// `latest` and `drop_oldest` end with the last message.
#[test]
fn full_edges_between_workers_do_what_they_say() {
    watched(120, || {
        for when_full in [WhenFull::Wait, WhenFull::DropOldest, WhenFull::DropNewest, WhenFull::Latest] {
            for (way, capacity) in WAYS.into_iter().flat_map(|way| [1, 2, 7].map(|capacity| (way, capacity)))
            {
                const COUNT: u64 = 3000;
                let got = Arc::new(Mutex::new(Vec::new()));
                let kept = Arc::clone(&got);
                let mut graph = Graph::new("full");
                let mut n = 0;
                graph.source("numbers", move || {
                    n += 1;
                    (n <= COUNT).then_some(n)
                });
                graph.map("first", |x: u64| x);
                graph.map("slow", |x: u64| {
                    (0..200).for_each(|_| std::hint::spin_loop());
                    x
                });
                graph.sink("end", move |x: u64| kept.lock().unwrap().push(x));
                graph.connect_names("numbers", "first");
                graph.connect_names("first", "slow").capacity(capacity).when_full(when_full);
                graph.connect_names("slow", "end");
                let record = graph.run(&two(way)).unwrap();
                let got = got.lock().unwrap();
                let edge = &record.edges[1];
                let what = format!("{when_full} {capacity} {way:?}: {edge:?}");
                assert_eq!((edge.sent, edge.received + edge.dropped), (COUNT, COUNT), "{what}");
                assert_eq!(edge.received, got.len() as u64, "{what}");
                assert!(got.is_sorted() && got.windows(2).all(|pair| pair[0] < pair[1]), "{what}");
                assert!(edge.depth_max <= capacity as u64, "{what}");
                assert_eq!((record.result.lost, record.result.exit_status), (0, 0), "{what}");
                match when_full {
                    WhenFull::Wait => assert_eq!(edge.dropped, 0, "{what}"),
                    WhenFull::DropOldest | WhenFull::Latest => assert_eq!(got.last(), Some(&COUNT), "{what}"),
                    _ => assert_eq!(got.first(), Some(&1), "{what}"),
                }
            }
        }
    });
}

#[test]
fn a_full_edge_between_workers_may_be_an_error() {
    watched(60, || {
        let mut graph = Graph::new("full");
        graph.source("numbers", || Some(1u64));
        graph.map("first", |x: u64| x);
        graph.map("slow", |x: u64| {
            std::thread::sleep(Duration::from_millis(1));
            x
        });
        graph.sink("end", |_: u64| ());
        graph.connect_names("numbers", "first");
        graph.connect_names("first", "slow").capacity(2).when_full(WhenFull::Error);
        graph.connect_names("slow", "end");
        let reason = failed(graph.run(&two(PINNED))).result.reason;
        assert!(reason.contains("operator `first`: the edge first.out → slow.in is full"), "{reason}");
        assert!(reason.contains("raise its `capacity`"), "{reason}");
    });
}

/// Sends to one of two outputs: what the name of a number says.
#[derive(Default)]
struct Route {
    input: Input<u64>,
    even: Output<u64>,
    odd: Output<u64>,
}

impl Operator for Route {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("even", &mut self.even);
        p.output("odd", &mut self.odd);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(x) = self.input.pop(cx) {
            if x.is_multiple_of(2) { self.even.push(cx, x)? } else { self.odd.push(cx, x)? }
        }
        Ok(Step::Wait)
    }
}

#[test]
fn an_operator_may_choose_its_output() {
    watched(60, || {
        for options in [Options::default()].into_iter().chain(WAYS.map(two)) {
            let mut graph = Graph::new("route");
            let mut n = 0;
            graph.source("numbers", move || {
                n += 1;
                (n <= 1000u64).then_some(n)
            });
            graph.add("route", Route::default());
            graph.map("halves", |x: u64| x / 2);
            graph.sink("evens", |x: u64| assert!(x <= 500));
            graph.sink("odds", |x: u64| assert!(!x.is_multiple_of(2)));
            graph.connect_names("numbers", "route");
            graph.connect_names("route.even", "halves").capacity(1);
            graph.connect_names("halves", "evens");
            graph.connect_names("route.odd", "odds").capacity(1);
            let record = graph.run(&options).unwrap();
            assert_eq!(
                record.edges.iter().map(|edge| edge.received).collect::<Vec<_>>(),
                [1000, 500, 500, 500]
            );
        }
    });
}

/// Heavy operators spread over the workers; light ones stay where they are.
#[test]
fn heavy_operators_are_shared_and_light_ones_are_not() {
    watched(120, || {
        for (spins, both) in [(100_000u32, true), (0, false)] {
            let mut graph = Graph::new("load");
            let mut n = 0;
            graph.source("numbers", move || {
                n += 1;
                (n <= 200u64).then_some(n)
            });
            for name in ["a", "b", "c"] {
                graph.map(name, move |x: u64| {
                    (0..spins).for_each(|_| std::hint::spin_loop());
                    x
                });
            }
            graph.sink("end", |_: u64| ());
            for (from, to) in [("numbers", "a"), ("a", "b"), ("b", "c"), ("c", "end")] {
                graph.connect_names(from, to);
            }
            let record = graph.run(&two(EVENT)).unwrap();
            let sharing: Vec<_> = record.threads.iter().filter_map(|thread| thread.sharing).collect();
            assert_eq!(sharing.len(), 2);
            if both {
                assert!(sharing.iter().all(|sharing| sharing.taken > 5), "{sharing:?}");
            } else {
                // Both begin with some of the parts, and one steals them from the other at most.
                assert!(sharing.iter().map(|sharing| sharing.stolen).sum::<u64>() < 20, "{sharing:?}");
            }
        }
    });
}
