//! Conditions that can never hold, and how a dead-lock names them.

use super::{keep, numbers, two_inputs, ways};
use crate::watchdog::watched;
use onbeat_runtime::{Condition, Error, Gate, Graph, Options, Overrun, Readiness, RunError, View, When};
use std::sync::{Arc, Mutex};

/// Keeps to a rhythm that it is told from outside.
struct Own(Arc<Mutex<Option<onbeat_runtime::Waker>>>, u64);

impl Condition for Own {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        Ok(match view.messages("") {
            _ if view.inputs_are_waived() => Readiness::Holds,
            _ if view.steps() >= self.1 => Readiness::Waits,
            0 => Readiness::Waits,
            _ => Readiness::Holds,
        })
    }
    fn describe(&self) -> String {
        "a word from outside".to_string()
    }
    fn attach(&mut self, waker: &onbeat_runtime::Waker) {
        *self.0.lock().unwrap() = Some(waker.clone());
    }
}

#[test]
fn a_dead_lock_names_conditions() {
    watched(60, || {
        for options in ways() {
            let mut graph = Graph::new("own");
            numbers(&mut graph, 9);
            let pass = graph.map("pass", |x: u64| x);
            graph.connect_names("numbers", "pass");
            keep(&mut graph, "end");
            graph.connect_names("pass", "end");
            graph.when(pass, When::own(Own(Arc::default(), 2)));
            match graph.run(&options) {
                Err(RunError::Failed(record)) => {
                    let reason = record.result.reason;
                    assert!(reason.contains("pass waits for a word from outside"), "{reason}");
                }
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn conditions_that_can_never_hold_are_refused() {
    let gate = Gate::new(true);
    let wrong: Vec<(When, &str)> = vec![
        (When::messages("a", 9), "it waits for 9 messages at a, where at most 8 can wait"),
        (When::messages("a", 0), "it waits for 0 messages"),
        (When::messages("c", 1), "there is no input `c`"),
        (When::messages("", 1), "say which input it is about: a, b"),
        (When::sum([], 17), "it waits for 17 messages at a and b, where at most 16 can wait"),
        (When::batch("b", 9, 1), "it waits for 9 messages at b"),
        (When::room("out", 1), "there is no output `out`"),
        (When::any_of([]), "`any_of` nothing never holds"),
        (When::gate(&gate).least(3), "`least` goes with `any`, `all`, `sum` and `messages`"),
        (When::messages("a", 3).timeout_ns(1), "`timeout_ns` goes with `any`, `all` and `sum`"),
        (When::any_of([When::count(3).timeout_ns(1)]), "`timeout_ns` goes with"),
        (When::any_of([When::gate(&gate), When::room("", 1)]), "`room` cannot be one of `any_of`"),
        (When::count(0), "a count of 0 steps"),
        (When::period_ns(0, Overrun::Skip), "a period of 0 ns"),
        (When::chunk_room(0), "0 free chunks are always there"),
        (When::chunk_room(1), "outputs with samples, and there are none"),
    ];
    for (when, text) in wrong {
        let (graph, _) = two_inputs(&[1], &[1], |graph, taker| graph.when(taker, when));
        let error = graph.plan(&Options::default()).unwrap_err().to_string();
        assert!(error.contains("a condition of operator `taker`") && error.contains(text), "{error}");
    }
}
