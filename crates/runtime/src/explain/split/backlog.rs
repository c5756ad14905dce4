//! Waits for earlier steps, followed back to what had delayed these.
//!
//! ```text
//!             began here            the message is due      its turn
//! worker  ────┬───────┬─────────────────┬──────────┬───────┬──
//!   steps     │   A   │        B   (kept off)      │   C   │ message
//!             └─ before: what made steps late ─┘   └ behind ┘
//! ```
//!
//! While a message waits, its worker computes steps of earlier messages. These steps are in the way because
//! something delayed them before the message was due. If the worker had no pause between, each nanosecond
//! that it lost since then delays the message by as much. So the wait is divided among these losses. The
//! rest of the wait is the queue's: the steps take longer than there is time.

use super::slices::{Slice, held};
use super::{SliceSums, Took, What, WindowPiece, beyond};
use crate::explain::share::divide;
use onbeat_trace::{CauseClass, Left, Span};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// Step of the worker for which the message waited.
#[derive(Debug)]
pub(super) struct BehindStep {
    step: Span,
    /// Edge that had no room meanwhile, if that was the reason of the wait.
    full: Option<u32>,
    /// Computing time of the step within the wait, in nanoseconds.
    waited_ns: u64,
}

impl BehindStep {
    /// Adds a time to the last step, if it is of that step, or as a new step.
    pub fn add(all: &mut Vec<BehindStep>, step: &Span, full: Option<u32>, ns: u64) {
        match all.last_mut().filter(|last| last.step == *step && last.full == full) {
            Some(last) => last.waited_ns += ns,
            None => all.push(BehindStep { step: *step, full, waited_ns: ns }),
        }
    }
}

/// Whether a cause kept a worker from running its steps, whatever these did.
fn is_foreign(class: CauseClass) -> bool {
    matches!(
        class,
        CauseClass::Preempted
            | CauseClass::RunQueueWait
            | CauseClass::Irq
            | CauseClass::Softirq
            | CauseClass::Nmi
            | CauseClass::Stopped
            | CauseClass::Migration
            | CauseClass::RtThrottling
            | CauseClass::DeadlineBudget
            | CauseClass::Hardware
    )
}

/// Adds `most_ns` to causes in proportion to their times, but to none more than its time. Returns the rest.
fn follow(causes: &[(What, u64)], most_ns: u64, took: &mut Took) -> u64 {
    let times: Vec<u64> = causes.iter().map(|(_, ns)| *ns).collect();
    let all_ns: u64 = times.iter().sum();
    let shares = if all_ns > most_ns { divide(most_ns, &times) } else { times };
    for ((what, _), ns) in causes.iter().zip(shares) {
        took.add(what.clone(), ns);
    }
    most_ns.saturating_sub(all_ns)
}

/// Since when the message of a step waited. Without a due time it came when the step began.
fn since_ns(step: &Span) -> u64 {
    step.due_ns.min(step.start_ns)
}

impl SliceSums {
    fn computed_ns(&self, step: &Span) -> u64 {
        self.own.get(&step.operator).map_or(0, |(ns, _)| *ns)
    }
}

/// Computing of one operator in a backlog.
#[derive(Debug, Clone, Default)]
struct ComputedSum {
    /// Time beyond the allowance. Around a usual time, shorter steps make up for longer ones.
    over_ns: i64,
    allowed_ns: u64,
    /// Times of its steps.
    runs: Vec<Range<u64>>,
}

impl ComputedSum {
    fn add(&mut self, piece: &WindowPiece<'_, '_>, step: &Span, at: Range<u64>, computed_ns: u64) {
        self.allowed_ns = piece.allowed_ns(step);
        let has_budget =
            piece.case.operators.get(step.operator as usize).is_some_and(|facts| facts.budget_ns.is_some());
        let over_ns = (computed_ns.min(MOST_NS) as i64).saturating_sub(self.allowed_ns.min(MOST_NS) as i64);
        self.over_ns = self.over_ns.saturating_add(if has_budget { over_ns.max(0) } else { over_ns });
        self.runs.push(at);
    }
}

/// Times of a worker's backlog up to one of its steps.
#[derive(Debug, Clone)]
struct BacklogSums {
    /// Number of its first step, and since when that step waited.
    begin: (usize, u64),
    /// Number of the step that follows those that were added.
    next: usize,
    now_ns: u64,
    took: Took,
    computed: BTreeMap<u32, ComputedSum>,
}

/// By worker: the backlog that was asked for last.
///
/// The waits of one message ask for the same backlog up to one moment after another. Each time, only the
/// steps since the last time are added, so that a message behind `n` others takes `n` steps, and not their
/// square.
#[derive(Debug, Default)]
pub(super) struct Backlogs(RefCell<BTreeMap<u32, BacklogSums>>);

impl Backlogs {
    /// Returns the sums of a backlog with this begin, up to a time before `until_ns`.
    fn take(&self, worker: u32, begin: (usize, u64), until_ns: u64) -> BacklogSums {
        let is_same = |sums: &BacklogSums| sums.begin == begin && sums.now_ns <= until_ns;
        self.0.borrow_mut().remove(&worker).filter(is_same).unwrap_or_else(|| BacklogSums {
            begin,
            next: begin.0,
            now_ns: begin.1,
            took: Took::default(),
            computed: BTreeMap::new(),
        })
    }

    fn keep(&self, worker: u32, sums: BacklogSums) {
        self.0.borrow_mut().insert(worker, sums);
    }
}

/// Bound of a time that is added with a sign.
const MOST_NS: u64 = i64::MAX as u64;

impl WindowPiece<'_, '_> {
    /// Adds the causes of a wait for the steps in `behind`: first those that made these steps longer, then
    /// those that had delayed them, and for the rest the queue.
    pub(super) fn settle(&self, sums: &mut SliceSums) {
        let mut behind = std::mem::take(&mut sums.behind);
        if behind.is_empty() {
            return;
        }
        for BehindStep { step, waited_ns, .. } in &mut behind {
            for (what, ns) in self.over(step) {
                let ns = ns.min(*waited_ns);
                sums.took.add(what, ns);
                *waited_ns -= ns;
            }
        }
        let rest_ns = behind.iter().map(|behind| behind.waited_ns).sum();
        let before = self.backlog(self.slice.worker, &self.slice.at);
        let mut followed_ns = rest_ns - follow(&before, rest_ns, &mut sums.took);
        for BehindStep { step, full, waited_ns } in behind {
            let by_causes_ns = followed_ns.min(waited_ns);
            followed_ns -= by_causes_ns;
            let what = full.and_then(|edge| self.full(edge)).unwrap_or_else(|| self.queued(step.operator));
            sums.took.add(what, waited_ns - by_causes_ns);
        }
    }

    fn queued(&self, operator: u32) -> What {
        let name = self.case.operators.get(operator as usize).map_or("", |facts| &facts.name);
        let detail = Some(format!("the worker was in {name}"));
        What { detail, ..self.what(CauseClass::QueueWait, name, None) }
    }

    /// Causes by which a step computed beyond its allowance, as far as that falls into this slice.
    fn over(&self, step: &Span) -> Vec<(What, u64)> {
        let begin_ns = self.slice.at.start;
        let whole = step.start_ns..step.end_ns.min(self.case.end_ns);
        let before = step.start_ns..begin_ns.clamp(step.start_ns, whole.end.max(step.start_ns));
        let allowed_ns = self.allowed_ns(step);
        let beyond_ns = |at| self.computed_ns(step, at).saturating_sub(allowed_ns);
        let over_ns = beyond_ns(whole.clone()).saturating_sub(beyond_ns(before));
        self.beyond_of(step, whole, over_ns)
    }

    fn beyond_of(&self, step: &Span, at: Range<u64>, over_ns: u64) -> Vec<(What, u64)> {
        if over_ns == 0 {
            return Vec::new();
        }
        let faults = self.cores.faults(step.worker, &at);
        beyond(self.case, step.operator, self.allowed_ns(step), over_ns, faults)
    }

    /// Allowed computing time of a step: its budget, or what is usual.
    fn allowed_ns(&self, step: &Span) -> u64 {
        let facts = self.case.operators.get(step.operator as usize);
        facts.and_then(|facts| facts.budget_ns.or(facts.usual_ns)).unwrap_or(u64::MAX)
    }

    /// Computing time of a step: time with a core, without interruptions.
    fn computed_ns(&self, step: &Span, at: Range<u64>) -> u64 {
        let mut ran = SliceSums::default();
        self.split_other(&slice(step, at, true), &mut ran);
        ran.computed_ns(step)
    }

    /// Adds the times of another slice, whose waits are not followed back.
    fn split_other(&self, slice: &Slice, sums: &mut SliceSums) {
        if !slice.at.is_empty() {
            WindowPiece { slice, is_followed: false, ..*self }.split(sums);
        }
    }

    /// Causes by which a worker lost time in the backlog that it had at the begin of a time, with the lost
    /// times. Empty if it had none.
    fn backlog(&self, worker: u32, at: &Range<u64>) -> Vec<(What, u64)> {
        let begin = self.backlog_begin(worker, at);
        let mut sums = self.backlogs.take(worker, begin, at.start);
        let steps = self.cores.lines.steps(worker);
        while let Some(step) = steps.get(sums.next).filter(|step| step.end_ns <= at.start) {
            self.add_step(&mut sums, step, step.end_ns);
        }
        self.backlogs.keep(worker, sums.clone());
        if let Some(step) = steps.get(sums.next).filter(|step| step.start_ns < at.start) {
            self.add_step(&mut sums, step, at.start);
        }
        let BacklogSums { mut took, computed, .. } = sums;
        for (operator, ComputedSum { over_ns, allowed_ns, runs }) in computed {
            let Some(over_ns) = u64::try_from(over_ns).ok().filter(|ns| *ns > 0) else { continue };
            let faults = runs.iter().map(|at| self.cores.faults(worker, at));
            let faults = faults.fold((0, 0), |sum, one| (sum.0 + one.0, u64::saturating_add(sum.1, one.1)));
            let beyond = beyond(self.case, operator, allowed_ns, over_ns, faults);
            beyond.into_iter().for_each(|(what, ns)| took.add(what, ns));
        }
        took.excess.into_iter().filter(|(what, _)| what.class != CauseClass::Unexplained).collect()
    }

    /// Adds the next step of a backlog, as far as it ran before `until_ns`, and the wait before it.
    fn add_step(&self, sums: &mut BacklogSums, step: &Span, until_ns: u64) {
        let wait = sums.now_ns..step.start_ns.max(sums.now_ns);
        let mut waited = SliceSums::default();
        if !wait.is_empty() {
            let held = held(self.case, step.operator, &wait);
            self.split_other(&Slice { held, ..slice(step, wait, false) }, &mut waited);
        }
        let run = step.start_ns.max(sums.now_ns)..until_ns;
        let mut ran = SliceSums::default();
        self.split_other(&slice(step, run.clone(), true), &mut ran);
        sums.computed.entry(step.operator).or_default().add(self, step, run.clone(), ran.computed_ns(step));
        let lost = waited.took.excess.into_iter().chain(ran.took.excess);
        lost.for_each(|(what, ns)| sums.took.add(what, ns));
        sums.now_ns = sums.now_ns.max(run.end);
        sums.next += 1;
    }

    /// First step of the backlog that a worker had at the begin of a time, and since when that step waited.
    ///
    /// A step belongs to the backlog if another one waited for its end: one that was due before that.
    fn backlog_begin(&self, worker: u32, at: &Range<u64>) -> (usize, u64) {
        let steps = self.cores.lines.steps(worker);
        let mut first = steps.partition_point(|step| step.start_ns < at.start);
        let waiting = self.cores.lines.steps_in(worker, at).iter();
        let mut begin_ns = waiting.map(|step| since_ns(step)).fold(at.start, u64::min);
        while let Some(step) = first.checked_sub(1).map(|before| steps[before]) {
            if step.end_ns <= begin_ns {
                break;
            }
            if let Some(next) = steps.get(first)
                && let Some(woken_ns) = self.woken_ns(next, step.end_ns)
            {
                return (first, woken_ns.min(at.start));
            }
            first -= 1;
            begin_ns = begin_ns.min(since_ns(step));
        }
        // A step that waited before the first one known: nothing is known of that time.
        let free_ns = first.checked_sub(1).map_or(self.cores.begin_ns(), |before| steps[before].end_ns);
        (first, begin_ns.max(free_ns).min(at.start))
    }

    /// When the worker was woken for a step, if it slept since `free_ns` because that step's message had not
    /// come. A source sleeps for other reasons: it waits for its time, or for room.
    fn woken_ns(&self, step: &Span, free_ns: u64) -> Option<u64> {
        let is_source = self.case.operators.get(step.operator as usize).is_some_and(|facts| facts.is_source);
        if is_source || step.held_by != Span::NONE || step.start_ns <= free_ns {
            return None;
        }
        let slept = self.cores.lines.off_in(step.worker, &(free_ns..step.start_ns)).iter().rev();
        let mut slept = slept.filter(|off| off.why == Left::Asleep && off.out_ns >= free_ns);
        slept.next().map(|off| off.runnable_ns.clamp(free_ns, step.start_ns))
    }

    /// Adds a time in which a full edge held the operator back. If the consumer has another worker, what kept
    /// that worker from its core is the cause; for the rest, the consumer did not take.
    pub(super) fn held_up(&self, edge: u32, at: Range<u64>, sums: &mut SliceSums) {
        let (Some(facts), Some(full)) = (self.case.edges.get(edge as usize), self.full(edge)) else { return };
        let worker = self.consumer(edge, at.end).filter(|&worker| worker != self.slice.worker);
        let Some(worker) = worker else {
            sums.took.add(full, at.end - at.start);
            return;
        };
        let step = Span { operator: facts.to, worker, ..Span::default() };
        let mut ran = SliceSums::default();
        self.split_other(&slice(&step, at.clone(), true), &mut ran);
        let computed_ns = ran.computed_ns(&step);
        let foreign = |(what, _): &(What, u64)| is_foreign(what.class);
        let direct: Vec<_> = ran.took.excess.into_iter().filter(foreign).collect();
        let mut left_ns = follow(&direct, at.end - at.start, &mut sums.took);
        if self.is_followed {
            let before: Vec<_> = self.backlog(worker, &at).into_iter().filter(foreign).collect();
            let computed_ns = computed_ns.min(left_ns);
            left_ns -= computed_ns - follow(&before, computed_ns, &mut sums.took);
        }
        sums.took.add(full, left_ns);
    }
}

fn slice(step: &Span, at: Range<u64>, run: bool) -> Slice {
    Slice {
        at,
        worker: step.worker,
        operator: step.operator,
        run,
        held: Vec::new(),
        source: step.source,
        sequence: step.sequence,
        due_ns: 0,
    }
}
