//! Needs of the pipeline, compared with the machine.

use super::{Check, us};
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};
use crate::pipeline::PipelineNeeds;
use onbeat_os::Policy;
use std::collections::BTreeMap;

pub const CHECKS: &[Check] = &[
    Check {
        id: "pipeline-cores",
        area: "pipeline",
        severity: Severity::Warning,
        title: "cores that the pipeline pins",
        what: "Workers with a real-time policy need cores of their own: not core 0, not shared with house-keeping, not two hardware threads of one core, and not on two NUMA nodes.",
        how: "Set cores of the pools, -H for house-keeping, and isolcpus= to keep other threads off.",
        cost: "Cores.",
        skip: "If the machine has too few cores.",
        judge: pinned,
    },
    Check {
        id: "pipeline-policies",
        area: "pipeline",
        severity: Severity::Critical,
        title: "policies that the pipeline asks for",
        what: "A policy needs rights and a budget (throttling, admission); SCHED_DEADLINE also needs all cores of a root domain.",
        how: "See rt-rights, deadline-rights and rt-throttling.",
        cost: "See there.",
        skip: "Never: without its policy, a worker cannot meet its deadlines reliably.",
        judge: policies,
    },
    Check {
        id: "pipeline-rates",
        area: "pipeline",
        severity: Severity::Warning,
        title: "rates of the pipeline",
        what: "If a period or limit is close to the cost of a wake-up and a clock read here, a worker that parks cannot keep it.",
        how: "Let the worker spin on an isolated core (idle = \"spin\"), hold dma_latency = \"0us\", or choose longer periods.",
        cost: "A spinning worker's core does nothing else.",
        skip: "If some misses are acceptable.",
        judge: rates,
    },
];

const NONE: &str = "no pipeline was given (--pipeline)";

fn pinned(case: &MachineCase) -> Judgement {
    let Some(pipeline) = &case.pipeline else { return Judgement::unknown(NONE) };
    let (cpus, pins) = (&case.facts.cpus, pipeline.cores());
    if pins.is_empty() {
        return match pipeline.priority() > 0 {
            true => {
                Judgement::bad("it has real-time workers without cores of their own: they move between cores")
                    .with_severity(Severity::Info)
                    .fix(Fix::advice("set cores = [...] in their pools"))
            }
            false => Judgement::good("it pins no cores"),
        };
    }
    let missing = pins.without(&case.online());
    if !missing.is_empty() {
        return Judgement::bad(format!(
            "{missing} are not online; online cores: {}",
            super::cores(&case.online())
        ))
        .with_severity(Severity::Critical)
        .fix(Fix::advice("name cores that are online"));
    }
    let critical = pipeline.critical_cores();
    let isolated = cpus.isolated.known().cloned().unwrap_or_default();
    let mut seen = Vec::new();
    let mut fixes = Vec::new();
    let open = critical.without(&isolated);
    if !open.is_empty() {
        seen.push(format!("{open} are not isolated"));
        fixes.push(Fix::command(format!("onbeat tune --cpus {critical}   # prints how to isolate them")));
    }
    let shared = critical.common(&pipeline.house);
    if !shared.is_empty() {
        seen.push(format!("{shared} also do house-keeping"));
        fixes.push(Fix::advice(format!("-H {}", super::cores(&case.online().without(&pins)))));
    }
    if critical.contains(0) {
        seen.push("core 0 is one of them: most machines handle interrupts and boot work there".to_owned());
    }
    seen.extend(crowded(pipeline));
    let pairs =
        cpus.siblings.iter().filter(|set| set.common(&pins).len() > 1 && !set.common(&critical).is_empty());
    let pairs: Vec<String> = pairs.map(|set| set.common(&pins).to_string()).collect();
    if !pairs.is_empty() {
        seen.push(format!("hardware threads of one core: {}", pairs.join(" and ")));
    }
    let nodes: Vec<usize> = cpus
        .nodes
        .iter()
        .filter(|(_, cores)| !cores.common(&pins).is_empty())
        .map(|(node, _)| *node)
        .collect();
    if nodes.len() > 1 {
        seen.push(format!(
            "they are on {} NUMA nodes: a message between nodes costs twice as much",
            nodes.len()
        ));
    }
    match seen.is_empty() {
        true => Judgement::good(format!("{pins} are online, {critical} are isolated")),
        false => Judgement::bad(format!("of the pinned cores {pins}: {}", seen.join("; "))).fixes(fixes),
    }
}

/// Returns the cores that more than one real-time worker is pinned to.
fn crowded(pipeline: &PipelineNeeds) -> Vec<String> {
    let mut workers = BTreeMap::<usize, usize>::new();
    for worker in pipeline.workers.iter().filter(|worker| worker.is_real_time()) {
        worker.core.iter().for_each(|core| *workers.entry(*core).or_default() += 1);
    }
    let crowded = workers.into_iter().filter(|(_, count)| *count > 1);
    crowded.map(|(core, count)| format!("core {core} has {count} real-time workers")).collect()
}

fn policies(case: &MachineCase) -> Judgement {
    let Some(pipeline) = &case.pipeline else { return Judgement::unknown(NONE) };
    let scheduler = &case.facts.scheduler;
    if !pipeline.workers.iter().any(crate::pipeline::WorkerNeeds::is_real_time) {
        return Judgement::good("it asks for no real-time policy");
    }
    let mut seen = Vec::new();
    let mut fixes = Vec::new();
    let refused =
        |attempt: &crate::tried::Attempt| attempt.known().and_then(|result| result.as_ref().err()).cloned();
    if let Some(refused) = refused(&case.tried.fifo).filter(|_| pipeline.priority() > 0) {
        seen.push(format!("f:{} is refused: {}", pipeline.priority(), refused.why));
        fixes.push(Fix::advice(refused.fix));
    }
    let pinned = pipeline
        .workers
        .iter()
        .find(|worker| matches!(worker.policy, Some(Policy::Deadline { .. })) && worker.core.is_some());
    if let (Some(worker), false) = (pinned, pipeline.cores().without(&case.facts.cpus.partitioned).is_empty())
    {
        seen.push(format!("worker {} is SCHED_DEADLINE and pinned to a core: the kernel refuses that (EPERM) unless the core is a root domain", worker.name));
        fixes.push(Fix::advice(
            "set no cores for its pool, or put them into an isolated partition: onbeat tune --partition",
        ));
    }
    let asked: f64 = pipeline
        .workers
        .iter()
        .filter_map(|worker| match worker.policy? {
            Policy::Deadline { runtime_ns, period_ns, .. } => {
                Some(runtime_ns as f64 / period_ns.max(1) as f64)
            }
            _ => None,
        })
        .sum();
    if let (Fact::Known(runtime_us), Fact::Known(period_us)) =
        (&scheduler.rt_runtime_us, &scheduler.rt_period_us)
    {
        let share = if *runtime_us < 0 { 1.0 } else { *runtime_us as f64 / (*period_us).max(1) as f64 };
        let there = share * case.online().len() as f64;
        if asked > there {
            seen.push(format!(
                "its SCHED_DEADLINE workers ask for {asked:.2} cores; the kernel admits {there:.2} (EBUSY)"
            ));
            fixes.push(Fix::advice("shorten run times, or lengthen periods"));
        }
        let spins = pipeline.workers.iter().find(|worker| worker.never_sleeps && worker.is_real_time());
        if let (Some(worker), true) = (spins, *runtime_us >= 0 && runtime_us < period_us) {
            seen.push(format!(
                "worker {} never sleeps: the kernel stops it for {} us of every {period_us}",
                worker.name,
                period_us - runtime_us
            ));
            fixes.push(Fix::advice(
                "let that worker park (idle = \"spin:20us\"), or lift the limit after reading rt-throttling",
            ));
        }
    }
    match (seen.is_empty(), &case.tried.fifo) {
        (false, _) => Judgement::bad(seen.join("; ")).fixes(fixes),
        (true, Fact::Unknown(why)) => Judgement::unknown(why),
        (true, Fact::Known(_)) => Judgement::good("all are granted, and the budget suffices"),
    }
}

fn rates(case: &MachineCase) -> Judgement {
    let Some(pipeline) = &case.pipeline else { return Judgement::unknown(NONE) };
    let Some(shortest_ns) = pipeline.shortest_ns else {
        return Judgement::good("it has no period, deadline or limit");
    };
    let what = format!("{} is {}", pipeline.shortest_of, us(shortest_ns));
    let wake = match (&case.measured.wake, &case.measured.wake_awake, pipeline.dma_latency_us) {
        (_, Fact::Known(wake), Some(0)) | (Fact::Known(wake), ..) => wake,
        (Fact::Unknown(why), ..) => return Judgement::unknown(why),
    };
    let read_ns = case.measured.clock_read_ns.known().copied().unwrap_or(0.0);
    let took = format!("{} late in 99 of 100 cases, at most {}", us(wake.p99_ns), us(wake.max_ns));
    if read_ns * 100.0 > shortest_ns as f64 {
        return Judgement::bad(format!("{what}, and a clock read takes {read_ns:.0} ns"))
            .fix(Fix::advice("use longer periods, or a machine with a tsc"));
    }
    let parks = pipeline.workers.iter().any(|worker| !worker.never_sleeps);
    match parks && wake.p99_ns > shortest_ns / 2 {
        true => Judgement::bad(format!("{what}, and a sleeping thread wakes up {took}"))
            .with_severity(if wake.p99_ns > shortest_ns { Severity::Critical } else { Severity::Warning })
            .fix(Fix::advice(
                "dma_latency = \"0us\", idle = \"spin:20us\" on an isolated core, or a longer period",
            )),
        false => Judgement::good(format!("{what}; a sleeping thread wakes up {took}")),
    }
}
