//! Resources that cores share, and virtual machines.

use super::{Check, cores, us};
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "smt",
        area: "topology",
        severity: Severity::Warning,
        title: "SMT siblings of these cores",
        what: "Two hardware threads share one core. Work on the sibling slows a worker by up to half, and no tracepoint shows it.",
        how: "Isolate both and use one; or switch the sibling off: echo 0 > /sys/devices/system/cpu/cpuN/online; or boot with nosmt to switch off all.",
        cost: "A hardware thread, about a quarter of a core's throughput.",
        skip: "If both belong to the pipeline and were measured together.",
        judge: smt,
    },
    Check {
        id: "shared-caches",
        area: "topology",
        severity: Severity::Info,
        title: "shared caches",
        what: "A program that streams through memory evicts a neighbour's data from the shared cache.",
        how: "Choose cores that share no cache with others, or partition the cache (resctrl).",
        cost: "Less cache for the others.",
        skip: "If the working set fits into the second-level cache.",
        judge: caches,
    },
    Check {
        id: "mitigations",
        area: "topology",
        severity: Severity::Info,
        title: "mitigations of processor vulnerabilities",
        what: "Each system call and interrupt flushes some processor state: 0.1 to 1 us.",
        how: "mitigations=off on the command line, on a machine that runs only trusted code.",
        cost: "Programs may read each other's memory.",
        skip: "If any untrusted code runs. This check informs; it does not advise.",
        judge: mitigations,
    },
    Check {
        id: "hypervisor",
        area: "topology",
        severity: Severity::Warning,
        title: "a virtual machine",
        what: "The hypervisor takes cores away without the kernel's knowledge: that is 15 to 70 % of a guest's noise.",
        how: "On the host: pin virtual CPUs to their own cores, do not overcommit, use halt polling; or use bare metal.",
        cost: "The host's cores are not shared.",
        skip: "If the limits are far above the longest measured gap.",
        judge: hypervisor,
    },
    Check {
        id: "steal",
        area: "topology",
        severity: Severity::Critical,
        title: "time that the hypervisor reports as stolen",
        what: "The host runs another guest on the core. The steal clock under-reports: gaps of 28 ms were seen that it did not count.",
        how: "On the host: do not overcommit, pin virtual CPUs; or use another instance type.",
        cost: "Money.",
        skip: "Never.",
        judge: steal,
    },
    Check {
        id: "noise",
        area: "topology",
        severity: Severity::Warning,
        title: "noise on a busy thread",
        what: "A thread on each of these cores only reads the clock for five seconds. The kernel's tracepoints tell which thread or interrupt had the core in each gap.",
        how: "Fix the other findings; onbeat noise hist shows more.",
        cost: "None.",
        skip: "If the longest gap is far below the limits of the pipeline.",
        judge: noise,
    },
];

fn smt(case: &MachineCase) -> Judgement {
    let cpus = &case.facts.cpus;
    let beside = cpus.siblings_of(&case.cpus).common(&case.online());
    let both = cpus.siblings.iter().filter(|set| set.common(&case.cpus).len() > 1).count();
    match (&cpus.smt, beside.is_empty()) {
        (Fact::Known(false), _) => Judgement::good("no two hardware threads share a core"),
        (Fact::Unknown(why), true) if cpus.siblings.is_empty() => Judgement::unknown(why),
        (_, false) => {
            let isolated = cpus.isolated.known().cloned().unwrap_or_default();
            let used = beside.without(&isolated);
            match used.is_empty() {
                true => Judgement::good(format!("{beside} share cores with {}, and are isolated", case.cpus)),
                false => Judgement::bad(format!(
                    "{used} share cores with {}, and any thread may run there",
                    case.cpus
                ))
                .fix(Fix::advice(format!(
                    "isolate them too: isolcpus=managed_irq,domain,{}",
                    case.cpus.and(&used)
                )))
                .fixes(used.iter().map(|core| {
                    Fix::command(format!(
                        "echo 0 > /sys/devices/system/cpu/cpu{core}/online   # switches it off"
                    ))
                })),
            }
        }
        (_, true) if both > 0 => Judgement::bad(format!(
            "the pipeline uses both hardware threads of {both} cores: each slows the other"
        ))
        .with_severity(Severity::Info)
        .fix(Fix::advice("use one of each pair, if it is fast enough")),
        _ => Judgement::good("no other hardware thread shares a core with these"),
    }
}

fn caches(case: &MachineCase) -> Judgement {
    let cpus = &case.facts.cpus;
    let shared: Vec<String> = cpus
        .caches
        .iter()
        .filter(|(_, set)| !set.common(&case.cpus).is_empty() && !set.without(&case.cpus).is_empty())
        .map(|(level, set)| format!("L{level} with {}", set.without(&case.cpus)))
        .collect();
    match (cpus.caches.is_empty(), shared.is_empty()) {
        (true, _) => Judgement::unknown(
            "the machine does not say which caches are shared (cache/index*/shared_cpu_list)",
        ),
        (_, true) => Judgement::good("no cache is shared with other cores"),
        (_, false) => Judgement::good(format!("{} share {}", cores(&case.cpus), super::some(&shared))),
    }
}

fn mitigations(case: &MachineCase) -> Judgement {
    let all = &case.facts.cpus.vulnerabilities;
    if all.is_empty() {
        return Judgement::unknown("/sys/devices/system/cpu/vulnerabilities is not there");
    }
    let on = all.iter().filter(|(_, text)| text.starts_with("Mitigation")).count();
    let open = all.iter().filter(|(_, text)| text.starts_with("Vulnerable")).count();
    Judgement::good(format!("{on} in force, {open} left open, of {} known", all.len()))
}

fn hypervisor(case: &MachineCase) -> Judgement {
    let name = case.facts.environment.hypervisor.known().map_or(String::new(), |name| format!(" ({name})"));
    match case.facts.is_guest() {
        Some(false) => Judgement::good("this is bare metal"),
        Some(true) => {
            let unseen = case.measured.noise.known().map_or(String::new(), |noise| {
                let share = 100.0 * noise.hardware_ns as f64 / noise.noise_ns.max(1) as f64;
                format!(": {share:.0} % of the noise here matches no kernel event")
            });
            let stolen = case.facts.environment.stolen_share.known().map_or(String::new(), |share| {
                format!("; the steal clock reports {:.2} % of all time since boot", share * 100.0)
            });
            Judgement::bad(format!("this is a virtual machine{name}{unseen}{stolen}")).fix(Fix::advice(
                "on the host: pin its virtual CPUs to their own cores, do not overcommit; or use bare metal",
            ))
        }
        None => match &case.facts.environment.hypervisor {
            Fact::Known(name) if !name.is_empty() && case.facts.cpus.flags.known().is_none() => {
                Judgement::unknown(format!(
                    "this processor does not say whether it is virtual; the machine calls itself {name}"
                ))
            }
            _ => Judgement::unknown(case.facts.cpus.flags.why().to_owned()),
        },
    }
}

/// A larger share is not fit for real time.
const STEAL_MOST: f64 = 0.001;

fn steal(case: &MachineCase) -> Judgement {
    if case.facts.is_guest() == Some(false) {
        return Judgement::good("this is bare metal");
    }
    let since_boot = case.facts.environment.stolen_share.known().copied();
    let before = since_boot.map(|share| format!("{:.2} % since boot", share * 100.0));
    let (share, seen) = match (&case.measured.steal, before) {
        (Fact::Known(steal), before) => (
            steal.stolen_ns as f64 / steal.of_ns.max(1) as f64,
            format!(
                "{:.0} ms of {:.1} s went to other guests ({:.2} %{})",
                steal.stolen_ns as f64 / 1e6,
                steal.of_ns as f64 / 1e9,
                100.0 * steal.stolen_ns as f64 / steal.of_ns.max(1) as f64,
                before.map_or(String::new(), |before| format!("; {before}"))
            ),
        ),
        (Fact::Unknown(_), Some(before)) => (0.0, format!("{before} went to other guests")),
        (Fact::Unknown(why), None) => return Judgement::unknown(why),
    };
    let fix =
        || Fix::advice("on the host: do not overcommit, pin virtual CPUs; or use another instance type");
    match (share > STEAL_MOST, since_boot.is_some_and(|share| share > STEAL_MOST)) {
        (true, _) => Judgement::bad(seen).fix(fix()),
        (_, true) => Judgement::bad(seen).with_severity(Severity::Warning).fix(fix()),
        _ if case.measured.steal.known().is_none() => {
            Judgement::unknown(format!("{seen}; now: {}", case.measured.steal.why()))
        }
        _ => Judgement::good(format!("{seen}; the steal clock under-reports")),
    }
}

/// Largest acceptable gap: the limit or period divided by this.
const SHARE: u64 = 10;
/// Largest acceptable gap without a pipeline: a good machine stays below it.
const USUAL_NS: u64 = 100_000;

fn noise(case: &MachineCase) -> Judgement {
    let noise = match &case.measured.noise {
        Fact::Known(noise) => noise,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let share = 100.0 * noise.noise_ns as f64 / noise.runtime_ns.max(1) as f64;
    let part = |ns: u64| 100.0 * ns as f64 / noise.noise_ns.max(1) as f64;
    let mut causes: Vec<String> = noise
        .causes
        .iter()
        .take(3)
        .map(|cause| format!("{} {:.0} % ({} at most)", cause.name, part(cause.total_ns), us(cause.max_ns)))
        .collect();
    if noise.hardware_ns > 0 {
        causes.push(format!("no event {:.0} %", part(noise.hardware_ns)));
    }
    let seen =
        format!("{share:.2} % taken, at most {} at a time: {}", us(noise.max_single_ns), causes.join(", "));
    let shortest = case.pipeline.as_ref().and_then(|pipeline| pipeline.shortest_ns);
    let limit_ns = shortest.map_or(USUAL_NS, |ns| ns / SHARE);
    match noise.max_single_ns > limit_ns {
        true => {
            let severity = if shortest.is_some_and(|ns| noise.max_single_ns > ns) {
                Severity::Critical
            } else {
                Severity::Warning
            };
            let against = match &case.pipeline {
                Some(pipeline) if shortest.is_some() => {
                    format!("; {} is {}", pipeline.shortest_of, us(limit_ns * SHARE))
                }
                _ => String::new(),
            };
            Judgement::bad(format!("{seen}{against}"))
                .with_severity(severity)
                .fix(Fix::advice("fix the findings that name these causes; onbeat noise hist shows them all"))
        }
        false => Judgement::good(seen),
    }
}
