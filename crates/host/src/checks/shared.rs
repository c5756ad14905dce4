//! Shared machines: containers, load.

use super::Check;
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "container",
        area: "shared",
        severity: Severity::Warning,
        title: "a container",
        what: "A container shares the host's kernel and its settings, with fewer rights. Missing rights have to be granted when it starts; bad settings have to be fixed on the host.",
        how: "--cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=95 --ulimit memlock=-1 --device /dev/cpu_dma_latency; onbeat tune prints the flags for a pipeline.",
        cost: "Programs in the container can keep cores from others.",
        skip: "If all attempted rights are granted.",
        judge: container,
    },
    Check {
        id: "pressure",
        area: "shared",
        severity: Severity::Info,
        title: "threads that wait for a core",
        what: "The share of the last ten seconds in which some thread waited for a core. A measurement now includes the other programs.",
        how: "Stop programs that are not needed, or give them other cores.",
        cost: "None.",
        skip: "If the cores are isolated.",
        judge: pressure,
    },
    Check {
        id: "rtkit",
        area: "shared",
        severity: Severity::Info,
        title: "rtkit as a source of real-time rights",
        what: "rtkit gives desktop programs priorities up to 20, and stops threads that run for 200 ms without sleeping.",
        how: "A line in limits.d, or a service: onbeat tune prints both.",
        cost: "None.",
        skip: "If the rights come from elsewhere.",
        judge: rtkit,
    },
];

fn container(case: &MachineCase) -> Judgement {
    let name = match &case.facts.environment.container {
        Fact::Known(name) => name,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let filter = case.facts.environment.seccomp.known() == Some(&true);
    if name.is_empty() {
        return Judgement::good(if filter { "none, but a system call filter is on" } else { "none" });
    }
    let refused = [&case.tried.fifo, &case.tried.lock, &case.tried.dma_latency]
        .into_iter()
        .filter(|attempt| matches!(attempt, Fact::Known(Err(_))))
        .count();
    let with = if filter { ", with a system call filter" } else { "" };
    match refused {
        0 => Judgement::good(format!("{name}{with}: kernel settings are those of the host")),
        _ => Judgement::bad(format!("{name}{with}: {refused} of 3 real-time rights are missing"))
            .fix(Fix::advice("start it with --cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=95 --ulimit memlock=-1 --device /dev/cpu_dma_latency")),
    }
}

fn pressure(case: &MachineCase) -> Judgement {
    match &case.facts.environment.pressure {
        Fact::Known(share) if *share < 1.0 => Judgement::good(format!("{share} % of the last ten seconds")),
        Fact::Known(share) => Judgement::bad(format!(
            "in {share} % of the last ten seconds a thread waited for a core: the machine is in use"
        ))
        .fix(Fix::advice("stop programs that are not needed before you measure")),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn rtkit(case: &MachineCase) -> Judgement {
    match &case.facts.threads {
        Fact::Known(threads) if threads.iter().any(|thread| thread.name.starts_with("rtkit-daemon")) => {
            Judgement::good("rtkit runs: it gives sound programs priorities up to 20; onbeat does not use it")
        }
        Fact::Known(_) => Judgement::good("rtkit does not run, and is not needed"),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}
