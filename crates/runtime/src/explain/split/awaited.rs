//! Messages that were due later than the one that waited for them.
//!
//! An operator with several inputs works when it has a message at each. If one source is due every 10 ms and
//! the other every 100 ms, messages of the first wait for the second: in the operator, and once the edge to
//! it is full, before that edge.

use super::slices::HeldTime;
use super::{SliceSums, What, WindowPiece};
use crate::explain::case::Case;
use crate::explain::sentence::DUE_LATER;
use onbeat_trace::{CauseClass, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

impl WindowPiece<'_, '_> {
    /// Adds the time that the message of a source waited until it was due, since another one was due earlier.
    /// Returns its end.
    pub(super) fn until_due(&self, at: &Range<u64>, sums: &mut SliceSums) -> u64 {
        let due_ns = self.slice.due_ns.clamp(at.start, at.end);
        if self.slice.run || !self.is_source() || due_ns == at.start {
            return at.start;
        }
        self.due_later(self.slice.operator, due_ns - at.start, sums);
        due_ns
    }

    /// Adds the time within `at` for which the consumer of the full edge waited for a message that was due
    /// later. Returns its end.
    pub(super) fn until_awaited(&self, held: &HeldTime, at: &Range<u64>, sums: &mut SliceSums) -> u64 {
        let Some((source, due_ns)) = held.awaited else { return at.start };
        let due_ns = due_ns.clamp(at.start, at.end);
        self.due_later(source, due_ns - at.start, sums);
        due_ns
    }

    fn due_later(&self, source: u32, ns: u64, sums: &mut SliceSums) {
        let name = self.case.operators.get(source as usize).map_or("", |facts| &facts.name);
        let detail = Some(DUE_LATER.to_owned());
        sums.took.add(What { detail, ..self.what(CauseClass::InputLate, name, None) }, ns);
    }
}

/// Returns the source whose message the consumer of a full edge lacked in this time, and when that message
/// was due, if it was due later than the time began. Sources before the edge are not meant: their messages
/// are those that wait.
pub(super) fn awaited(case: &Case<'_>, edge: u32, at: &Range<u64>) -> Option<(u32, u64)> {
    let full = case.edges.get(edge as usize)?;
    let inputs = case.edges.iter().filter(|edge| edge.to == full.to && edge.from != full.from);
    let inputs: Vec<u32> = inputs.filter(|edge| edge.is_awaited).map(|edge| edge.from).collect();
    if inputs.is_empty() {
        return None;
    }
    let mut before: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for edge in case.edges.iter().filter(|edge| edge.is_awaited) {
        before.entry(edge.to).or_default().push(edge.from);
    }
    let (own, others) = (upstream(&before, vec![full.from]), upstream(&before, inputs));
    let is_source = |of: u32| case.operators.get(of as usize).is_some_and(|facts| facts.is_source);
    // By source: its last step before the consumer took.
    let mut sent: BTreeMap<u32, &Span> = BTreeMap::new();
    for span in case.spans.iter().filter(|span| span.start_ns < at.end && others.contains(&span.operator)) {
        let last = sent.entry(span.operator).or_insert(span);
        *last = if span.start_ns > last.start_ns { span } else { last };
    }
    let due = sent.into_iter().filter(|(of, _)| is_source(*of) && !own.contains(of));
    let due = due.map(|(source, span)| (source, span.due_ns));
    due.filter(|(_, ns)| *ns != Span::NO_DUE && *ns > at.start).max_by_key(|(_, ns)| *ns)
}

/// Operators from which messages reach these, with themselves.
fn upstream(before: &BTreeMap<u32, Vec<u32>>, mut next: Vec<u32>) -> BTreeSet<u32> {
    let mut all: BTreeSet<u32> = next.iter().copied().collect();
    while let Some(operator) = next.pop() {
        next.extend(before.get(&operator).into_iter().flatten().filter(|from| all.insert(**from)));
    }
    all
}
