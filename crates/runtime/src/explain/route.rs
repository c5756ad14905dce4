//! Route of a message: the steps that it went through.

use crate::engine::flight::Late;
use crate::plan::Plan;
use onbeat_trace::Span;

/// Returns the steps of a message from its source to the operator where it was late, in order. Each step's
/// predecessor is the latest of the steps that it waited for. Operators without recorded steps are skipped.
pub(super) fn route(late: &Late, spans: &[Span], plan: &Plan) -> Vec<Span> {
    let mut way = Vec::new();
    let is_it = |span: &Span| span.source == late.source && span.sequence == late.sequence;
    // A step begins before the message is finished, and ends in the same moment.
    let of = |operator: usize, until_ns: u64| {
        let here =
            spans.iter().filter(move |span| span.operator as usize == operator && span.start_ns <= until_ns);
        let own = here.clone().filter(|span| is_it(span)).max_by_key(|span| span.end_ns);
        // A message made of others has another origin. Then the latest step before is taken.
        own.or_else(|| here.filter(|span| span.end_ns >= late.due_ns).max_by_key(|span| span.end_ns)).copied()
    };
    let mut front = vec![late.end];
    let mut until_ns = late.end_ns;
    // A route visits no operator twice.
    let mut is_seen = vec![false; plan.operators.len()];
    while !front.is_empty() {
        front.iter().for_each(|&operator| is_seen[operator] = true);
        let last = front.iter().filter_map(|&operator| of(operator, until_ns)).max_by_key(|span| span.end_ns);
        let reached: Vec<usize> = match last {
            Some(span) => {
                way.push(span);
                until_ns = span.start_ns;
                vec![span.operator as usize]
            }
            None => std::mem::take(&mut front),
        };
        front = plan
            .wires
            .iter()
            .filter(|wire| reached.contains(&wire.to) && !wire.feedback && !is_seen[wire.from])
            .map(|wire| wire.from)
            .collect();
        front.sort_unstable();
        front.dedup();
    }
    way.reverse();
    way
}
