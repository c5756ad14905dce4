//! Table of causes and of the `onbeat doctor` findings that explain how to fix them.
//!
//! A run uses it to name a finding for each of its causes. The doctor uses it to say what a finding cost a
//! run.

use super::{Cause, CauseClass};
use CauseClass::{
    DeadlineBudget, Hardware, Irq, Migration, Nmi, OwnCompute, PageFault, Preempted, RtThrottling,
    RunQueueWait, SocketWait, Softirq, TimerLate, Unexplained,
};

/// Row of the table: a group of causes, and the findings that explain how to fix them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseFix {
    /// Class of the causes.
    pub class: CauseClass,
    /// Prefixes of the causes' names; empty for all causes of the class.
    pub names: &'static [&'static str],
    /// Finding to look at first; `None` if the fix is in the pipeline, or if a later row names the finding.
    first: Option<&'static str>,
    /// Further findings that can contribute.
    also: &'static [&'static str],
    /// Whether the row is for those causes only whose finding is `first`.
    is_chosen: bool,
}

const fn row(
    class: CauseClass,
    names: &'static [&'static str],
    first: Option<&'static str>,
    also: &'static [&'static str],
) -> CauseFix {
    CauseFix { class, names, first, also, is_chosen: false }
}

/// A row for threads that took the core, of which the policies decide.
const fn rivals(first: &'static str, also: &'static [&'static str]) -> CauseFix {
    CauseFix { class: Preempted, names: &[], first: Some(first), also, is_chosen: true }
}

/// The finding of a real-time thread that took the core.
const RIVALS: &str = "rivals";

/// The finding of a normal thread that kept a real-time worker off its core: it was in the kernel.
const IN_KERNEL: &str = "preemption-model";

/// Within a class, rows with names come first: a cause gets `first` of the first matching row that has one.
const TABLE: &[CauseFix] = &[
    row(
        OwnCompute,
        &[],
        None,
        &["governor", "energy-bias", "clock-source", "clock-read", "tracing", "smt", "shared-caches"],
    ),
    row(Preempted, &["kdamond"], Some("damon"), &[]),
    row(Preempted, &["kcompactd", "khugepaged"], Some("compaction"), &["huge-pages"]),
    row(Preempted, &["ksmd"], Some("ksm"), &[]),
    row(Preempted, &["kswapd"], Some("swap"), &[]),
    row(Preempted, &["kworker"], Some("work-queues"), &["vmstat", "preempt-rt"]),
    row(Preempted, &["ksoftirqd"], None, &["kernel-threads", "preempt-rt"]),
    row(Preempted, &["rcu"], None, &["kernel-threads"]),
    row(Preempted, &["watchdog", "migration", "cpu_stop"], None, &["watchdogs"]),
    row(Preempted, &["osnoise", "timerlat"], None, &["tracing"]),
    row(Preempted, &[], Some("isolcpus"), &["rt-rights", "pipeline-cores"]),
    rivals(RIVALS, &["pipeline-policies"]),
    rivals(IN_KERNEL, &["isolcpus", "fair-server", "pipeline-cores"]),
    row(
        RunQueueWait,
        &[],
        Some("isolcpus"),
        &["preemption-model", "rt-rights", "autogroup", "sched-ext", "pressure", "cgroup-quota"],
    ),
    row(Migration, &[], Some("isolcpus"), &["cpu-rights", "pipeline-cores"]),
    // The second name is the one in `/proc/interrupts`.
    row(Irq, &["local_timer", "LOC"], Some("nohz-full"), &[]),
    row(Irq, &[], Some("device-interrupts"), &["irqaffinity", "irqbalance", "threaded-interrupts"]),
    row(Softirq, &["RCU"], Some("rcu-nocbs"), &[]),
    row(Softirq, &["TIMER"], None, &["timer-migration", "machine-checks"]),
    row(Softirq, &["HRTIMER"], None, &["timer-migration"]),
    row(Softirq, &["NET_RX", "NET_TX"], None, &["packet-steering"]),
    row(
        Softirq,
        &[],
        Some("irqaffinity"),
        &["device-interrupts", "irqbalance", "threaded-interrupts", "preempt-rt"],
    ),
    row(Nmi, &[], Some("watchdogs"), &[]),
    row(
        PageFault,
        &[],
        Some("memory-lock"),
        &["swap", "page-faults", "huge-pages", "compaction", "ksm", "balloon", "numa-balancing"],
    ),
    row(RtThrottling, &["fair server"], Some("fair-server"), &[]),
    row(
        RtThrottling,
        &[],
        Some("rt-throttling"),
        &["fair-server", "rt-group", "cgroup-quota", "pipeline-policies"],
    ),
    row(DeadlineBudget, &[], None, &["deadline-rights", "pipeline-policies"]),
    row(
        TimerLate,
        &[],
        Some("idle-states"),
        &[
            "dma-latency",
            "haltpoll",
            "governor",
            "boot-options",
            "kernel-config",
            "dma-latency-rights",
            "pipeline-rates",
        ],
    ),
    row(
        SocketWait,
        &[],
        Some("idle-states"),
        &["dma-latency", "haltpoll", "governor", "boot-options", "dma-latency-rights"],
    ),
    row(Hardware, &[], Some("steal"), &["hypervisor", "smi", "smt", "balloon"]),
    row(Unexplained, &[], None, &["trace-rights", "lockdown", "console"]),
];

impl CauseFix {
    /// Returns all rows of the table.
    pub fn all() -> impl Iterator<Item = &'static CauseFix> {
        TABLE.iter()
    }

    /// Returns the rows that name a finding.
    pub fn by(finding: &str) -> impl Iterator<Item = &'static CauseFix> {
        TABLE.iter().filter(move |row| row.findings().any(|one| one == finding))
    }

    /// Whether this row covers a cause.
    #[must_use]
    pub fn is(&self, class: CauseClass, name: &str) -> bool {
        self.class == class
            && (self.names.is_empty() || self.names.iter().any(|begin| name.starts_with(begin)))
    }

    /// Whether the findings of this row explain how to fix a cause.
    #[must_use]
    pub fn covers(&self, cause: &Cause) -> bool {
        let is_first = |row: &CauseFix| row.first.is_some() && row.first == cause.finding.as_deref();
        let is_for_another =
            || TABLE.iter().any(|row| row.is_chosen && row.class == self.class && is_first(row));
        self.is(cause.class, &cause.name)
            && if self.is_chosen { is_first(self) } else { !self.names.is_empty() || !is_for_another() }
    }

    /// Returns the findings of this row, the one to look at first before the others.
    pub fn findings(&self) -> impl Iterator<Item = &'static str> {
        self.first.into_iter().chain(self.also.iter().copied())
    }
}

impl CauseClass {
    /// Returns the `onbeat doctor` finding that explains how to fix a cause; `None` if the fix is in the
    /// pipeline.
    #[must_use]
    pub fn finding(self, name: &str) -> Option<&'static str> {
        TABLE.iter().filter(|row| row.is(self, name)).find_map(|row| row.first)
    }

    /// Returns the finding like [`finding`](Self::finding), for a thread that took the core by its policy
    /// (`f:50`) and that of the worker.
    #[must_use]
    pub fn finding_of_thread(
        self,
        name: &str,
        policy: Option<&str>,
        is_worker_real_time: bool,
    ) -> Option<&'static str> {
        let usual = TABLE.iter().find(|row| row.is(self, name))?;
        match policy {
            Some(policy) if self == Preempted && usual.names.is_empty() => {
                match (policy.starts_with('o'), is_worker_real_time) {
                    (false, _) => Some(RIVALS),
                    (true, true) => Some(IN_KERNEL),
                    (true, false) => usual.first,
                }
            }
            _ => self.finding(name),
        }
    }
}
