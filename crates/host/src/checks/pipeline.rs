//! What the pipeline at hand asks for, against what there is.

use super::{Check, us};
use crate::case::Case;
use crate::fact::Fact;
use crate::finding::{Fix, Judged, Severity};
use crate::pipeline::Pipeline;
use onbeat_os::{CoreSet, Policy};

pub const CHECKS: &[Check] = &[
    Check {
        id: "pipeline-cores",
        area: "pipeline",
        severity: Severity::Warning,
        title: "the cores that the pipeline pins",
        what: "Workers with a real-time policy want cores that nobody else uses: not core 0, not shared with house-keeping, not two hardware threads of one core, not on two nodes of memory.",
        how: "cores of the pools, -H for house-keeping, isolcpus= for the others.",
        cost: "Cores.",
        skip: "Where fewer cores have to do.",
        judge: pinned,
    },
    Check {
        id: "pipeline-policies",
        area: "pipeline",
        severity: Severity::Critical,
        title: "the policies that the pipeline asks for",
        what: "A policy needs the right, a budget (throttling, admission), and for SCHED_DEADLINE all cores of a root domain.",
        how: "See rt-rights, deadline-rights and rt-throttling.",
        cost: "See there.",
        skip: "Never: a policy that is refused is a promise that is not kept.",
        judge: policies,
    },
    Check {
        id: "pipeline-rates",
        area: "pipeline",
        severity: Severity::Warning,
        title: "the rates of the pipeline",
        what: "A period or limit that is near what a wake-up and a look at the clock take here cannot be kept by a worker that parks.",
        how: "idle = \"spin\" on an isolated core, dma_latency = \"0us\", or longer periods.",
        cost: "A core that spins does nothing else.",
        skip: "Where some misses may be.",
        judge: rates,
    },
];

const NONE: &str = "no pipeline was given (--pipeline)";

fn pinned(case: &Case) -> Judged {
    let Some(pipeline) = &case.pipeline else { return Judged::unknown(NONE) };
    let (cpus, pins) = (&case.facts.cpus, pipeline.cores());
    if pins.is_empty() {
        return match pipeline.priority() > 0 {
            true => Judged::bad("it has real-time workers and names no core for them: they move about")
                .with_severity(Severity::Info)
                .fix(Fix::advice("cores = [...] in their pools")),
            false => Judged::good("it names no core"),
        };
    }
    let missing = pins.without(&case.online());
    if !missing.is_empty() {
        return Judged::bad(format!("{missing} are not online; online are {}", super::cores(&case.online())))
            .with_severity(Severity::Critical)
            .fix(Fix::advice("name cores that are there"));
    }
    let critical = pipeline.critical_cores();
    let isolated = cpus.isolated.known().cloned().unwrap_or_default();
    let mut seen = Vec::new();
    let mut fixes = Vec::new();
    let open = critical.without(&isolated);
    if !open.is_empty() {
        seen.push(format!("{open} are not isolated"));
        fixes.push(Fix::command(format!("onbeat tune --cpus {critical}   # prints what isolates them")));
    }
    let shared = critical.common(&pipeline.house);
    if !shared.is_empty() {
        seen.push(format!("{shared} are for house-keeping too"));
        fixes.push(Fix::advice(format!("-H {}", super::cores(&case.online().without(&pins)))));
    }
    if critical.contains(0) {
        seen.push(
            "core 0 is one of them, where most machines handle interrupts and boot leaves its work"
                .to_owned(),
        );
    }
    let twice = twice(pipeline);
    if !twice.is_empty() {
        seen.push(format!("two workers are on the same core: {twice}"));
    }
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
            "they are on {} nodes of memory: a message between them costs twice as much",
            nodes.len()
        ));
    }
    match seen.is_empty() {
        true => Judged::good(format!("{pins} are there, and {critical} are isolated")),
        false => Judged::bad(format!("of the pinned cores {pins}: {}", seen.join("; "))).fixes(fixes),
    }
}

/// Cores that two real-time workers are on.
fn twice(pipeline: &Pipeline) -> CoreSet {
    let cores: Vec<usize> = pipeline
        .workers
        .iter()
        .filter(|worker| worker.is_real_time())
        .filter_map(|worker| worker.core)
        .collect();
    let again =
        cores.iter().enumerate().filter(|(at, core)| cores[..*at].contains(core)).map(|(_, core)| *core);
    CoreSet::from_cores(again).unwrap_or_default()
}

fn policies(case: &Case) -> Judged {
    let Some(pipeline) = &case.pipeline else { return Judged::unknown(NONE) };
    let scheduler = &case.facts.scheduler;
    if !pipeline.workers.iter().any(crate::pipeline::Worker::is_real_time) {
        return Judged::good("it asks for none");
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
        seen.push(format!("worker {} is SCHED_DEADLINE and bound to a core: that is refused (EPERM) unless the core is a root domain", worker.name));
        fixes.push(Fix::advice(
            "name no cores for its pool, or put them into an isolated partition: onbeat tune --partition",
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
                "its SCHED_DEADLINE workers ask for {asked:.2} cores, and {there:.2} are admitted (EBUSY)"
            ));
            fixes.push(Fix::advice("lower run times, or lengthen periods"));
        }
        let spins = pipeline.workers.iter().find(|worker| worker.never_sleeps && worker.is_real_time());
        if let (Some(worker), true) = (spins, *runtime_us >= 0 && runtime_us < period_us) {
            seen.push(format!(
                "worker {} never sleeps, and is stopped for {} us of every {period_us}",
                worker.name,
                period_us - runtime_us
            ));
            fixes.push(Fix::advice("let it park (idle = \"spin:20us\"); or lift the limit, knowing what rt-throttling says of it"));
        }
    }
    match (seen.is_empty(), &case.tried.fifo) {
        (false, _) => Judged::bad(seen.join("; ")).fixes(fixes),
        (true, Fact::Unknown(why)) => Judged::unknown(why),
        (true, Fact::Known(_)) => Judged::good("all are granted, and there is room for them"),
    }
}

fn rates(case: &Case) -> Judged {
    let Some(pipeline) = &case.pipeline else { return Judged::unknown(NONE) };
    let Some(shortest_ns) = pipeline.shortest_ns else {
        return Judged::good("it has no period, deadline or limit");
    };
    let what = format!("{} is {}", pipeline.shortest_of, us(shortest_ns));
    let wake = match (&case.measured.wake, &case.measured.wake_awake, pipeline.dma_latency_us) {
        (_, Fact::Known(wake), Some(0)) | (Fact::Known(wake), ..) => wake,
        (Fact::Unknown(why), ..) => return Judged::unknown(why),
    };
    let read_ns = case.measured.clock_read_ns.known().copied().unwrap_or(0.0);
    let took = format!("{} late 99 of 100 times, {} at most", us(wake.p99_ns), us(wake.max_ns));
    if read_ns * 100.0 > shortest_ns as f64 {
        return Judged::bad(format!("{what}, and a look at the clock takes {read_ns:.0} ns"))
            .fix(Fix::advice("longer periods, or a machine with a tsc"));
    }
    let parks = pipeline.workers.iter().any(|worker| !worker.never_sleeps);
    match parks && wake.p99_ns > shortest_ns / 2 {
        true => Judged::bad(format!("{what}, and a thread that sleeps wakes up {took}"))
            .with_severity(if wake.p99_ns > shortest_ns { Severity::Critical } else { Severity::Warning })
            .fix(Fix::advice(
                "dma_latency = \"0us\", idle = \"spin:20us\" on an isolated core, or a longer period",
            )),
        false => Judged::good(format!("{what}; a thread that sleeps wakes up {took}")),
    }
}
