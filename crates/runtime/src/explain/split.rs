//! From a window of time to its causes.
//!
//! The route of a message cuts the window into *waits* (for a turn) and *runs* (of a step). In each, the
//! worker's thread had a core or had none. If it had one, an interrupt may have taken the core's time. If it
//! had none, it slept, or another thread was first. The rest of a run is the operator's own. The rest of a
//! wait belongs to the worker's other steps, and to what had delayed them.

mod arrivals;

pub(super) use arrivals::origin;
mod awaited;
mod away;
mod backlog;
mod busy;
mod counts;
mod locks;
mod slices;

use super::case::{Case, Scheduling, ThreadFacts};
use super::cores::{CoreTurn, Cores};
use away::policy;
use backlog::{Backlogs, BehindStep};
use onbeat_trace::{CauseClass, Class, KernelEvent, OffCpu};
use slices::{Slice, slices};
use std::collections::BTreeMap;
use std::ops::Range;

/// Largest number of full edges over which a delay is followed.
const EDGES: u32 = 8;

/// Cause of a time, as the key by which times are summed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct What {
    pub class: CauseClass,
    pub name: String,
    pub operator: Option<u32>,
    pub core: Option<u32>,
    pub detail: Option<String>,
}

/// Times of a window, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Took {
    /// By cause: time beyond the usual.
    pub excess: BTreeMap<What, u64>,
    /// By operator: usual computing.
    pub usual: BTreeMap<u32, u64>,
}

/// Times of one or more slices, before waits for other steps are followed back.
#[derive(Debug, Default)]
struct SliceSums {
    took: Took,
    /// By operator: its computing time and its number of steps.
    own: BTreeMap<u32, (u64, u64)>,
    /// Steps that the message waited for.
    behind: Vec<BehindStep>,
}

impl Took {
    fn add(&mut self, what: What, ns: u64) {
        if ns > 0 {
            *self.excess.entry(what).or_default() += ns;
        }
    }
}

/// Splits the window of a case.
pub(super) fn split(case: &Case<'_>) -> Took {
    let cores = Cores::new(case);
    let backlogs = Backlogs::default();
    let mut sums = SliceSums::default();
    let arrival = arrivals::arrival(case);
    let from_ns = match arrival {
        Some(arrival) => arrivals::before(case, arrival, &mut sums.took),
        None => case.due_ns,
    };
    for slice in slices(case, from_ns, case.end_ns, case.way) {
        let piece =
            WindowPiece { case, cores: &cores, backlogs: &backlogs, slice: &slice, is_followed: true };
        piece.split(&mut sums);
        piece.settle(&mut sums);
    }
    let SliceSums { mut took, own, .. } = sums;
    for (operator, (ns, steps)) in own {
        let spared = spare(case, operator, ns, steps, &cores, &mut took);
        *took.usual.entry(operator).or_default() += spared;
    }
    if let Some(arrival) = arrival {
        arrivals::socket_to_network(case, arrival, &mut took);
    }
    if !case.counted.is_empty() {
        counts::apply(case, &mut took);
    }
    took
}

/// Adds the causes of an operator's computing beyond its allowance. Returns the rest.
fn spare(case: &Case<'_>, operator: u32, ns: u64, steps: u64, cores: &Cores<'_>, took: &mut Took) -> u64 {
    let facts = &case.operators[operator as usize];
    let Some(allowed_ns) = facts.budget_ns.or(facts.usual_ns).map(|ns| ns.saturating_mul(steps)) else {
        return ns;
    };
    let over_ns = ns.saturating_sub(allowed_ns);
    let runs = case.way.iter().filter(|span| span.operator == operator);
    let faults = runs.map(|span| cores.faults(span.worker, &(span.start_ns..span.end_ns)));
    let faults = faults.fold((0, 0), |sum, one| (sum.0 + one.0, u64::saturating_add(sum.1, one.1)));
    for (what, ns) in beyond(case, operator, allowed_ns, over_ns, faults) {
        took.add(what, ns);
    }
    ns - over_ns
}

/// Causes by which an operator computed for `over_ns` beyond its allowance: its page faults, up to the bound
/// of their cost, and for the rest the operator itself.
fn beyond(
    case: &Case<'_>,
    operator: u32,
    allowed_ns: u64,
    over_ns: u64,
    (faults, most_ns): (u64, u64),
) -> Vec<(What, u64)> {
    let facts = &case.operators[operator as usize];
    let what = |class, detail| What {
        class,
        name: facts.name.clone(),
        operator: Some(operator),
        core: None,
        detail: Some(detail),
    };
    let faults_ns = most_ns.min(over_ns);
    let by_faults = faults_ns.checked_div(faults).map(|each_ns| {
        let detail = format!("{faults} page faults at about {each_ns} ns each");
        (what(CauseClass::PageFault, detail), faults_ns)
    });
    let of = if facts.budget_ns.is_some() { "its budget of" } else { "its usual" };
    let detail = format!("over {of} {}", crate::base::wording::time(allowed_ns));
    let by_operator = (what(CauseClass::OwnCompute, detail), over_ns - faults_ns);
    by_faults.into_iter().chain([by_operator]).collect()
}

/// Splits one slice of a case.
struct WindowPiece<'p, 'c> {
    case: &'p Case<'c>,
    cores: &'p Cores<'c>,
    backlogs: &'p Backlogs,
    slice: &'p Slice,
    /// Whether waits are followed back to a backlog.
    is_followed: bool,
}

/// Greatest difference between two notes of the kernel's of one time, in two rings.
const CLOCKS_NS: u64 = 1_000;

impl WindowPiece<'_, '_> {
    /// Adds the times of the slice.
    fn split(&self, sums: &mut SliceSums) {
        let Slice { at, worker, operator, run, .. } = self.slice;
        if *run && (*operator as usize) < self.case.operators.len() {
            sums.own.entry(*operator).or_default().1 += 1;
        }
        let Some(thread) = self.case.threads.get(*worker as usize) else {
            sums.took.add(self.what(CauseClass::Unexplained, "", None), at.end - at.start);
            return;
        };
        let mut now_ns = self.until_due(at, sums);
        let at = &(now_ns..at.end);
        for (wait, during) in self.lock_waits(thread, at) {
            self.split_unlocked(thread, now_ns..during.start, sums);
            self.in_lock_wait(thread, wait, during.clone(), &mut sums.took);
            now_ns = during.end;
        }
        self.split_unlocked(thread, now_ns..at.end, sums);
    }

    /// Adds a time in which the thread waited for no lock that it knows.
    fn split_unlocked(&self, thread: &ThreadFacts, at: Range<u64>, sums: &mut SliceSums) {
        let mut now_ns = at.start;
        for off in self.cores.lines.off_in(self.slice.worker, &at) {
            let out_ns = self.begin_of(off).clamp(now_ns, at.end);
            let in_ns = self.end_of(off).clamp(out_ns, at.end);
            self.with_core(thread, now_ns..out_ns, sums);
            self.without_core(thread, off, out_ns..in_ns, sums);
            now_ns = in_ns;
        }
        self.with_core(thread, now_ns..at.end, sums);
    }

    /// Time at which a thread lost its core. If it is unknown, the thread is assumed to have run for its
    /// usual time before.
    fn begin_of(&self, off: &OffCpu) -> u64 {
        if off.is_begin_known {
            return off.out_ns;
        }
        let Slice { at, worker, operator, run, .. } = self.slice;
        let facts = self.case.operators.get(*operator as usize).filter(|_| *run);
        let busy_ns = match facts {
            Some(facts) => at.start.saturating_add(facts.usual_ns.unwrap_or(0)),
            None => {
                let steps = self.cores.lines.steps(*worker);
                let before = steps.partition_point(|span| span.end_ns < off.runnable_ns);
                steps[..before].last().map_or(0, |span| span.end_ns)
            }
        };
        off.out_ns.max(busy_ns.min(off.runnable_ns))
    }

    /// Time at which a thread got a core again. If it is unknown, that is when its next step began, at the
    /// latest. A thread that was ready to run waited only while its core was idle: kernels that omit the
    /// switch from idle show all others.
    fn end_of(&self, off: &OffCpu) -> u64 {
        if off.is_end_known {
            return off.in_ns;
        }
        let steps = self.cores.lines.steps(self.slice.worker);
        let next = steps.partition_point(|span| span.start_ns <= off.out_ns);
        let latest_ns = off.in_ns.min(steps.get(next).map_or(u64::MAX, |span| span.start_ns));
        if off.runnable_ns >= latest_ns {
            return latest_ns;
        }
        let turns = self.cores.turns(Some(off.cpu), &(off.runnable_ns..latest_ns));
        // The core may be idle again as soon as the thread leaves it for the next time.
        let is_idle = |turn: &&CoreTurn<'_>| {
            turn.event.class == Class::Thread && turn.event.pid == 0 && turn.at.end <= latest_ns + CLOCKS_NS
        };
        turns.iter().rfind(is_idle).map_or(off.runnable_ns, |turn| turn.at.end.min(latest_ns))
    }

    fn what(&self, class: CauseClass, name: impl Into<String>, core: Option<u32>) -> What {
        let operator = Some(self.slice.operator).filter(|&it| (it as usize) < self.case.operators.len());
        What { class, name: name.into(), operator, core, detail: None }
    }

    fn operator_name(&self) -> &str {
        self.case.operators.get(self.slice.operator as usize).map_or("", |operator| &operator.name)
    }

    /// Adds a time in which the thread had a core, with its interruptions.
    fn with_core(&self, thread: &ThreadFacts, at: Range<u64>, sums: &mut SliceSums) {
        if at.is_empty() {
            return;
        }
        let core = self.cores.core_of(self.slice.worker, at.start);
        let mut now_ns = at.start;
        for turn in self.cores.turns(core, &at) {
            let event = turn.event;
            let (from_ns, to_ns) = (turn.at.start.max(now_ns), turn.at.end.min(at.end));
            if from_ns >= to_ns || event.class == Class::Thread && event.pid == thread.tid {
                continue;
            }
            self.own(now_ns..from_ns, sums);
            now_ns = to_ns;
            let what = match event.class {
                Class::Thread if event.pid == 0 && !self.slice.run => {
                    // The thread slept. The time of its wake-up is unknown.
                    self.asleep(None, from_ns..to_ns, sums);
                    continue;
                }
                // A sleeping thread would have a wake-up event. A thread whose run time is used up has none.
                Class::Thread if event.pid == 0 && thread.scheduling == Scheduling::Deadline => {
                    self.what(CauseClass::DeadlineBudget, "", core)
                }
                Class::Thread if event.pid == 0 => {
                    self.what(CauseClass::SystemCall, self.operator_name(), core)
                }
                Class::Thread => self.preempted(event, core),
                _ => self.interrupted(event, core),
            };
            sums.took.add(what, to_ns - from_ns);
        }
        self.own(now_ns..at.end, sums);
    }

    fn interrupted(&self, event: &KernelEvent, core: Option<u32>) -> What {
        let class = match event.class {
            Class::Nmi => CauseClass::Nmi,
            Class::Irq => CauseClass::Irq,
            Class::Softirq => CauseClass::Softirq,
            _ => CauseClass::Hardware,
        };
        self.what(class, &*event.name, core)
    }

    fn preempted(&self, event: &KernelEvent, core: Option<u32>) -> What {
        // Workers of all runs are called alike.
        let is_ours = || self.case.threads.iter().any(|thread| thread.tid == event.pid);
        let name = match event.name.as_str() {
            name if name.starts_with("onbeat-w") && !is_ours() => format!("{name} of another run"),
            name => name.to_owned(),
        };
        What { detail: Some(policy(event.priority)), ..self.what(CauseClass::Preempted, name, core) }
    }
}
