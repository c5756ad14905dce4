//! Slowest messages of each path, with their steps.

use crate::engine::flight::{Late, SLOWEST};
use crate::plan::Plan;
use onbeat_trace::Span;
use onbeat_trace::record::{SlowMessage, SlowStep};
use std::cmp::Reverse;

/// By path of the plan, the slowest first. Times are on the run's clock, until [`Slowest::since`].
#[derive(Debug, Default)]
pub(super) struct Slowest(Vec<Vec<SlowMessage>>);

impl Slowest {
    pub fn new(plan: &Plan) -> Self {
        Slowest(plan.paths.iter().map(|_| Vec::with_capacity(SLOWEST + 1)).collect())
    }

    /// Adds a message with its steps, if it is among the slowest.
    pub fn add(&mut self, late: &Late, way: &[Span], plan: &Plan) {
        let step = |span: &Span| SlowStep {
            operator: plan.operators[span.operator as usize].name.clone(),
            begin_ns: span.start_ns.wrapping_sub(late.due_ns).cast_signed(),
            step_ns: span.end_ns.saturating_sub(span.start_ns),
        };
        let all = &mut self.0[late.of];
        all.push(SlowMessage {
            sequence: late.sequence,
            time_ns: late.end_ns,
            latency_ns: late.end_ns.saturating_sub(late.due_ns),
            steps: way.iter().map(step).collect(),
        });
        all.sort_by_key(|message| Reverse(message.latency_ns));
        all.truncate(SLOWEST);
    }

    /// Returns the messages, with times since the start of the run.
    pub fn since(mut self, start_ns: u64) -> Vec<Vec<SlowMessage>> {
        for message in self.0.iter_mut().flatten() {
            message.time_ns = message.time_ns.saturating_sub(start_ns);
        }
        self.0
    }
}
