//! Build options of the kernel.

use super::Check;
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "preempt-rt",
        area: "kernel",
        severity: Severity::Warning,
        title: "a real-time kernel",
        what: "PREEMPT_RT lets a real-time thread preempt almost all of the kernel: locks sleep, and interrupt handlers are threads with priorities.",
        how: "Install the distribution's real-time kernel (Debian: linux-image-rt-amd64) and boot it.",
        cost: "Some throughput: more context switches, and locks that can sleep.",
        skip: "If deadlines are above a millisecond and a fully preemptible kernel meets them; test it with onbeat timerlat.",
        judge: realtime,
    },
    Check {
        id: "preemption-model",
        area: "kernel",
        severity: Severity::Warning,
        title: "the preemption model",
        what: "Without full preemption, a thread that wakes up waits until another thread's system call ends or reaches a preemption point.",
        how: "preempt=full on the command line, if the kernel has PREEMPT_DYNAMIC; no build is needed.",
        cost: "A few percent of throughput with many system calls.",
        skip: "On a PREEMPT_RT kernel, which is always preemptible.",
        judge: preemption,
    },
    Check {
        id: "kernel-config",
        area: "kernel",
        severity: Severity::Info,
        title: "the kernel's build options",
        what: "Periods that are not a multiple of the tick need high-resolution timers. The other options decide what can be tuned and measured.",
        how: "Use another kernel of the distribution, or build one with these options.",
        cost: "The options cost nothing unless used; you have to keep your own kernel up to date.",
        skip: "If you do not use the features that need the missing options.",
        judge: config,
    },
    Check {
        id: "lockdown",
        area: "kernel",
        severity: Severity::Info,
        title: "kernel lockdown",
        what: "Under `confidentiality`, the kernel cannot be traced: onbeat then knows classes of causes, but no names.",
        how: "lockdown=integrity, or none, on the command line; Secure Boot may set it.",
        cost: "Root can read kernel memory again.",
        skip: "If you do not need the names of causes.",
        judge: lockdown,
    },
];

/// Below this limit, a kernel without PREEMPT_RT gives no guarantee.
const HARD_NS: u64 = 100_000;

fn realtime(case: &MachineCase) -> Judgement {
    let kernel = &case.facts.kernel;
    let release = kernel.release.known().map_or("?", String::as_str);
    let is_realtime = match kernel.is_realtime() {
        Fact::Known(is_realtime) => is_realtime,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    if is_realtime {
        return Judgement::good(format!("{release} is PREEMPT_RT"));
    }
    let full = kernel.preempt.known().is_some_and(|mode| mode == "full")
        || kernel.parameter("preempt") == Some("full");
    let shortest = case.pipeline.as_ref().and_then(|pipeline| pipeline.shortest_ns);
    let fix = Fix::advice(
        "install the real-time kernel of the distribution (Debian: apt-get install linux-image-rt-amd64) and boot it",
    );
    match shortest {
        Some(ns) if ns < HARD_NS => Judgement::bad(format!(
            "{release} is not a PREEMPT_RT kernel: it cannot guarantee the pipeline's limit of {}",
            super::us(ns)
        ))
        .with_severity(Severity::Critical)
        .fix(fix),
        _ if full => Judgement::good(format!(
            "{release} is not a PREEMPT_RT kernel, but fully preemptible: suitable for limits above {}",
            super::us(HARD_NS)
        )),
        _ => Judgement::bad(format!("{release} is not a PREEMPT_RT kernel")).fix(fix),
    }
}

fn preemption(case: &MachineCase) -> Judgement {
    let kernel = &case.facts.kernel;
    if kernel.is_realtime().known() == Some(&true) {
        return Judgement::good("PREEMPT_RT");
    }
    let version = match &kernel.version {
        Fact::Known(version) => version,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let is_dynamic = version.contains("PREEMPT_DYNAMIC");
    let asked = kernel.parameter("preempt");
    let mode = match (&kernel.preempt, asked) {
        (Fact::Known(mode), _) => mode.as_str(),
        (_, Some(asked)) if is_dynamic => asked,
        (Fact::Unknown(why), _) if is_dynamic => {
            let built = [
                ("PREEMPT", "full"),
                ("PREEMPT_LAZY", "lazy"),
                ("PREEMPT_VOLUNTARY", "voluntary"),
                ("PREEMPT_NONE", "none"),
            ];
            match built.into_iter().find(|(option, _)| kernel.has(option) == Some(true)) {
                Some((_, mode)) => mode,
                None => return Judgement::unknown(format!("the mode of PREEMPT_DYNAMIC is unknown: {why}")),
            }
        }
        _ if version.contains(" PREEMPT ") => "full",
        _ => "none or voluntary",
    };
    match mode {
        "full" | "lazy" => Judgement::good(format!("preemption is {mode}")),
        _ => {
            let judged = Judgement::bad(format!(
                "preemption is {mode}: a system call of any thread delays a thread that wakes up"
            ));
            match is_dynamic {
                true => judged.fix(Fix::boot("preempt", "full")),
                false => judged.fix(Fix::advice("boot a kernel with PREEMPT_DYNAMIC or PREEMPT_RT")),
            }
        }
    }
}

fn config(case: &MachineCase) -> Judgement {
    let config = match &case.facts.kernel.config {
        Fact::Known(config) => config,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let hz = config.get("HZ").unwrap_or("?");
    if config.get("HIGH_RES_TIMERS").is_none() {
        return Judgement::bad(format!(
            "the kernel has no HIGH_RES_TIMERS: timers expire with the tick, {hz} times a second"
        ))
        .with_severity(Severity::Critical)
        .fix(Fix::advice("boot a kernel with CONFIG_HIGH_RES_TIMERS=y"));
    }
    let wanted = ["NO_HZ_FULL", "RCU_NOCB_CPU", "CPU_ISOLATION"];
    let lacks: Vec<&str> = wanted.into_iter().filter(|option| config.get(option).is_none()).collect();
    let told = ["OSNOISE_TRACER", "IRQ_TIME_ACCOUNTING", "PARAVIRT_TIME_ACCOUNTING", "RT_GROUP_SCHED"];
    let told: Vec<String> =
        told.iter().map(|option| format!("{option}={}", config.get(option).unwrap_or("n"))).collect();
    let rest = format!("HZ={hz}, {}", told.join(", "));
    match lacks.is_empty() {
        true => Judgement::good(format!("HIGH_RES_TIMERS=y, {rest}")),
        false => Judgement::bad(format!(
            "the kernel was built without {}: features that need them cannot be tuned ({rest})",
            lacks.join(", ")
        ))
        .fix(Fix::advice("boot a kernel that has them, such as Debian's")),
    }
}

fn lockdown(case: &MachineCase) -> Judgement {
    match &case.facts.kernel.lockdown {
        Fact::Known(mode) if mode == "confidentiality" => {
            Judgement::bad("lockdown is `confidentiality`: the kernel cannot be traced")
                .fix(Fix::boot("lockdown", "integrity"))
        }
        Fact::Known(mode) => Judgement::good(format!("lockdown is `{mode}`")),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}
