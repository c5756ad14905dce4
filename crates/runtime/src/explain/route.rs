//! Route of a message: the steps that it went through.

use crate::engine::flight::Late;
use crate::plan::{Plan, Wire};
use onbeat_trace::Span;

/// Returns the steps of a message from its source to the operator where it was late, in order. Each step's
/// predecessor is the latest of the steps that it waited for. Operators without recorded steps are skipped.
pub(super) fn route(late: &Late, spans: &[Span], plan: &Plan) -> Vec<Span> {
    way(late, spans, plan.operators.len(), &plan.wires)
}

fn way(late: &Late, spans: &[Span], operators: usize, wires: &[Wire]) -> Vec<Span> {
    let mut way = Vec::new();
    // A message made of others has the number of one and the due time of the one that was due first.
    let is_it = |span: &Span| {
        let is_due_then = span.due_ns == late.due_ns && span.due_ns != Span::NO_DUE;
        (span.source == late.source && span.sequence == late.sequence) || is_due_then
    };
    // A step begins before the message is finished, and ends in the same moment.
    let of = |operator: usize, until_ns: u64| {
        let here =
            spans.iter().filter(move |span| span.operator as usize == operator && span.start_ns <= until_ns);
        let own = here.clone().filter(|span| is_it(span)).max_by_key(|span| span.end_ns);
        // Of the other messages in it neither is known. Then the latest step before is taken.
        own.or_else(|| here.filter(|span| span.end_ns >= late.due_ns).max_by_key(|span| span.end_ns)).copied()
    };
    let mut front = vec![late.end];
    let mut until_ns = late.end_ns;
    // A route visits no operator twice.
    let mut is_seen = vec![false; operators];
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
        front = wires
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::flight::About;
    use crate::graph::limits::OnMiss;

    const MIC: u32 = 0;
    const SLOW: u32 = 1;
    const SUM: u32 = 2;

    /// A sum's message has the first block of `mic`, due at 100, and a block of `slow`, due at 400, whose
    /// number it has. Another block of `mic`, due at 400 too, comes last.
    #[test]
    fn later_messages_of_the_same_source_are_not_its_route() {
        let step = |operator, source, sequence, due_ns, start_ns| {
            let (end_ns, held_by) = (start_ns + 10, Span::NONE);
            Span { operator, source, sequence, due_ns, start_ns, end_ns, held_by, ..Span::default() }
        };
        let spans = [
            step(MIC, 0, 0, 100, 100),
            step(SLOW, 1, 0, 400, 400),
            step(MIC, 0, 3, 400, 410),
            step(SUM, 1, 0, 100, 430),
        ];
        let late = Late {
            about: About::Slow,
            of: 0,
            end: SUM as usize,
            source: 1,
            sequence: 0,
            due_ns: 100,
            end_ns: 440,
            limit_ns: 0,
            on_miss: OnMiss::Record,
        };
        let wire = |from: u32| Wire {
            from: from as usize,
            out: 0,
            to: SUM as usize,
            input: from as usize,
            required: true,
            feedback: false,
        };
        let way = way(&late, &spans, 3, &[wire(MIC), wire(SLOW)]);
        assert_eq!(way.iter().map(|span| span.operator).collect::<Vec<_>>(), [SLOW, SUM]);
    }
}
