//! Analysis of a late timer wake-up: the steps from its due time to the thread's first instruction.

use crate::attribute::{Gap, GapThread, GapVerdict, attribute};
use onbeat_trace::{Class, KernelEvent};
use serde::{Deserialize, Serialize};

/// A timer wake-up. Times in nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerWake {
    /// The core.
    pub cpu: u32,
    /// Time for which the timer was set.
    pub due_ns: u64,
    /// Start of the timer's interrupt handler; `None` if the source does not show it.
    pub irq_ns: Option<u64>,
    /// Time at which the kernel gave the core to the thread; `None` if the source does not show it.
    pub thread_ns: Option<u64>,
    /// Time at which the thread's own code ran.
    pub user_ns: u64,
}

impl TimerWake {
    /// Latency of the timer's interrupt.
    #[must_use]
    pub fn irq_latency_ns(&self) -> Option<u64> {
        self.irq_ns.map(|irq_ns| irq_ns.saturating_sub(self.due_ns))
    }

    /// Latency until the thread gets the core.
    #[must_use]
    pub fn thread_latency_ns(&self) -> Option<u64> {
        self.thread_ns.map(|thread_ns| thread_ns.saturating_sub(self.due_ns))
    }

    /// Latency until the thread's own code runs: the one that matters to the thread.
    #[must_use]
    pub fn user_latency_ns(&self) -> u64 {
        self.user_ns.saturating_sub(self.due_ns)
    }
}

/// Steps of a wake-up's latency. They add up to it, to the nanosecond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// The wake-up.
    pub wake: TimerWake,
    /// Steps in order of time; those of one kind and name are merged.
    pub steps: Vec<LatencyStep>,
    /// Whether records are missing.
    pub is_doubtful: bool,
    /// The kernel's call stack at the timer's interrupt, the innermost frame first, if its tracer reports
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// A part of the latency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyStep {
    /// Kind of step.
    pub what: StepKind,
    /// Name of the interrupt, softirq or thread; empty if it has none.
    pub name: String,
    /// Id of the thread; 0 if it is not a thread.
    pub pid: i32,
    /// Number of occurrences.
    pub count: u64,
    /// Time, without what interrupted it.
    pub ns: u64,
}

/// Kind of a step, in the terms of rtla's auto-analysis where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Interrupt that was being handled when the timer was due.
    PreviousIrq,
    /// Time until the timer's handler while the core slept: the exit from an idle state.
    IdleExit,
    /// Time until the timer's handler while a thread had the core: interrupts were off, or the machine itself
    /// was stopped.
    HandlerDelay,
    /// The handler of the timer's interrupt.
    TimerIrq,
    /// Thread that kept the core although the woken thread was ready.
    BlockingThread,
    /// Non-maskable interrupt.
    Nmi,
    /// Another interrupt.
    Irq,
    /// A softirq.
    Softirq,
    /// Time without events until the thread gets the core: wake-up, scheduler, and unknown causes.
    Switch,
    /// Time from getting the core to the thread's own code.
    Return,
    /// Time in which other, unknown threads had the core.
    RunQueue,
    /// Time without a known cause.
    Unexplained,
}

/// Attributes the time between the due time and the thread's first instruction.
///
/// `events` are the kernel events of that core around that time, in any order.
#[must_use]
pub fn analyse(wake: TimerWake, events: &[KernelEvent]) -> Analysis {
    let mut steps = Vec::new();
    let Some(irq_ns) = wake.irq_ns else {
        later(&mut steps, &part(wake, wake.due_ns, wake.user_ns, events), StepKind::Unexplained);
        return Analysis { wake, steps, is_doubtful: false, stack: Vec::new() };
    };
    let irq_ns = irq_ns.clamp(wake.due_ns, wake.user_ns);
    let thread_ns = wake.thread_ns.unwrap_or(irq_ns).clamp(irq_ns, wake.user_ns);
    before(&mut steps, &part(wake, wake.due_ns, irq_ns, events), wake.irq_ns);
    let mut behind = part(wake, irq_ns, thread_ns, events);
    let timer =
        behind.interferences.iter().position(|i| i.class == Class::Irq && Some(i.start_ns) == wake.irq_ns);
    if let Some(timer) = timer {
        let timer = behind.interferences.remove(timer);
        add(&mut steps, StepKind::TimerIrq, &timer.name, 0, timer.duration_ns);
    }
    later(&mut steps, &behind, StepKind::Switch);
    later(&mut steps, &part(wake, thread_ns, wake.user_ns, events), StepKind::Return);
    steps.retain(|step| step.ns > 0 || step.count > 1);
    Analysis { wake, steps, is_doubtful: false, stack: Vec::new() }
}

/// Analyses a wake-up when only the thread's wait for the core is known.
#[must_use]
pub fn analyse_by_wait(wake: TimerWake, waited_ns: u64) -> Analysis {
    let waited_ns = waited_ns.min(wake.user_latency_ns());
    let mut steps = Vec::new();
    if waited_ns > 0 {
        add(&mut steps, StepKind::RunQueue, "", 0, waited_ns);
    }
    add(&mut steps, StepKind::Unexplained, "", 0, wake.user_latency_ns() - waited_ns);
    Analysis { wake, steps, is_doubtful: false, stack: Vec::new() }
}

fn part(wake: TimerWake, start_ns: u64, end_ns: u64, events: &[KernelEvent]) -> GapVerdict {
    attribute(Gap { cpu: wake.cpu, start_ns, end_ns }, events, GapThread::Sleeper)
}

/// Adds the steps before the timer's handler.
fn before(steps: &mut Vec<LatencyStep>, verdict: &GapVerdict, irq_ns: Option<u64>) {
    let mut was_idle = None;
    let mut delay_ns = verdict.hardware_ns + verdict.unexplained_ns;
    for i in verdict.interferences.iter().filter(|i| Some(i.start_ns) != irq_ns || i.class == Class::Thread) {
        match i.class {
            Class::Irq if i.start_ns < verdict.gap.start_ns => {
                add(steps, StepKind::PreviousIrq, &i.name, 0, i.duration_ns);
            }
            // The thread that has the core is not to blame for a late interrupt.
            Class::Thread => {
                was_idle.get_or_insert(i.pid == 0);
                delay_ns += i.duration_ns;
            }
            class => add(steps, interrupts(class), &i.name, 0, i.duration_ns),
        }
    }
    // The timer's handler may have begun before the due time, for an earlier timer.
    let early = verdict.interferences.iter().find(|i| Some(i.start_ns) == irq_ns && i.class == Class::Irq);
    if let Some(timer) = early {
        add(steps, StepKind::TimerIrq, &timer.name, 0, timer.duration_ns);
    }
    let what = if was_idle == Some(true) { StepKind::IdleExit } else { StepKind::HandlerDelay };
    add(steps, what, "", 0, delay_ns);
}

fn later(steps: &mut Vec<LatencyStep>, verdict: &GapVerdict, rest: StepKind) {
    for i in &verdict.interferences {
        let (what, pid) = match i.class {
            Class::Thread => (StepKind::BlockingThread, i.pid),
            class => (interrupts(class), 0),
        };
        add(steps, what, &i.name, pid, i.duration_ns);
    }
    add(steps, rest, "", 0, verdict.hardware_ns + verdict.unexplained_ns);
}

fn interrupts(class: Class) -> StepKind {
    match class {
        Class::Nmi => StepKind::Nmi,
        Class::Softirq => StepKind::Softirq,
        _ => StepKind::Irq,
    }
}

fn add(steps: &mut Vec<LatencyStep>, what: StepKind, name: &str, pid: i32, ns: u64) {
    match steps.iter_mut().find(|step| step.what == what && step.name == name && step.pid == pid) {
        Some(step) => (step.count, step.ns) = (step.count + 1, step.ns + ns),
        None => steps.push(LatencyStep { what, name: name.to_owned(), pid, count: 1, ns }),
    }
}
