//! Why a timer's thread was late: the way from the moment that it waited for to its first instruction, step by step.

use crate::attribute::{Gap, GapThread, GapVerdict, attribute};
use onbeat_trace::{Class, KernelEvent};
use serde::{Deserialize, Serialize};

/// One wake-up. Moments in nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerWake {
    /// On which core.
    pub cpu: u32,
    /// The moment that it waited for.
    pub due_ns: u64,
    /// When the handler of the timer's interrupt began; `None` where nobody has seen it.
    pub irq_ns: Option<u64>,
    /// When the kernel gave it the core; `None` where nobody has seen it.
    pub thread_ns: Option<u64>,
    /// When it was back in its own code.
    pub user_ns: u64,
}

impl TimerWake {
    /// From the due moment to the timer's interrupt.
    #[must_use]
    pub fn irq_latency_ns(&self) -> Option<u64> {
        self.irq_ns.map(|irq_ns| irq_ns.saturating_sub(self.due_ns))
    }

    /// To the core.
    #[must_use]
    pub fn thread_latency_ns(&self) -> Option<u64> {
        self.thread_ns.map(|thread_ns| thread_ns.saturating_sub(self.due_ns))
    }

    /// To its own code: what counts in the end.
    #[must_use]
    pub fn user_latency_ns(&self) -> u64 {
        self.user_ns.saturating_sub(self.due_ns)
    }
}

/// Why a wake-up took as long as it did. The steps sum to its latency, to the nanosecond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// Which wake-up.
    pub wake: TimerWake,
    /// In the order of time, those of a kind and name together.
    pub steps: Vec<LatencyStep>,
    /// Whether records are missing there.
    pub is_doubtful: bool,
    /// StepKind the kernel did when the timer's interrupt came, the innermost first, where its tracer tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// Something that took a part of the latency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyStep {
    /// StepKind.
    pub what: StepKind,
    /// Whose: of an interrupt, a softirq, a thread. Empty where it has none.
    pub name: String,
    /// The thread's id; 0 where it is none.
    pub pid: i32,
    /// How often.
    pub count: u64,
    /// How long, without what interrupted it.
    pub ns: u64,
}

/// StepKind took a part of a latency: the words are those of rtla's auto-analysis, where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// An interrupt that was being handled when the timer was due.
    PreviousIrq,
    /// The time until the timer's handler, while the core slept: the way out of an idle state.
    IdleExit,
    /// The time until the timer's handler, while a thread had the core: interrupts were off, or the machine was not there.
    HandlerDelay,
    /// The handler of the timer's interrupt.
    TimerIrq,
    /// A thread that had the core, though ours was ready.
    BlockingThread,
    /// An interrupt that cannot be masked.
    Nmi,
    /// Another interrupt.
    Irq,
    /// A softirq.
    Softirq,
    /// Between the events, until the core was ours: wake-up, scheduler, and who knows what.
    Switch,
    /// From there to our own code.
    Return,
    /// Other threads had the core; which ones nobody has seen.
    RunQueue,
    /// Nobody has seen what.
    Unexplained,
}

/// StepKind had the core between the due moment and our first instruction.
///
/// `events` are the kernel's of that core around that time, in any order.
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

/// The same, where all that is known is how long the thread waited for a core that others had.
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

/// Until the timer's handler.
fn before(steps: &mut Vec<LatencyStep>, verdict: &GapVerdict, irq_ns: Option<u64>) {
    let mut was_idle = None;
    let mut delay_ns = verdict.hardware_ns + verdict.unexplained_ns;
    for i in verdict.interferences.iter().filter(|i| Some(i.start_ns) != irq_ns || i.class == Class::Thread) {
        match i.class {
            Class::Irq if i.start_ns < verdict.gap.start_ns => {
                add(steps, StepKind::PreviousIrq, &i.name, 0, i.duration_ns);
            }
            // Whoever has the core cannot be blamed for what the interrupt waits for.
            Class::Thread => {
                was_idle.get_or_insert(i.pid == 0);
                delay_ns += i.duration_ns;
            }
            class => add(steps, interrupts(class), &i.name, 0, i.duration_ns),
        }
    }
    // The timer's own handler may have begun before its moment, for another one.
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
