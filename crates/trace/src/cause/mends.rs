//! Which findings of `onbeat doctor` mend what: the one table by which a run names a finding for each of its causes, and by which the
//! doctor says what each of its findings has cost a run.

use super::CauseClass;
use CauseClass::{
    DeadlineBudget, Hardware, Irq, Migration, Nmi, OwnCompute, PageFault, Preempted, RtThrottling,
    RunQueueWait, Softirq, TimerLate, Unexplained,
};

/// Some causes, and the findings that mend them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mends {
    /// Their class.
    pub class: CauseClass,
    /// How their names begin; none for all of the class.
    pub names: &'static [&'static str],
    /// The finding to look at first; `None` where that is the pipeline's business, or that of a row further down.
    first: Option<&'static str>,
    /// Findings that can have a part in it too.
    also: &'static [&'static str],
}

const fn row(
    class: CauseClass,
    names: &'static [&'static str],
    first: Option<&'static str>,
    also: &'static [&'static str],
) -> Mends {
    Mends { class, names, first, also }
}

/// Within a class names come before the rest, since a cause has the first finding of the first row that has one for it.
const TABLE: &[Mends] = &[
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
    row(
        Preempted,
        &[],
        Some("isolcpus"),
        &["rivals", "preemption-model", "fair-server", "rt-rights", "pipeline-cores"],
    ),
    row(
        RunQueueWait,
        &[],
        Some("isolcpus"),
        &["preemption-model", "rt-rights", "autogroup", "sched-ext", "pressure", "cgroup-quota"],
    ),
    row(Migration, &[], Some("isolcpus"), &["cpu-rights", "pipeline-cores"]),
    // The second is the name in `/proc/interrupts`.
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
    row(Hardware, &[], Some("steal"), &["hypervisor", "smi", "smt", "balloon"]),
    row(Unexplained, &[], None, &["trace-rights", "lockdown", "console"]),
];

impl Mends {
    /// The whole table.
    pub fn all() -> impl Iterator<Item = &'static Mends> {
        TABLE.iter()
    }

    /// What a finding mends.
    pub fn by(finding: &str) -> impl Iterator<Item = &'static Mends> {
        TABLE.iter().filter(move |row| row.findings().any(|one| one == finding))
    }

    /// Whether that cause is one of these.
    #[must_use]
    pub fn is(&self, class: CauseClass, name: &str) -> bool {
        self.class == class
            && (self.names.is_empty() || self.names.iter().any(|begin| name.starts_with(begin)))
    }

    /// The findings that mend them, what to look at first before the others.
    pub fn findings(&self) -> impl Iterator<Item = &'static str> {
        self.first.into_iter().chain(self.also.iter().copied())
    }
}

impl CauseClass {
    /// The finding of `onbeat doctor` that tells how to mend it; `None` where that is the pipeline's business.
    #[must_use]
    pub fn finding(self, name: &str) -> Option<&'static str> {
        TABLE.iter().filter(|row| row.is(self, name)).find_map(|row| row.first)
    }
}
