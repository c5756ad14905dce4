//! Rights, as an attempt showed them.

use super::Check;
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};
use crate::tried::Attempt;

pub const CHECKS: &[Check] = &[
    Check {
        id: "rt-rights",
        area: "rights",
        severity: Severity::Critical,
        title: "real-time policies",
        what: "Without SCHED_FIFO or SCHED_RR, a worker competes for its core with every normal thread. The check starts a thread that tries both, with the pipeline's priority.",
        how: "A line `@realtime - rtprio 95` in limits.d; CAP_SYS_NICE for the program or the service; --cap-add SYS_NICE --ulimit rtprio=95 for a container.",
        cost: "A user with this right can keep a core from all others.",
        skip: "If no pipeline asks for a real-time policy.",
        judge: real_time,
    },
    Check {
        id: "deadline-rights",
        area: "rights",
        severity: Severity::Info,
        title: "SCHED_DEADLINE",
        what: "It needs CAP_SYS_NICE; no resource limit grants it. EPERM can also mean that the thread is pinned to fewer cores than its root domain has; EBUSY means that no bandwidth is left. Such a thread cannot start others, and sched_rt_runtime_us=-1 switches off the admission test.",
        how: "Grant CAP_SYS_NICE; set no cores for its pool, or put them into an isolated control group partition.",
        cost: "See rt-rights.",
        skip: "If no pool has a policy d:.",
        judge: deadline,
    },
    Check {
        id: "memory-lock",
        area: "rights",
        severity: Severity::Critical,
        title: "memory locking",
        what: "The kernel can take memory away that is not locked. The next access is a page fault; from a disk it takes milliseconds.",
        how: "A line `@realtime - memlock unlimited` in limits.d; LimitMEMLOCK=infinity for a service; --ulimit memlock=-1 for a container.",
        cost: "A user with this right can use up all memory.",
        skip: "If no pipeline has lock_memory.",
        judge: lock,
    },
    Check {
        id: "cpu-rights",
        area: "rights",
        severity: Severity::Critical,
        title: "access to these cores",
        what: "A cpuset (of a service or a container) keeps a process off some cores; pinning a thread to such a core fails or has no effect.",
        how: "Widen the cpuset: AllowedCPUs=, --cpuset-cpus.",
        cost: "None.",
        skip: "Never, if the pipeline names cores.",
        judge: affinity,
    },
    Check {
        id: "dma-latency-rights",
        area: "rights",
        severity: Severity::Warning,
        title: "access to /dev/cpu_dma_latency",
        what: "A program that can open it keeps idle cores out of deep idle states while it runs.",
        how: "A udev rule that gives it to a group: KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", MODE=\"0660\".",
        cost: "A user with this right can keep all cores awake.",
        skip: "If wake-ups from idle states are fast enough: see idle-states.",
        judge: dma_latency,
    },
    Check {
        id: "trace-rights",
        area: "rights",
        severity: Severity::Warning,
        title: "access to the kernel's tracepoints",
        what: "With tracepoints, a late frame has a named cause; without them, only a class of causes.",
        how: "setcap cap_perfmon+ep for the program, and a tracefs that its group can read; or run as root.",
        cost: "A user with this right sees the activity of all programs.",
        skip: "If you do not need names.",
        judge: trace,
    },
];

fn attempt(attempt: &Attempt, what: &str) -> Judgement {
    match attempt {
        Fact::Known(Ok(())) => Judgement::good(format!("{what}: granted")),
        Fact::Known(Err(refused)) => Judgement::bad(format!("{what} is refused: {}", refused.why))
            .fix(Fix::advice(refused.fix.clone())),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn real_time(case: &MachineCase) -> Judgement {
    let priority = case.tried.priority;
    let fifo = attempt(&case.tried.fifo, &format!("f:{priority}"));
    match fifo.state {
        crate::State::Good => attempt(&case.tried.round_robin, &format!("f:{priority} and r:{priority}")),
        _ => wanted(fifo, case.pipeline.as_ref().map(|pipeline| pipeline.priority() > 0)),
    }
}

/// Lowers the severity if the pipeline does not need the right.
fn wanted(judged: Judgement, is_wanted: Option<bool>) -> Judgement {
    if is_wanted == Some(false) { judged.with_severity(Severity::Info) } else { judged }
}

fn deadline(case: &MachineCase) -> Judgement {
    let judged = attempt(&case.tried.deadline, "d:1ms:10ms");
    match case.pipeline.as_ref().is_some_and(crate::PipelineNeeds::has_deadline) {
        true => judged.with_severity(Severity::Critical),
        false => judged,
    }
}

fn lock(case: &MachineCase) -> Judgement {
    wanted(
        attempt(&case.tried.lock, "locking memory"),
        case.pipeline.as_ref().map(|pipeline| pipeline.lock_memory),
    )
}

fn affinity(case: &MachineCase) -> Judgement {
    attempt(&case.tried.affinity, &format!("running on each of {} alone", super::cores(&case.cpus)))
}

fn dma_latency(case: &MachineCase) -> Judgement {
    let is_wanted = case.pipeline.as_ref().map(|pipeline| pipeline.dma_latency_us.is_some());
    wanted(attempt(&case.tried.dma_latency, "holding /dev/cpu_dma_latency"), is_wanted)
}

fn trace(case: &MachineCase) -> Judgement {
    let place = &case.facts.environment;
    let perf = attempt(&case.tried.perf, "counting a tracepoint");
    let tracefs = attempt(&case.tried.tracefs, "reading tracefs");
    let paranoid = place
        .paranoid
        .known()
        .map_or(String::new(), |level| format!("; kernel.perf_event_paranoid is {level}"));
    match (perf.state, tracefs.state) {
        (crate::State::Good, crate::State::Good) => Judgement::good(format!(
            "tracepoints can be read, through tracefs and through rings of perf{paranoid}"
        )),
        (crate::State::Bad, _) => Judgement {
            evidence: format!("causes have classes but no names: {}{paranoid}", perf.evidence),
            ..perf
        },
        (_, crate::State::Bad) => Judgement {
            evidence: format!("causes have classes but no names: {}{paranoid}", tracefs.evidence),
            ..tracefs
        },
        _ => perf,
    }
}
