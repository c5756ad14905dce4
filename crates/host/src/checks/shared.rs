//! A machine that is shared: containers, and how busy it is.

use super::Check;
use crate::case::Case;
use crate::fact::Fact;
use crate::finding::{Fix, Judged, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "container",
        area: "shared",
        severity: Severity::Warning,
        title: "a container",
        what: "A container has the host's kernel and its settings, less rights: what is refused has to be granted when it is started, what is badly set has to be mended at the host.",
        how: "--cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=95 --ulimit memlock=-1 --device /dev/cpu_dma_latency; onbeat tune prints the flags for a pipeline.",
        cost: "What is in the container can keep cores from others.",
        skip: "Where all rights that were tried are there.",
        judge: container,
    },
    Check {
        id: "pressure",
        area: "shared",
        severity: Severity::Info,
        title: "threads that wait for a core",
        what: "The share of the last ten seconds in which some thread waited for a core: who measures now measures the others too.",
        how: "End what is not needed, or give it other cores.",
        cost: "None.",
        skip: "Where the cores are isolated.",
        judge: pressure,
    },
    Check {
        id: "rtkit",
        area: "shared",
        severity: Severity::Info,
        title: "rtkit as a way to real time",
        what: "rtkit gives desktop programs priorities up to 20, and ends threads that run for 200 ms without sleeping.",
        how: "A line in limits.d, or a service: onbeat tune prints both.",
        cost: "None.",
        skip: "Where rights come from elsewhere.",
        judge: rtkit,
    },
];

fn container(case: &Case) -> Judged {
    let name = match &case.facts.place.container {
        Fact::Known(name) => name,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    let filter = case.facts.place.seccomp.known() == Some(&true);
    if name.is_empty() {
        return Judged::good(if filter { "none, but a filter of system calls" } else { "none" });
    }
    let refused = [&case.tried.fifo, &case.tried.lock, &case.tried.dma_latency]
        .into_iter()
        .filter(|attempt| matches!(attempt, Fact::Known(Err(_))))
        .count();
    let with = if filter { ", with a filter of system calls" } else { "" };
    match refused {
        0 => Judged::good(format!("{name}{with}: settings of the kernel are those of the host")),
        _ => Judged::bad(format!("{name}{with}: {refused} of 3 rights for real time are missing"))
            .fix(Fix::advice("start it with --cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=95 --ulimit memlock=-1 --device /dev/cpu_dma_latency")),
    }
}

fn pressure(case: &Case) -> Judged {
    match &case.facts.place.pressure {
        Fact::Known(share) if *share < 1.0 => Judged::good(format!("{share} % of the last ten seconds")),
        Fact::Known(share) => Judged::bad(format!(
            "in {share} % of the last ten seconds a thread waited for a core: others use this machine"
        ))
        .fix(Fix::advice("end what is not needed before you measure")),
        Fact::Unknown(why) => Judged::unknown(why),
    }
}

fn rtkit(case: &Case) -> Judged {
    match &case.facts.threads {
        Fact::Known(threads) if threads.iter().any(|thread| thread.name.starts_with("rtkit-daemon")) => {
            Judged::good("it runs: good for sound, with priorities up to 20; onbeat does not use it")
        }
        Fact::Known(_) => Judged::good("it does not run, and is not needed"),
        Fact::Unknown(why) => Judged::unknown(why),
    }
}
