//! How the kernel was booted: cores that are kept apart, and whether it understood what it was told.

use super::{Check, cores};
use crate::case::Case;
use crate::fact::Fact;
use crate::finding::{Fix, Judged, Severity};
use crate::verify::{self, Agreement};
use onbeat_os::CoreSet;

pub const CHECKS: &[Check] = &[
    Check {
        id: "isolcpus",
        area: "boot",
        severity: Severity::Warning,
        title: "cores that the scheduler leaves alone",
        what: "On an isolated core the scheduler puts no thread that did not ask for it, and balances no load there.",
        how: "isolcpus=managed_irq,domain,LIST on the command line; without a reboot, an isolated partition of control groups (onbeat tune --partition).",
        cost: "These cores do nothing else. Nobody spreads threads there: two threads that are put on a set of isolated cores stay on the first, so pin one by one.",
        skip: "Where the machine is not yours alone, or no thread is pinned.",
        judge: isolated,
    },
    Check {
        id: "nohz-full",
        area: "boot",
        severity: Severity::Info,
        title: "cores without a tick",
        what: "With nohz_full= a core that has one runnable thread is not interrupted 100 to 1000 times a second. It implies the offload of RCU.",
        how: "nohz_full=LIST on the command line, on a kernel with CONFIG_NO_HZ_FULL.",
        cost: "Every system call and interrupt costs more there, for the kernel keeps accounts. A second runnable thread, a CPU timer or the fair server brings the tick back; for a FIFO thread it often stays.",
        skip: "Where threads sleep or make many system calls: then it costs and gives nothing.",
        judge: tickless,
    },
    Check {
        id: "rcu-nocbs",
        area: "boot",
        severity: Severity::Warning,
        title: "RCU callbacks run elsewhere",
        what: "Memory that the kernel gives back later (RCU) is given back on the core where it was freed, in a softirq; offloaded cores leave that to threads.",
        how: "rcu_nocbs=LIST on the command line; nohz_full= implies it.",
        cost: "Threads rcuo* run on the other cores.",
        skip: "Where the core is not busy with real-time work.",
        judge: offloaded,
    },
    Check {
        id: "irqaffinity",
        area: "boot",
        severity: Severity::Warning,
        title: "where new interrupts go",
        what: "A device that is set up later gets its interrupts on the cores of this mask.",
        how: "irqaffinity=LIST on the command line, or /proc/irq/default_smp_affinity at once.",
        cost: "The other cores handle them all.",
        skip: "Where no device comes while it runs.",
        judge: default_affinity,
    },
    Check {
        id: "command-line",
        area: "boot",
        severity: Severity::Critical,
        title: "the kernel understood its command line",
        what: "A list with a mistake, an unknown flag or a misspelt name is left out by the kernel, at most with a line in its log: the machine looks tuned and is not.",
        how: "Correct it in the boot loader; onbeat tune prints the line.",
        cost: "None.",
        skip: "Never.",
        judge: understood,
    },
    Check {
        id: "house-keeping",
        area: "boot",
        severity: Severity::Critical,
        title: "cores are left to the system",
        what: "Interrupts, kernel threads, RCU callbacks and all programs need a core; better two. If all are isolated, or all are to be quiet, none is.",
        how: "Leave at least one core out of isolcpus= and --cpus.",
        cost: "A core.",
        skip: "Never.",
        judge: house,
    },
    Check {
        id: "boot-options",
        area: "boot",
        severity: Severity::Info,
        title: "other options that change its timing",
        what: "idle=poll keeps cores from sleeping, and takes half of the other thread of the same core; tsc=reliable keeps the kernel from noticing a broken clock.",
        how: "The kernel's command line.",
        cost: "idle=poll: heat and power. tsc=reliable: silent errors of time.",
        skip: "Where it is there on purpose.",
        judge: options,
    },
];

fn isolated(case: &Case) -> Judged {
    let cpus = &case.facts.cpus;
    let isolated = match &cpus.isolated {
        Fact::Known(isolated) => isolated,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    let missing = case.cpus.without(isolated);
    let wanted = Fix::boot("isolcpus", format!("managed_irq,domain,{}", case.cpus));
    if !missing.is_empty() {
        return Judged::bad(format!("any thread may run on {missing}: isolated are {}", cores(isolated)))
            .fix(wanted);
    }
    let by_boot = case.cpus.without(&cpus.partitioned);
    let flags = case.facts.kernel.parameter("isolcpus").unwrap_or("");
    if !by_boot.is_empty() && !flags.split(',').any(|flag| flag == "managed_irq") {
        return Judged::bad(format!("isolated are {isolated}, without the flag managed_irq: interrupts of network and disk queues come to them all the same"))
            .with_severity(Severity::Info)
            .fix(wanted);
    }
    Judged::good(format!("isolated are {isolated}"))
}

fn tickless(case: &Case) -> Judged {
    let spins =
        case.pipeline.as_ref().is_some_and(|pipeline| pipeline.workers.iter().any(|worker| worker.spins));
    let severity = if spins { Severity::Warning } else { Severity::Info };
    let hz = case.facts.kernel.config.known().and_then(|config| config.get("HZ")).unwrap_or("100 to 1000");
    if case.facts.kernel.has("NO_HZ_FULL") == Some(false) {
        return Judged::bad(format!(
            "this kernel always ticks, {hz} times a second: it is built without NO_HZ_FULL"
        ))
        .with_severity(severity)
        .fix(Fix::advice("boot a kernel with CONFIG_NO_HZ_FULL=y, such as that of Debian"));
    }
    let tickless = match &case.facts.cpus.nohz_full {
        Fact::Known(tickless) => tickless,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    match case.cpus.without(tickless) {
        missing if missing.is_empty() => {
            Judged::good(format!("without a tick where one thread runs: {tickless}"))
        }
        missing => {
            Judged::bad(format!("the tick comes {hz} times a second to {missing}, whatever runs there"))
                .with_severity(severity)
                .fix(Fix::boot("nohz_full", case.cpus.to_string()))
        }
    }
}

fn offloaded(case: &Case) -> Judged {
    let facts = &case.facts;
    if facts.kernel.has("RCU_NOCB_CPU") == Some(false) {
        return Judged::bad("this kernel cannot offload RCU callbacks: it is built without RCU_NOCB_CPU")
            .fix(Fix::advice("boot a kernel with CONFIG_RCU_NOCB_CPU=y"));
    }
    let offloaded = match verify::offloaded(facts) {
        Fact::Known(offloaded) => offloaded,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    let missing = case.cpus.without(&offloaded);
    match missing.is_empty() {
        true => Judged::good(format!("threads rcuo* do it for {}", cores(&offloaded))),
        false => Judged::bad(format!("RCU callbacks run in softirqs on {missing}"))
            .fix(Fix::boot("rcu_nocbs", case.cpus.to_string())),
    }
}

fn default_affinity(case: &Case) -> Judged {
    let affinity = match &case.facts.interrupts.default_affinity {
        Fact::Known(affinity) => affinity,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    let both = affinity.common(&case.cpus);
    if both.is_empty() {
        return Judged::good(format!("new interrupts go to {affinity}"));
    }
    let judged = Judged::bad(format!("new interrupts may go to {both}"));
    let house = case.house();
    match house.is_empty() {
        true => judged,
        false => judged
            .fix(Fix::boot("irqaffinity", house.to_string()))
            .fix(Fix::write("proc/irq/default_smp_affinity", crate::lists::to_mask(&house))),
    }
}

fn understood(case: &Case) -> Judged {
    let line = match &case.facts.kernel.command_line {
        Fact::Known(line) => line,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    let mut wrong: Vec<String> = verify::parameters(&case.facts)
        .into_iter()
        .filter(|row| row.agreement == Agreement::Differs)
        .map(|row| format!("{}={} was taken as {}", row.name, row.asked, row.found))
        .collect();
    wrong.extend(
        verify::misspelt(line)
            .into_iter()
            .map(|(word, meant)| format!("`{word}` is unknown: {meant} is meant")),
    );
    match wrong.is_empty() {
        true => Judged::good("every list of cores was taken as it is written"),
        false => Judged::bad(wrong.join("; "))
            .fix(Fix::advice("correct it in the boot loader: `onbeat tune` prints the line")),
    }
}

fn house(case: &Case) -> Judged {
    let online = case.online();
    let isolated = case.facts.cpus.isolated.known().cloned().unwrap_or_default();
    let asked = case
        .facts
        .kernel
        .parameter("isolcpus")
        .and_then(|value| verify::cores_of(value, verify::last(&case.facts)));
    let all_asked = asked.is_some_and(|asked| !online.is_empty() && online.without(&asked).is_empty());
    if online.is_empty() {
        return Judged::unknown("nobody knows which cores are online");
    }
    if all_asked || online.without(&isolated).is_empty() {
        return Judged::bad(format!("isolcpus names every core ({online}): nothing is left to the system"))
            .fix(Fix::advice("leave at least one core out of it, better two"));
    }
    let left = online.without(&case.cpus);
    let left_apart: CoreSet = left.without(&isolated);
    match (left.len(), left_apart.len()) {
        (0, _) => Judged::bad(format!("every core ({online}) is to be quiet: nothing is left to the system"))
            .with_severity(if online.len() == 1 { Severity::Warning } else { Severity::Critical })
            .fix(Fix::advice("name fewer with --cpus, or add a core to the machine")),
        (_, 0) => Judged::bad(format!(
            "all cores but those to be quiet are isolated too ({isolated}): nothing is left to the system"
        ))
        .fix(Fix::advice("leave at least one core out of isolcpus=, better two")),
        (_, 1) if online.len() > 2 => Judged::bad(format!("one core ({left_apart}) is left to the system"))
            .with_severity(Severity::Info)
            .fix(Fix::advice("leave it two, where there is one to spare")),
        _ => Judged::good(format!("{} is left to the system", left_apart)),
    }
}

fn options(case: &Case) -> Judged {
    let line = match &case.facts.kernel.command_line {
        Fact::Known(line) => line,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    let smt = case.facts.cpus.smt.known() == Some(&true);
    if line.value("idle") == Some("poll") && smt {
        return Judged::bad(
            "idle=poll, while two hardware threads share a core: an idle one takes half of the busy one",
        )
        .with_severity(Severity::Warning)
        .fix(Fix::advice(
            "boot without idle=poll and let the pipeline hold `dma_latency = \"0us\"`, or boot with nosmt",
        ));
    }
    if line.value("tsc") == Some("reliable") && case.facts.is_guest() == Some(true) {
        return Judged::bad("tsc=reliable in a virtual machine: a broken clock would not be noticed")
            .with_severity(Severity::Warning)
            .fix(Fix::advice("boot without tsc=reliable"));
    }
    let known = [
        "idle",
        "tsc",
        "skew_tick",
        "nosoftlockup",
        "nowatchdog",
        "intel_pstate",
        "processor.max_cstate",
        "intel_idle.max_cstate",
        "nosmt",
        "mce",
        "nmi_watchdog",
        "threadirqs",
        "mitigations",
    ];
    let there: Vec<String> =
        known.iter().filter_map(|name| line.get(name)).map(ToString::to_string).collect();
    Judged::good(if there.is_empty() { "none".to_owned() } else { there.join(" ") })
}
