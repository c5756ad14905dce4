//! Flight recorder: notes of a worker about its steps, made without waiting and without allocation.

use crate::graph::limits::OnMiss;
use crate::operator::context::waits::WaitLog;
use crate::operator::message::{NO_DUE, Stamp};
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_queue::{Lossy, Owner, Spsc};
use onbeat_trace::Span;
use onbeat_trace::record::MissKind;
use std::sync::Arc;

/// Highest cost of one time stamp, in nanoseconds: the goal of `onbeat-runtime`'s bench.
const STAMP_NS: u64 = 15;

/// Part of a worker's time that time stamps may cost: one in this many.
const SHARE: u64 = 100;

/// Most misses between two reads of the recorder thread.
const MISSES: usize = 1024;

/// Number of the slowest messages that are kept per path.
pub(crate) const SLOWEST: usize = 5;

/// Reason to explain a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The message came too late.
    Miss(MissKind),
    /// The message is one of the slowest of its path so far.
    Slow,
}

/// A message to explain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Late {
    pub about: About,
    /// Number in the plan: of the path, or of the operator with the deadline.
    pub of: usize,
    /// Number in the plan of the operator where the message ended.
    pub end: usize,
    pub source: u32,
    pub sequence: u64,
    pub due_ns: u64,
    pub end_ns: u64,
    pub limit_ns: u64,
    pub on_miss: OnMiss,
}

impl Late {
    /// Time by which the message missed its limit.
    pub fn late_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.due_ns).saturating_sub(self.limit_ns)
    }
}

/// Note of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepNote {
    /// Number of the worker in the plan.
    pub worker: u32,
    /// Stamp of the message that the step worked on.
    pub stamp: Stamp,
    /// Whether the step worked on a message: it took one, or made one as a source.
    pub has_message: bool,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// Rings of one part. The part writes, the recorder thread reads.
#[derive(Debug, Clone)]
pub(crate) struct Rings {
    pub spans: Arc<Spsc<Span>>,
    /// Number of spans that were lost because the ring was full.
    pub unread: Arc<AtomicU64>,
    pub misses: Arc<Lossy<Late>>,
    /// Waits for locks, of all parts of the run.
    pub waits: Arc<WaitLog>,
}

impl Rings {
    pub fn new(part: &Owner, recorder: &Owner, spans: usize, waits: &Arc<WaitLog>) -> Self {
        Rings {
            spans: Arc::new(Spsc::new(part, recorder, spans)),
            unread: Arc::default(),
            misses: Arc::new(Lossy::new(part, recorder, MISSES)),
            waits: Arc::clone(waits),
        }
    }
}

/// Flight recorder of one part.
#[derive(Debug)]
pub(crate) struct Flight {
    rings: Rings,
    /// By operator.
    operators: Box<[OperatorTiming]>,
    /// Shortest mean interval between steps of an operator at which each step is timed.
    least_ns: u64,
    /// Operator that was stepped last.
    pub last: u32,
    /// End of that step if the next step can begin right there, otherwise 0.
    pub last_end_ns: u64,
}

/// Intervals of one operator's steps.
#[derive(Debug, Clone, Copy)]
struct OperatorTiming {
    /// Number in the plan.
    plan: u32,
    /// Begin of the last timed step.
    begin_ns: u64,
    /// Number of the last timed step.
    steps: u64,
    /// Mean interval of the last steps.
    interval_ns: u64,
    /// Full edge that keeps the operator from being stepped, and since when.
    held_by: u32,
    held_ns: u64,
}

impl Flight {
    /// A recorder for operators with these numbers in the plan.
    pub fn new(rings: Rings, operators: impl ExactSizeIterator<Item = usize>) -> Self {
        let least_ns = STAMP_NS * SHARE * operators.len() as u64;
        let timing = |plan: usize| OperatorTiming {
            plan: plan as u32,
            begin_ns: 0,
            steps: 0,
            interval_ns: least_ns * 256,
            held_by: Span::NONE,
            held_ns: 0,
        };
        Flight { rings, operators: operators.map(timing).collect(), least_ns, last: u32::MAX, last_end_ns: 0 }
    }

    /// Returns the log of waits for locks.
    pub fn waits(&self) -> Arc<WaitLog> {
        Arc::clone(&self.rings.waits)
    }

    /// Notes the begin of step number `steps` of `operator`. Returns whether each of its steps should be
    /// timed. If steps follow so closely that time stamps would cost more than [`SHARE`] allows, a sample is
    /// timed instead.
    #[inline]
    pub fn is_exact(&mut self, operator: u32, begin_ns: u64, steps: u64) -> bool {
        let timing = &mut self.operators[operator as usize];
        let since_ns = begin_ns.saturating_sub(timing.begin_ns);
        // A division costs as much as the rest of the time stamp. It is not needed while each step is timed.
        let interval_ns = match steps - timing.steps {
            0 | 1 => since_ns,
            steps => since_ns / steps,
        };
        (timing.begin_ns, timing.steps) = (begin_ns, steps);
        // Moving mean: each interval counts an eighth.
        timing.interval_ns =
            timing.interval_ns - timing.interval_ns / 8 + (interval_ns / 8).min(self.least_ns * 16);
        timing.interval_ns >= self.least_ns
    }

    /// Notes a step. Returns whether there was room.
    #[inline(always)]
    pub fn note(&mut self, owner: &mut Owner, operator: u32, step: StepNote) -> bool {
        let timing = &mut self.operators[operator as usize];
        let (plan, held_by, held_ns) = (timing.plan, timing.held_by, timing.held_ns);
        timing.held_by = Span::NONE;
        // Written in place, field by field: a copy of just-written fields would have to wait for these
        // stores.
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
            self.count_unread();
        }
        has_room
    }

    #[cold]
    fn count_unread(&self) {
        // Relaxed: a count that orders nothing.
        self.rings.unread.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the end of a step. The next step begins right there if each step is timed.
    #[inline]
    pub fn note_end(&mut self, operator: u32, end_ns: u64, is_exact: bool) {
        (self.last, self.last_end_ns) = (operator, if is_exact { end_ns } else { 0 });
    }

    /// Notes that `operator` has work and waits for room on an edge.
    pub fn note_hold(&mut self, operator: u32, edge: usize, now_ns: u64) {
        let timing = &mut self.operators[operator as usize];
        if timing.held_by == Span::NONE {
            (timing.held_by, timing.held_ns) = (edge as u32, now_ns);
        }
    }

    /// Notes a message to explain.
    pub fn note_late(&self, owner: &mut Owner, late: Late) {
        let _oldest = self.rings.misses.push(owner, late);
    }
}
