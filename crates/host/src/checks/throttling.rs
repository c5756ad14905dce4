//! Limits of the scheduler on real-time threads and control groups.

use super::Check;
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "rt-throttling",
        area: "scheduler",
        severity: Severity::Warning,
        title: "real-time throttling",
        what: "A real-time thread that never sleeps loses 50 ms of every second. Normal threads get that time; with RT_GROUP_SCHED the core stays idle although the thread could run. From 6.12 on, the fair server gives the time to normal threads, and no sysctl turns that off.",
        how: "sysctl kernel.sched_rt_runtime_us=-1, if every real-time loop sleeps. Keep 950000 during development.",
        cost: "A real-time thread in an endless loop then keeps its core forever. On a kernel without PREEMPT_RT, kworkers, RCU and TLB flushes of all other cores wait too. -1 also switches off the admission test of SCHED_DEADLINE.",
        skip: "If every real-time thread sleeps: it is then never throttled.",
        judge: throttling,
    },
    Check {
        id: "fair-server",
        area: "scheduler",
        severity: Severity::Warning,
        title: "time for normal threads (fair server)",
        what: "From 6.12 on, a deadline server runs waiting normal threads next to busy real-time threads, for 50 ms of each second.",
        how: "Write 0 to /sys/kernel/debug/sched/fair_server/cpuN/runtime of isolated cores.",
        cost: "A normal thread on that core, kworkers included, may starve.",
        skip: "If real-time threads sleep, or the cores are not isolated.",
        judge: fair_server,
    },
    Check {
        id: "rt-group",
        area: "scheduler",
        severity: Severity::Critical,
        title: "real-time budgets of control groups",
        what: "A kernel with RT_GROUP_SCHED has a budget for real-time threads per control group. A group without a budget refuses FIFO and RR with EPERM, even to root; with cgroup v2 that is every group except the root.",
        how: "rt_group_sched=0 on the command line (6.15 and later), or use the root group; with cgroup v1, set a budget: cpu.rt_runtime_us.",
        cost: "None.",
        skip: "If no thread asks for FIFO or RR.",
        judge: rt_group,
    },
    Check {
        id: "cgroup-quota",
        area: "scheduler",
        severity: Severity::Critical,
        title: "limits of the control group",
        what: "A quota stops all threads of the group when it is used up, until the next period; a cpuset keeps them off some cores.",
        how: "No CPUQuota= and no AllowedCPUs= in the service; no --cpus and no --cpuset-cpus for the container.",
        cost: "Nothing limits the group any more.",
        skip: "Never, on a real-time machine.",
        judge: quota,
    },
];

fn throttling(case: &MachineCase) -> Judgement {
    let scheduler = &case.facts.scheduler;
    let (runtime_us, period_us) = match (&scheduler.rt_runtime_us, &scheduler.rt_period_us) {
        (Fact::Known(runtime_us), Fact::Known(period_us)) => (*runtime_us, *period_us),
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => return Judgement::unknown(why),
    };
    let never_sleeps = case
        .pipeline
        .as_ref()
        .map(|pipeline| pipeline.workers.iter().any(|worker| worker.never_sleeps && worker.is_real_time()));
    if runtime_us == 0 {
        return Judgement::bad("kernel.sched_rt_runtime_us is 0: the kernel grants no real-time policy")
            .with_severity(Severity::Critical)
            .fix(Fix::command("sysctl kernel.sched_rt_runtime_us=950000"));
    }
    if runtime_us < 0 {
        let wide = case.facts.kernel.is_realtime().known() != Some(&true) && never_sleeps == Some(true);
        return match wide {
            true => Judgement::bad("there is no limit, and a real-time worker of the pipeline never sleeps: on this kernel it starves kworkers and RCU on its core")
                .fix(Fix::advice("let that worker park (idle = \"spin:20us\"), or boot a PREEMPT_RT kernel")),
            false => Judgement::good("there is no limit: every real-time loop must sleep"),
        };
    }
    if runtime_us >= period_us {
        return Judgement::good(format!("real-time threads may run for {runtime_us} of {period_us} us"));
    }
    let hole_us = period_us - runtime_us;
    let group = match case.facts.kernel.has("RT_GROUP_SCHED") {
        Some(true) => "; with RT_GROUP_SCHED the core is then idle",
        _ => "",
    };
    let seen = format!(
        "a real-time thread that never sleeps is stopped for {} of every {} ms{group}",
        hole_us / 1000,
        period_us / 1000
    );
    match never_sleeps {
        Some(false) => Judgement::good(format!("{seen}; all workers of this pipeline sleep")),
        _ => Judgement::bad(seen).fix(Fix::command(
            "sysctl kernel.sched_rt_runtime_us=-1   # only if every real-time loop sleeps",
        )),
    }
}

fn fair_server(case: &MachineCase) -> Judgement {
    if case.facts.kernel.number() != (0, 0) && case.facts.kernel.number() < (6, 12) {
        return Judgement::good("kernels before 6.12 have no fair server");
    }
    let servers = match &case.facts.scheduler.fair_server {
        Fact::Known(servers) => servers,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let ours: Vec<&(String, i64, i64)> = servers
        .iter()
        .filter(|(name, ..)| {
            name.strip_prefix("cpu")
                .and_then(|cpu| cpu.parse().ok())
                .is_some_and(|cpu| case.cpus.contains(cpu))
        })
        .filter(|(_, runtime_ns, _)| *runtime_ns > 0)
        .collect();
    let Some((_, runtime_ns, period_ns)) = ours.first() else {
        return Judgement::good("off on these cores");
    };
    let isolated = case.facts.cpus.isolated.known().cloned().unwrap_or_default();
    let is_isolated = case.cpus.without(&isolated).is_empty();
    let tickless =
        case.facts.cpus.nohz_full.known().map(|cores| cores.common(&case.cpus)).unwrap_or_default();
    let ticks = match tickless.is_empty() {
        true => String::new(),
        false => format!("; for that the kernel ticks on {tickless}, in spite of nohz_full="),
    };
    let seen = format!(
        "a waiting normal thread gets {} ms of each {} ms next to a busy real-time thread{ticks}",
        runtime_ns / 1_000_000,
        period_ns / 1_000_000
    );
    let names = ours.iter().map(|(name, ..)| name);
    match is_isolated {
        true => Judgement::bad(seen).with_severity(Severity::Info).fixes(names.map(|name| {
            Fix::command(format!("echo 0 > /sys/kernel/debug/sched/fair_server/{name}/runtime"))
        })),
        false => {
            Judgement::bad(seen).fix(Fix::advice("isolate the cores, so that no normal thread waits there"))
        }
    }
}

fn rt_group(case: &MachineCase) -> Judgement {
    let kernel = &case.facts.kernel;
    match kernel.has("RT_GROUP_SCHED") {
        None => return Judgement::unknown(kernel.config.why().to_owned()),
        Some(false) => return Judgement::good("this kernel has no budget per group"),
        Some(true) => {}
    }
    let asked = kernel.parameter("rt_group_sched");
    let default_off =
        kernel.config.known().is_some_and(|config| config.get("RT_GROUP_SCHED_DEFAULT_DISABLED").is_some());
    if asked == Some("0") || (asked.is_none() && default_off) {
        return Judgement::good("RT_GROUP_SCHED is built in and switched off");
    }
    let boot = || match kernel.number() >= (6, 15) {
        true => Fix::boot("rt_group_sched", "0"),
        false => Fix::advice("boot a kernel without RT_GROUP_SCHED, or run in the root group"),
    };
    let works = case.tried.fifo.known().is_some_and(Result::is_ok);
    match (&case.facts.environment.group_rt_runtime_us, &case.facts.environment.group) {
        (Fact::Known(0), _) => Judgement::bad("RT_GROUP_SCHED is on, and this control group has no real-time run time: FIFO and RR are refused")
            .fix(boot())
            .fix(Fix::advice("or give it some: cpu.rt_runtime_us, starting with the groups above")),
        (Fact::Known(us), _) => Judgement::bad(format!(
            "RT_GROUP_SCHED is on: this group has {us} us of real-time run time, groups below it have none until they are given some, and a throttled core is idle"
        ))
        .with_severity(Severity::Warning)
        .fix(boot()),
        (_, Fact::Known(group)) if group != "/" && !works => Judgement::bad(format!("RT_GROUP_SCHED is on, and the control group {group} is not the root: FIFO and RR are refused"))
            .fix(boot()),
        _ => Judgement::bad("RT_GROUP_SCHED is on: only the root group, no service, may have real-time threads, and a throttled core is idle")
            .with_severity(Severity::Warning)
            .fix(boot()),
    }
}

fn quota(case: &MachineCase) -> Judgement {
    let place = &case.facts.environment;
    if let Fact::Known(quota) = &place.quota
        && let Some(quota_us) = quota.quota_us
    {
        return Judgement::bad(format!(
            "this control group may run for {quota_us} us of every {} us; then all its threads are stopped",
            quota.period_us
        ))
        .fix(Fix::advice(
            "start it without a quota: no CPUQuota= in the service, no --cpus for the container",
        ));
    }
    match (&place.cpuset, &place.quota) {
        (Fact::Known(cpuset), _) if !cpuset.is_empty() && !case.cpus.without(cpuset).is_empty() => {
            let missing = case.cpus.without(cpuset);
            // Cores of an isolated partition belong to no other group.
            if missing.without(&case.facts.cpus.partitioned).is_empty() {
                return Judgement::good(format!("{missing} are in an isolated partition"));
            }
            Judgement::bad(format!("this control group may run only on {cpuset}: it does not have {missing}"))
                .fix(Fix::advice("widen it: AllowedCPUs= of the service, --cpuset-cpus of the container"))
        }
        (Fact::Known(_), _) | (_, Fact::Known(_)) => Judgement::good("no quota, and all of these cores"),
        (Fact::Unknown(why), _) if place.group.known().is_some_and(|group| group == "/") => {
            Judgement::good(format!("the root group has no limits ({why})"))
        }
        (Fact::Unknown(why), _) => Judgement::unknown(why),
    }
}
