//! Slices: a window of time, cut by the steps of its message.

use super::EDGES;
use super::awaited::awaited;
use crate::explain::case::Case;
use onbeat_trace::Span;
use std::ops::Range;

/// One step of the message, or the wait before it.
#[derive(Debug, Clone)]
pub(super) struct Slice {
    pub at: Range<u64>,
    pub worker: u32,
    pub operator: u32,
    /// Whether this is the step itself, and not the wait before it.
    pub run: bool,
    /// Times in which full edges held the operator back, in order.
    pub held: Vec<HeldTime>,
    pub source: u32,
    pub sequence: u64,
    /// Time before which the step of a source had nothing to do: the due time of what it sends.
    pub due_ns: u64,
}

/// A time in which a full edge held an operator back.
#[derive(Debug, Clone)]
pub(super) struct HeldTime {
    pub edge: u32,
    pub at: Range<u64>,
    /// Source whose message the edge's consumer waited for, and when that was due, if it was due later.
    pub awaited: Option<(u32, u64)>,
}

/// Cuts a time by the steps of the route.
pub(super) fn slices(case: &Case<'_>, from_ns: u64, to_ns: u64, way: &[Span]) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut now_ns = from_ns;
    for span in way {
        let start_ns = span.start_ns.clamp(now_ns, to_ns.max(now_ns));
        let end_ns = span.end_ns.clamp(start_ns, to_ns.max(start_ns));
        let slice = |at: Range<u64>, run| Slice {
            at,
            worker: span.worker,
            operator: span.operator,
            run,
            held: Vec::new(),
            source: span.source,
            sequence: span.sequence,
            due_ns: if span.due_ns == Span::NO_DUE { 0 } else { span.due_ns },
        };
        if now_ns < start_ns {
            let held = held(case, span.operator, &(now_ns..start_ns));
            slices.push(Slice { held, ..slice(now_ns..start_ns, false) });
        }
        if start_ns < end_ns {
            slices.push(slice(start_ns..end_ns, true));
        }
        now_ns = end_ns;
    }
    if now_ns < to_ns {
        // An unrecorded step, or no step.
        let (worker, operator, source, sequence) =
            way.last().map_or((u32::MAX, u32::MAX, u32::MAX, 0), |span| {
                (span.worker, span.operator, span.source, span.sequence)
            });
        slices.push(Slice {
            at: now_ns..to_ns,
            worker,
            operator,
            run: false,
            held: Vec::new(),
            source,
            sequence,
            due_ns: 0,
        });
    }
    slices
}

/// Times in which an operator was held back, each with the full edge. A time ends when the consumer takes a
/// message. Messages queued after a held message wait as well. If the consumer was held itself, its own edge
/// is the cause.
pub(super) fn held(case: &Case<'_>, operator: u32, within: &Range<u64>) -> Vec<HeldTime> {
    let mut all = Vec::new();
    let mut free_ns = within.start;
    // A step begins after its wait.
    let is_near = |span: &&Span| {
        span.operator == operator
            && span.held_by != Span::NONE
            && span.held_ns < within.end
            && span.start_ns > within.start
    };
    let mut spans: Vec<&Span> = case.spans.iter().filter(is_near).collect();
    spans.sort_by_key(|span| span.start_ns);
    for span in spans {
        let Some(until_ns) = room_ns(case, span) else { continue };
        let at = span.held_ns.clamp(free_ns, within.end)..until_ns.clamp(free_ns, within.end);
        if at.start < at.end {
            free_ns = at.end;
            let edge = first_full(case, span);
            let awaited = awaited(case, edge, &(span.held_ns..until_ns + 1));
            all.push(HeldTime { edge, at, awaited });
        }
    }
    all
}

/// Time at which a held step had room again; `None` if the step was not held.
fn room_ns(case: &Case<'_>, span: &Span) -> Option<u64> {
    let edge = case.edges.get(span.held_by as usize)?;
    let takes = case.spans.iter().filter(|other| other.operator == edge.to);
    let first =
        takes.map(|other| other.start_ns).filter(|ns| (span.held_ns..span.start_ns).contains(ns)).min();
    Some(first.unwrap_or(span.start_ns))
}

/// Edge that is the cause, if several full edges follow each other.
fn first_full(case: &Case<'_>, span: &Span) -> u32 {
    let mut span = span;
    for _ in 0..EDGES {
        let Some(edge) = case.edges.get(span.held_by as usize) else { break };
        let middle_ns = span.held_ns.midpoint(room_ns(case, span).unwrap_or(span.start_ns));
        let consumer = case.spans.iter().find(|other| {
            let is_held =
                room_ns(case, other).is_some_and(|until_ns| (other.held_ns..until_ns).contains(&middle_ns));
            other.operator == edge.to && is_held
        });
        match consumer {
            Some(other) => span = other,
            None => break,
        }
    }
    span.held_by
}
