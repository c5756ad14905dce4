//! Which steps one message went through.

use crate::engine::flight::Late;
use crate::plan::Plan;
use onbeat_trace::Span;

/// The steps of a message from its source to where it was late, in their order: from the last one back, always to the one that
/// came last of those that it waited for. Operators of which nothing was recorded are passed over.
pub(super) fn route(late: &Late, spans: &[Span], plan: &Plan) -> Vec<Span> {
    let mut way = Vec::new();
    let is_it = |span: &Span| span.source == late.source && span.sequence == late.sequence;
    // A step begins before the message is finished, and ends in the same moment.
    let of = |operator: usize, until_ns: u64| {
        let here =
            spans.iter().filter(move |span| span.operator as usize == operator && span.start_ns <= until_ns);
        let own = here.clone().filter(|span| is_it(span)).max_by_key(|span| span.end_ns);
        // Of a message that was joined or cut its origin may be another one: then what came last before.
        own.or_else(|| here.filter(|span| span.end_ns >= late.due_ns).max_by_key(|span| span.end_ns)).copied()
    };
    let mut front = vec![late.end];
    let mut until_ns = late.end_ns;
    // A way visits no operator twice.
    let mut is_seen = vec![false; plan.operators.len()];
    while !front.is_empty() {
        front.iter().for_each(|&operator| is_seen[operator] = true);
        let last = front.iter().filter_map(|&operator| of(operator, until_ns)).max_by_key(|span| span.end_ns);
        let behind: Vec<usize> = match last {
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
            .filter(|wire| behind.contains(&wire.to) && !wire.feedback && !is_seen[wire.from])
            .map(|wire| wire.from)
            .collect();
        front.sort_unstable();
        front.dedup();
    }
    way.reverse();
    way
}
