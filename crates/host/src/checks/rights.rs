//! Rights, as they were tried.

use super::Check;
use crate::case::Case;
use crate::fact::Fact;
use crate::finding::{Fix, Judged, Severity};
use crate::tried::Attempt;

pub const CHECKS: &[Check] = &[
    Check {
        id: "rt-rights",
        area: "rights",
        severity: Severity::Critical,
        title: "real-time policies are granted",
        what: "Without SCHED_FIFO or SCHED_RR every normal thread has the same right to the core as ours. A thread of its own tries both, with the pipeline's priority.",
        how: "A line `@realtime - rtprio 95` in limits.d, CAP_SYS_NICE for the program or the service, --cap-add SYS_NICE --ulimit rtprio=95 for a container.",
        cost: "Whoever has the right can keep a core from others.",
        skip: "Where nothing asks for a real-time policy.",
        judge: real_time,
    },
    Check {
        id: "deadline-rights",
        area: "rights",
        severity: Severity::Info,
        title: "SCHED_DEADLINE is granted",
        what: "It needs CAP_SYS_NICE, no limit grants it. EPERM is also said for a thread that is bound to fewer cores than its root domain; EBUSY means that no bandwidth is left. Such a thread cannot start others, and sched_rt_runtime_us=-1 switches off what admits it.",
        how: "CAP_SYS_NICE; no cores for its pool, or an isolated partition of control groups around them.",
        cost: "See rt-rights.",
        skip: "Where no pool has a policy d:.",
        judge: deadline,
    },
    Check {
        id: "memory-lock",
        area: "rights",
        severity: Severity::Critical,
        title: "memory may be locked",
        what: "Memory that is not locked may be taken away, and comes back by a page fault, from a disk in milliseconds.",
        how: "A line `@realtime - memlock unlimited` in limits.d, LimitMEMLOCK=infinity for a service, --ulimit memlock=-1 for a container.",
        cost: "Whoever has the right can use up all memory.",
        skip: "Where nothing asks for it: no lock_memory in the pipeline.",
        judge: lock,
    },
    Check {
        id: "cpu-rights",
        area: "rights",
        severity: Severity::Critical,
        title: "threads may be put on these cores",
        what: "A cpuset (of a service, of a container) keeps a process from cores; pinning to some that are left out does nothing, or fails.",
        how: "Widen the cpuset: AllowedCPUs=, --cpuset-cpus.",
        cost: "None.",
        skip: "Never, where the pipeline names cores.",
        judge: affinity,
    },
    Check {
        id: "dma-latency-rights",
        area: "rights",
        severity: Severity::Warning,
        title: "/dev/cpu_dma_latency may be held",
        what: "A program that may open it keeps idle cores from deep sleep for as long as it runs.",
        how: "A udev rule that gives it to a group: KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", MODE=\"0660\".",
        cost: "Whoever has the right can keep all cores awake.",
        skip: "Where idle states cost nothing: see idle-states.",
        judge: dma_latency,
    },
    Check {
        id: "trace-rights",
        area: "rights",
        severity: Severity::Warning,
        title: "the kernel's tracepoints may be read",
        what: "With them a late frame has a culprit with a name; without, classes of causes only.",
        how: "setcap cap_perfmon+ep for the program and a tracefs that a group may read; or root.",
        cost: "Whoever has the right sees what all programs do.",
        skip: "Where names are not needed.",
        judge: trace,
    },
];

fn attempt(attempt: &Attempt, what: &str) -> Judged {
    match attempt {
        Fact::Known(Ok(())) => Judged::good(format!("{what}: granted")),
        Fact::Known(Err(refused)) => {
            Judged::bad(format!("{what} is refused: {}", refused.why)).fix(Fix::advice(refused.fix.clone()))
        }
        Fact::Unknown(why) => Judged::unknown(why),
    }
}

fn real_time(case: &Case) -> Judged {
    let priority = case.tried.priority;
    let fifo = attempt(&case.tried.fifo, &format!("f:{priority}"));
    match fifo.state {
        crate::State::Good => attempt(&case.tried.round_robin, &format!("f:{priority} and r:{priority}")),
        _ => wanted(fifo, case.pipeline.as_ref().map(|pipeline| pipeline.priority() > 0)),
    }
}

/// What a pipeline does not ask for is good to know, and no more.
fn wanted(judged: Judged, is_wanted: Option<bool>) -> Judged {
    if is_wanted == Some(false) { judged.with_severity(Severity::Info) } else { judged }
}

fn deadline(case: &Case) -> Judged {
    let judged = attempt(&case.tried.deadline, "d:1ms:10ms");
    match case.pipeline.as_ref().is_some_and(crate::Pipeline::has_deadline) {
        true => judged.with_severity(Severity::Critical),
        false => judged,
    }
}

fn lock(case: &Case) -> Judged {
    wanted(
        attempt(&case.tried.lock, "locking memory"),
        case.pipeline.as_ref().map(|pipeline| pipeline.lock_memory),
    )
}

fn affinity(case: &Case) -> Judged {
    attempt(&case.tried.affinity, &format!("running on each of {} alone", super::cores(&case.cpus)))
}

fn dma_latency(case: &Case) -> Judged {
    let is_wanted = case.pipeline.as_ref().map(|pipeline| pipeline.dma_latency_us.is_some());
    wanted(attempt(&case.tried.dma_latency, "holding /dev/cpu_dma_latency"), is_wanted)
}

fn trace(case: &Case) -> Judged {
    let place = &case.facts.place;
    let perf = attempt(&case.tried.perf, "counting a tracepoint");
    let tracefs = attempt(&case.tried.tracefs, "reading tracefs");
    let paranoid = place
        .paranoid
        .known()
        .map_or(String::new(), |level| format!("; kernel.perf_event_paranoid is {level}"));
    match (perf.state, tracefs.state) {
        (crate::State::Good, crate::State::Good) => {
            Judged::good(format!("the best source is chosen: rings of perf{paranoid}"))
        }
        (crate::State::Bad, _) => Judged {
            evidence: format!("causes have classes, not names: {}{paranoid}", perf.evidence),
            ..perf
        },
        (_, crate::State::Bad) => Judged {
            evidence: format!("causes have classes, not names: {}{paranoid}", tracefs.evidence),
            ..tracefs
        },
        _ => perf,
    }
}
