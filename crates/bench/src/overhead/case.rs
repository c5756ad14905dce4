//! The graphs to measure.

use super::effort::Effort;
use super::marks::{Length, StepCounter, Times, UsageCounts};
use super::operators::{AddOne, Portless, Rx, Tx};
use onbeat_runtime::{Graph, Input, Output};
use std::sync::Arc;

/// A graph. An iteration is one step of each operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverheadCase {
    /// Two operators without a message, stepped in turn.
    TwoOperators,
    /// A source and a sink: one number per iteration.
    TxRx,
    /// A source, two operators and a sink.
    Chain4,
    /// A source and four sinks, each of which gets every number.
    FanOut4,
}

/// A graph for one run, and the clock readings of its operators.
pub(super) struct PreparedCase {
    pub graph: Graph,
    /// Readings of the operators at the start.
    pub sources: Vec<Arc<Times>>,
    /// Readings of the operators at the end: an iteration is complete when all of these have made their step.
    pub ends: Vec<Arc<Times>>,
}

impl OverheadCase {
    /// All cases, the published ones first.
    pub const ALL: [OverheadCase; 4] =
        [OverheadCase::TwoOperators, OverheadCase::TxRx, OverheadCase::Chain4, OverheadCase::FanOut4];

    /// Name in figures, on the command line and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OverheadCase::TwoOperators => "two_operators",
            OverheadCase::TxRx => "tx_rx",
            OverheadCase::Chain4 => "chain_4",
            OverheadCase::FanOut4 => "fan_out_4",
        }
    }

    /// Description.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            OverheadCase::TwoOperators => "two operators, no messages",
            OverheadCase::TxRx => "Tx → Rx",
            OverheadCase::Chain4 => "chain of 4",
            OverheadCase::FanOut4 => "fan-out 1 → 4",
        }
    }

    /// Returns the case with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<OverheadCase> {
        OverheadCase::ALL.into_iter().find(|case| case.name() == name)
    }

    /// Number of operators that make a step in one iteration.
    #[must_use]
    pub fn operators(self) -> usize {
        match self {
            OverheadCase::TwoOperators | OverheadCase::TxRx => 2,
            OverheadCase::Chain4 => 4,
            OverheadCase::FanOut4 => 5,
        }
    }

    /// Creates the graph with its clock readings. Each operator makes the `effort` in each step.
    pub(super) fn prepare<E: Effort>(
        self,
        length: Length,
        effort: E,
        counts: Option<&Arc<UsageCounts>>,
    ) -> PreparedCase {
        let mut graph = Graph::new(self.name());
        let times = |count: usize| -> Vec<Arc<Times>> { (0..count).map(|_| Arc::default()).collect() };
        // The last sink counts: the others reach their points earlier.
        let end = |times: &[Arc<Times>], at: usize| {
            StepCounter::new(length, &times[at], counts.filter(|_| at + 1 == times.len()))
        };
        if self == OverheadCase::TwoOperators {
            let ends = times(2);
            for (at, name) in ["first", "second"].into_iter().enumerate() {
                graph.add(name, Portless { mark: end(&ends, at), effort });
            }
            return PreparedCase { graph, sources: ends.clone(), ends };
        }
        let sources = times(1);
        let mark = StepCounter::new(length, &sources[0], None);
        let tx = graph.add("tx", Tx { out: Output::default(), next: 0, mark, effort });
        let ends = times(if self == OverheadCase::FanOut4 { 4 } else { 1 });
        let rx = |at| Rx { input: Input::default(), sum: 0, mark: end(&ends, at), effort };
        match self {
            OverheadCase::Chain4 => {
                let pass = || AddOne { input: Input::default(), out: Output::default(), effort };
                let (first, second) = (graph.add("pass0", pass()), graph.add("pass1", pass()));
                let rx = graph.add("rx", rx(0));
                graph.connect(tx, |tx| &tx.out, first, |pass| &pass.input);
                graph.connect(first, |pass| &pass.out, second, |pass| &pass.input);
                graph.connect(second, |pass| &pass.out, rx, |rx| &rx.input);
            }
            _ => {
                for at in 0..ends.len() {
                    let name = if ends.len() == 1 { "rx".to_owned() } else { format!("rx{at}") };
                    let rx = graph.add(name, rx(at));
                    graph.connect(tx, |tx| &tx.out, rx, |rx| &rx.input);
                }
            }
        }
        PreparedCase { graph, sources, ends }
    }
}
