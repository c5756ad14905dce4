//! Messages at inputs: one, all, any, in sum, in batches, or after a time.

use super::{At, Seen, found, manual, two_inputs, ways};
use crate::watchdog::watched;
use onbeat_runtime::{Context, Error, Graph, Input, Operator, Ports, Step, When};
use std::sync::Arc;

#[test]
fn input_conditions() {
    type Case = (&'static str, fn() -> When, &'static [u64], &'static [u64], &'static [(usize, usize, u64)]);
    let table: [Case; 8] = [
        ("messages", || When::messages("a", 3), &[1, 2, 3, 4, 5], &[1], &[(3, 1, 3), (2, 0, 5)]),
        ("all", || When::all(["a", "b"]).least(2), &[1, 2, 9], &[5, 6], &[(2, 2, 6), (1, 0, 9)]),
        ("all of all", || When::all([]), &[1, 2], &[5, 6], &[(2, 1, 5), (0, 1, 6)]),
        ("any", || When::any(["a", "b"]), &[1, 7], &[4], &[(1, 0, 1), (0, 1, 4), (1, 0, 7)]),
        ("any of two", || When::any([]).least(2), &[1, 3], &[2, 4, 6], &[(2, 1, 3), (0, 2, 6)]),
        ("sum", || When::sum(["a", "b"], 3), &[1, 3, 5], &[2, 4], &[(2, 1, 3), (1, 1, 5)]),
        (
            "timeout",
            || When::all(["a", "b"]).timeout_ns(10),
            &[1, 15],
            &[25],
            &[(1, 0, 10), (1, 0, 20), (0, 1, 25)],
        ),
        ("any timeout", || When::any([]).least(3).timeout_ns(4), &[1, 9], &[2], &[(1, 1, 4), (1, 0, 9)]),
    ];
    watched(60, move || {
        for (what, when, a, b, expected) in &table {
            for options in ways().iter().map(manual) {
                let (graph, seen) = two_inputs(a, b, |graph, taker| graph.when(taker, when()));
                let record = graph.run(&options).unwrap();
                let name = format!("{what}, {:?} {:?}", options.scheduler, options.share);
                // With a timeout, steps without messages come as well; when one comes just as the time is up
                // is not said.
                assert_eq!(found(&seen).len(), expected.len(), "{name}: {seen:?}");
                if !what.contains("timeout") {
                    assert_eq!(found(&seen), *expected, "{name}");
                }
                assert_eq!((record.result.lost, record.result.exit_status), (0, 0), "{name}");
                let sum =
                    |side: fn(&(usize, usize, u64)) -> usize| found(&seen).iter().map(side).sum::<usize>();
                assert_eq!((sum(|f| f.0), sum(|f| f.1)), (a.len(), b.len()), "{name}");
            }
        }
    });
}

#[test]
fn a_batch_is_full_or_late() {
    watched(60, || {
        for options in ways().iter().map(manual) {
            let when = |graph: &mut Graph, taker| {
                graph.when(taker, When::batch("a", 3, 100));
                graph.when(taker, When::any_of([When::messages("b", 1), When::messages("a", 1)]));
            };
            let (graph, seen) = two_inputs(&[1, 2, 3, 500, 550, 900], &[2000], when);
            graph.run(&options).unwrap();
            // Three at once; two that waited for 100 ns; one that the end of its source let through or its
            // time.
            let found = found(&seen);
            assert_eq!(found[..2], [(3, 0, 3), (2, 0, 600)], "{:?}", options.scheduler);
            assert_eq!(found.iter().map(|step| step.0).sum::<usize>(), 6);
        }
    });
}

/// Takes one message per step, as most operators do.
struct OneByOne {
    a: Input<u64>,
    seen: Seen,
}

impl Operator for OneByOne {
    fn ports(&mut self, p: &mut Ports) {
        p.input("a", &mut self.a);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.a.pop(cx).is_some() {
            self.seen.lock().unwrap().push((vec![1, 0], cx.now_ns() - cx.start_ns()));
        }
        Ok(Step::Wait)
    }
}

#[test]
fn a_batch_keeps_its_delay_when_steps_take_one_message() {
    watched(60, || {
        for options in ways().iter().map(manual) {
            // One each 1000 ns. A batch of sixteen is never full, so its delay ends it.
            let times: Vec<u64> = (0..100).map(|tick| tick * 1000).collect();
            for (size, delay_ns, at_once) in [(16, 5_500, 6), (8, 100_000, 8)] {
                let seen = Seen::default();
                let mut graph = Graph::new("batches");
                let source = graph.add("source", At::new(&times));
                let taker = graph.add("taker", OneByOne { a: Input::default(), seen: Arc::clone(&seen) });
                graph.connect(source, |s| &s.out, taker, |t| &t.a).capacity(32);
                graph.when(taker, When::batch("a", size, delay_ns));
                let record = graph.run(&options).unwrap();
                assert_eq!((record.result.lost, record.edges[0].received), (0, 100));
                let seen = seen.lock().unwrap();
                for (number, &(_, at_ns)) in (0..).zip(seen.iter()) {
                    let first = number / at_once * at_once;
                    let last = first + at_once - 1;
                    // The rest goes at once at the end.
                    let complete = if size == 8 { last * 1000 } else { first * 1000 + delay_ns };
                    let expected = if last > 99 { 99_000 } else { complete };
                    assert_eq!(at_ns, expected, "{number}, {:?}", options.scheduler);
                }
            }
        }
    });
}
