//! The last seconds of all steps of a run.

use crate::engine::flight::Late;
use onbeat_trace::Span;
use std::collections::VecDeque;

/// Age up to which steps are kept, the number kept of all parts together, and the least number of each part.
const KEPT_NS: u64 = 10_000_000_000;
const KEPT: usize = 1 << 16;
const KEPT_LEAST: usize = 1 << 12;

/// Time before a message's due time that is examined too: a cause of the delay may have begun there.
const BEFORE_NS: u64 = 200_000_000;

/// Time before a message that is examined for causes.
#[derive(Debug, Clone, Copy)]
pub(super) struct LateHistory {
    /// Its begin.
    pub from_ns: u64,
    /// Since when messages had waited.
    pub backlog_ns: u64,
    /// Whether they had waited for longer than that.
    pub is_cut: bool,
}

/// The last steps of all parts.
#[derive(Debug)]
pub(super) struct KeptSpans {
    /// By part, in order of time.
    parts: Vec<VecDeque<Span>>,
    /// Number of spans kept of each part.
    kept: usize,
}

impl KeptSpans {
    /// Takes the room for parts whose rings have these sizes: no allocation between two visits unless a
    /// message is late.
    pub fn new(rings: impl ExactSizeIterator<Item = usize>) -> Self {
        let kept = (KEPT / rings.len().max(1)).max(KEPT_LEAST);
        KeptSpans { parts: rings.map(|ring| VecDeque::with_capacity(kept + ring)).collect(), kept }
    }

    /// Adds a step of a part.
    pub fn push(&mut self, part: usize, span: Span) {
        self.parts[part].push_back(span);
    }

    pub fn drop_old(&mut self, now_ns: u64) {
        for spans in &mut self.parts {
            let old = spans.iter().take_while(|span| span.end_ns + KEPT_NS < now_ns).count();
            spans.drain(..old.max(spans.len().saturating_sub(self.kept)));
        }
    }

    /// Time to examine for a message: before all messages that waited when it was due, but at most
    /// `longest_ns` before that.
    pub fn history(&self, late: &Late, longest_ns: u64) -> LateHistory {
        let begin_ns = self.parts.iter().map(|spans| backlog_ns(spans, late.due_ns)).min();
        let begin_ns = begin_ns.unwrap_or(late.due_ns).min(late.due_ns);
        let least_ns = late.due_ns.saturating_sub(longest_ns.max(BEFORE_NS));
        LateHistory {
            from_ns: begin_ns.saturating_sub(BEFORE_NS).max(least_ns),
            backlog_ns: begin_ns.max(least_ns),
            is_cut: begin_ns < least_ns,
        }
    }

    /// Steps from this time on, up to the end of a message.
    pub fn of(&self, late: &Late, from_ns: u64) -> Vec<Span> {
        let near = |span: &&Span| span.end_ns >= from_ns && span.start_ns <= late.end_ns;
        // The youngest first: what is old is not explained at.
        let of_part = |spans: &'_ VecDeque<Span>| {
            let mut near: Vec<Span> =
                spans.iter().rev().take_while(|span| span.end_ns >= from_ns).filter(near).copied().collect();
            near.reverse();
            near
        };
        self.parts.iter().flat_map(of_part).collect()
    }
}

/// Since when messages have waited before the steps of a part without a pause, up to this time.
fn backlog_ns(spans: &VecDeque<Span>, due_ns: u64) -> u64 {
    let mut begin_ns = due_ns;
    for span in spans.iter().rev() {
        if span.start_ns < due_ns && span.end_ns <= begin_ns {
            break;
        }
        begin_ns = begin_ns.min(span.due_ns).min(span.start_ns);
    }
    begin_ns
}
