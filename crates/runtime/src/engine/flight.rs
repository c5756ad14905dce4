//! What a worker notes of its steps while it runs, without waiting and without asking for memory.

use crate::graph::limits::OnMiss;
use crate::operator::message::{NO_DUE, Stamp};
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_queue::{Lossy, Owner, Spsc};
use onbeat_trace::Span;
use onbeat_trace::record::MissKind;
use std::sync::Arc;

/// What one stamp costs at most, in nanoseconds: the goal that `onbeat-runtime`'s bench is held against.
const STAMP_NS: u64 = 15;

/// The part of a worker's time that stamps may cost: one in this many.
const SHARE: u64 = 100;

/// Misses that fit between two visits of the recorder.
const MISSES: usize = 1024;

/// How many of the slowest messages of each path are kept.
pub(crate) const SLOWEST: usize = 5;

/// Why somebody is to look into a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// It came too late.
    Miss(MissKind),
    /// It is one of the slowest of its path so far.
    Slow,
}

/// A message that somebody is to look into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Late {
    pub about: About,
    /// Number in the plan: of the path, or of the operator with the deadline.
    pub of: usize,
    /// Number in the plan of the operator where it ended.
    pub end: usize,
    pub source: u32,
    pub sequence: u64,
    pub due_ns: u64,
    pub end_ns: u64,
    pub limit_ns: u64,
    pub on_miss: OnMiss,
}

impl Late {
    /// How much later than it might have been.
    pub fn late_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.due_ns).saturating_sub(self.limit_ns)
    }
}

/// A step that is noted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noted {
    /// By its number in the plan.
    pub worker: u32,
    /// Of the message that it worked on.
    pub stamp: Stamp,
    /// Whether it worked on one: who took none did not.
    pub has_message: bool,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// The rings of one part: it puts in, the recorder takes out.
#[derive(Debug, Clone)]
pub(crate) struct Rings {
    pub spans: Arc<Spsc<Span>>,
    /// Spans for which there was no room because nobody had read those before them.
    pub unread: Arc<AtomicU64>,
    pub misses: Arc<Lossy<Late>>,
}

impl Rings {
    pub fn new(part: &Owner, recorder: &Owner, spans: usize) -> Self {
        Rings {
            spans: Arc::new(Spsc::new(part, recorder, spans)),
            unread: Arc::default(),
            misses: Arc::new(Lossy::new(part, recorder, MISSES)),
        }
    }
}

/// One part's recorder of its own flight.
#[derive(Debug)]
pub(crate) struct Flight {
    rings: Rings,
    seen: Box<[Seen]>,
    /// From this interval on between its steps each step of an operator is timed.
    least_ns: u64,
    /// The operator that was stepped last, and when that ended, while the next step may begin right there; 0 while not.
    pub last: u32,
    pub last_end_ns: u64,
}

/// What is known of one operator.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// Its number in the plan.
    plan: u32,
    /// Of its last step that was timed: when, and which.
    begin_ns: u64,
    steps: u64,
    /// From step to step, on average over the last ones.
    interval_ns: u64,
    held_by: u32,
    held_ns: u64,
}

impl Flight {
    /// For operators with these numbers in the plan.
    pub fn new(rings: Rings, operators: impl ExactSizeIterator<Item = usize>) -> Self {
        let least_ns = STAMP_NS * SHARE * operators.len() as u64;
        let seen = |plan: usize| Seen {
            plan: plan as u32,
            begin_ns: 0,
            steps: 0,
            interval_ns: least_ns * 256,
            held_by: Span::NONE,
            held_ns: 0,
        };
        Flight { rings, seen: operators.map(seen).collect(), least_ns, last: u32::MAX, last_end_ns: 0 }
    }

    /// A step of `operator` begins, which is its `steps`-th. Whether each of its steps is to be timed: where they come so close
    /// together that stamps would cost more than their share of the time, a sample is.
    #[inline]
    pub fn is_exact(&mut self, operator: u32, begin_ns: u64, steps: u64) -> bool {
        let seen = &mut self.seen[operator as usize];
        let since_ns = begin_ns.saturating_sub(seen.begin_ns);
        // A division costs as much as the rest of the stamp, and of steps that are all timed none is left out.
        let interval_ns = match steps - seen.steps {
            0 | 1 => since_ns,
            steps => since_ns / steps,
        };
        (seen.begin_ns, seen.steps) = (begin_ns, steps);
        // A mean that forgets: an eighth of each step.
        seen.interval_ns =
            seen.interval_ns - seen.interval_ns / 8 + (interval_ns / 8).min(self.least_ns * 16);
        seen.interval_ns >= self.least_ns
    }

    /// Notes a step. Whether there was room for that.
    #[inline(always)]
    pub fn note(&mut self, owner: &mut Owner, operator: u32, step: Noted) -> bool {
        let seen = &mut self.seen[operator as usize];
        let (plan, held_by, held_ns) = (seen.plan, seen.held_by, seen.held_ns);
        seen.held_by = Span::NONE;
        // Field by field where it will lie: a copy of what has just been written would have to wait for that.
        let has_room = self.rings.spans.push_with(owner, || Span {
            operator: plan,
            worker: step.worker,
            source: step.stamp.source() as u32,
            held_by,
            sequence: step.stamp.sequence(),
            due_ns: if step.has_message { step.stamp.due_ns } else { NO_DUE },
            held_ns,
            start_ns: step.start_ns,
            end_ns: step.end_ns,
        });
        if !has_room {
            self.left_out();
        }
        has_room
    }

    #[cold]
    fn left_out(&self) {
        // Relaxed: a count that orders nothing.
        self.rings.unread.fetch_add(1, Ordering::Relaxed);
    }

    /// The step that was noted last ended then: the next one begins right there, where each step is timed.
    #[inline]
    pub fn ends(&mut self, operator: u32, end_ns: u64, is_exact: bool) {
        (self.last, self.last_end_ns) = (operator, if is_exact { end_ns } else { 0 });
    }

    /// Notes that `operator` has work and no room for what comes of it.
    pub fn hold(&mut self, operator: u32, edge: usize, now_ns: u64) {
        let seen = &mut self.seen[operator as usize];
        if seen.held_by == Span::NONE {
            (seen.held_by, seen.held_ns) = (edge as u32, now_ns);
        }
    }

    pub fn miss(&self, owner: &mut Owner, late: Late) {
        let _oldest = self.rings.misses.push(owner, late);
    }
}
