//! What cores share, and with whom.

use super::{Check, cores, us};
use crate::case::Case;
use crate::fact::Fact;
use crate::finding::{Fix, Judged, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "smt",
        area: "topology",
        severity: Severity::Warning,
        title: "the other hardware thread of the same core",
        what: "Two hardware threads share one core: whatever runs on the other one takes up to half of ours, and no tracepoint tells of it.",
        how: "Isolate both and use one; or switch the other one off: echo 0 > /sys/devices/system/cpu/cpuN/online; or nosmt for all.",
        cost: "A hardware thread, about a quarter of a core's throughput.",
        skip: "Where both belong to the pipeline and it has been measured so.",
        judge: smt,
    },
    Check {
        id: "shared-caches",
        area: "topology",
        severity: Severity::Info,
        title: "caches that are shared",
        what: "A program that streams through memory pushes out what a neighbour keeps in the shared cache.",
        how: "Choose cores that share no cache with others, or part the cache (resctrl).",
        cost: "Less cache for the others.",
        skip: "Where the working set fits into the second level.",
        judge: caches,
    },
    Check {
        id: "mitigations",
        area: "topology",
        severity: Severity::Info,
        title: "work against weaknesses of the processor",
        what: "Each system call and interrupt flushes something: 0.1 to 1 us.",
        how: "mitigations=off on the command line, on a machine where nobody runs what is not trusted.",
        cost: "Programs may read each other's memory.",
        skip: "Wherever foreign code runs. It is told, not advised.",
        judge: mitigations,
    },
    Check {
        id: "hypervisor",
        area: "topology",
        severity: Severity::Warning,
        title: "a virtual machine",
        what: "The hypervisor takes cores away without the kernel's knowledge: 15 to 70 % of the noise of a guest is of that kind.",
        how: "At the host: pin virtual CPUs to cores of their own, no overcommit, halt polling; or bare metal.",
        cost: "The host's cores are not shared.",
        skip: "Where the limits are far above the longest gap that was measured.",
        judge: hypervisor,
    },
    Check {
        id: "steal",
        area: "topology",
        severity: Severity::Critical,
        title: "time that the hypervisor admits to take",
        what: "The host runs somebody else on our core. The clock for it under-reports: gaps of 28 ms were seen that it knew nothing of.",
        how: "At the host: no overcommit, virtual CPUs pinned; or another kind of machine.",
        cost: "Money.",
        skip: "Never.",
        judge: steal,
    },
    Check {
        id: "noise",
        area: "topology",
        severity: Severity::Warning,
        title: "what is taken from a busy thread",
        what: "A thread on each of these cores does nothing but read the clock for five seconds; the kernel's tracepoints tell who had the core in each gap.",
        how: "The other findings; onbeat noise hist for more.",
        cost: "None.",
        skip: "Where the longest gap is far below the limits of the pipeline.",
        judge: noise,
    },
];

fn smt(case: &Case) -> Judged {
    let cpus = &case.facts.cpus;
    let beside = cpus.siblings_of(&case.cpus).common(&case.online());
    let both = cpus.siblings.iter().filter(|set| set.common(&case.cpus).len() > 1).count();
    match (&cpus.smt, beside.is_empty()) {
        (Fact::Known(false), _) => Judged::good("hardware threads do not share cores"),
        (Fact::Unknown(why), true) if cpus.siblings.is_empty() => Judged::unknown(why),
        (_, false) => {
            let isolated = cpus.isolated.known().cloned().unwrap_or_default();
            let used = beside.without(&isolated);
            match used.is_empty() {
                true => Judged::good(format!("{beside} share cores with {}, and are isolated", case.cpus)),
                false => {
                    Judged::bad(format!("{used} share cores with {}, and anybody may run there", case.cpus))
                        .fix(Fix::advice(format!(
                            "isolate them too: isolcpus=managed_irq,domain,{}",
                            case.cpus.and(&used)
                        )))
                        .fixes(used.iter().map(|core| {
                            Fix::command(format!(
                                "echo 0 > /sys/devices/system/cpu/cpu{core}/online   # switches it off"
                            ))
                        }))
                }
            }
        }
        (_, true) if both > 0 => Judged::bad(format!(
            "{both} of the cores are used with both hardware threads: each takes from the other"
        ))
        .with_severity(Severity::Info)
        .fix(Fix::advice("use one of each pair, if it is fast enough")),
        _ => Judged::good("nobody shares a core with these"),
    }
}

fn caches(case: &Case) -> Judged {
    let cpus = &case.facts.cpus;
    let shared: Vec<String> = cpus
        .caches
        .iter()
        .filter(|(_, set)| !set.common(&case.cpus).is_empty() && !set.without(&case.cpus).is_empty())
        .map(|(level, set)| format!("L{level} with {}", set.without(&case.cpus)))
        .collect();
    match (cpus.caches.is_empty(), shared.is_empty()) {
        (true, _) => {
            Judged::unknown("the machine does not tell what is shared (cache/index*/shared_cpu_list)")
        }
        (_, true) => Judged::good("no cache is shared with other cores"),
        (_, false) => Judged::good(format!("{} share {}", cores(&case.cpus), super::some(&shared))),
    }
}

fn mitigations(case: &Case) -> Judged {
    let all = &case.facts.cpus.vulnerabilities;
    if all.is_empty() {
        return Judged::unknown("/sys/devices/system/cpu/vulnerabilities is not there");
    }
    let on = all.iter().filter(|(_, text)| text.starts_with("Mitigation")).count();
    let open = all.iter().filter(|(_, text)| text.starts_with("Vulnerable")).count();
    Judged::good(format!("{on} in force, {open} left open, of {} known", all.len()))
}

fn hypervisor(case: &Case) -> Judged {
    let name = case.facts.place.hypervisor.known().map_or(String::new(), |name| format!(" ({name})"));
    match case.facts.is_guest() {
        Some(false) => Judged::good("this is bare metal"),
        Some(true) => {
            let unseen = case.measured.noise.known().map_or(String::new(), |noise| {
                let share = 100.0 * noise.hardware_ns as f64 / noise.noise_ns.max(1) as f64;
                format!(": {share:.0} % of the noise here was of no event that the kernel knows")
            });
            let stolen = case.facts.place.stolen_share.known().map_or(String::new(), |share| {
                format!("; the steal clock admits {:.2} % of all time since boot", share * 100.0)
            });
            Judged::bad(format!("this is a virtual machine{name}{unseen}{stolen}")).fix(Fix::advice(
                "at the host: pin its virtual CPUs to cores of their own, no overcommit; or take bare metal",
            ))
        }
        None => match &case.facts.place.hypervisor {
            Fact::Known(name) if !name.is_empty() && case.facts.cpus.flags.known().is_none() => {
                Judged::unknown(format!(
                    "this processor does not say whether it is virtual; the machine calls itself {name}"
                ))
            }
            _ => Judged::unknown(case.facts.cpus.flags.why().to_owned()),
        },
    }
}

/// More is not fit for real time.
const STEAL_MOST: f64 = 0.001;

fn steal(case: &Case) -> Judged {
    if case.facts.is_guest() == Some(false) {
        return Judged::good("this is bare metal");
    }
    let since_boot = case.facts.place.stolen_share.known().copied();
    let before = since_boot.map(|share| format!("{:.2} % since boot", share * 100.0));
    let (share, seen) = match (&case.measured.steal, before) {
        (Fact::Known(steal), before) => (
            steal.stolen_ns as f64 / steal.of_ns.max(1) as f64,
            format!(
                "{:.0} ms of {:.1} s were given to others ({:.2} %{})",
                steal.stolen_ns as f64 / 1e6,
                steal.of_ns as f64 / 1e9,
                100.0 * steal.stolen_ns as f64 / steal.of_ns.max(1) as f64,
                before.map_or(String::new(), |before| format!("; {before}"))
            ),
        ),
        (Fact::Unknown(_), Some(before)) => (0.0, format!("{before} was given to others")),
        (Fact::Unknown(why), None) => return Judged::unknown(why),
    };
    let fix =
        || Fix::advice("at the host: no overcommit, virtual CPUs pinned; or take another kind of machine");
    match (share > STEAL_MOST, since_boot.is_some_and(|share| share > STEAL_MOST)) {
        (true, _) => Judged::bad(seen).fix(fix()),
        (_, true) => Judged::bad(seen).with_severity(Severity::Warning).fix(fix()),
        _ if case.measured.steal.known().is_none() => {
            Judged::unknown(format!("{seen}; now: {}", case.measured.steal.why()))
        }
        _ => Judged::good(format!("{seen}; the clock for it under-reports")),
    }
}

/// What a limit or a period leaves for gaps, at most; without a pipeline, what a good machine stays below.
const SHARE: u64 = 10;
const USUAL_NS: u64 = 100_000;

fn noise(case: &Case) -> Judged {
    let noise = match &case.measured.noise {
        Fact::Known(noise) => noise,
        Fact::Unknown(why) => return Judged::unknown(why),
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
        causes.push(format!("no event at all {:.0} %", part(noise.hardware_ns)));
    }
    let seen = format!("{share:.2} % is taken, {} at once: {}", us(noise.max_single_ns), causes.join(", "));
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
            Judged::bad(format!("{seen}{against}")).with_severity(severity).fix(Fix::advice(
                "mend the findings that name these causes; onbeat noise hist shows them all",
            ))
        }
        false => Judged::good(seen),
    }
}
