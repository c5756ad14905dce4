//! Boot options: isolated cores, and whether the kernel understood its command line.

use super::{Check, cores};
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};
use crate::verify::{self, Agreement};
use onbeat_os::CoreSet;

pub const CHECKS: &[Check] = &[
    Check {
        id: "isolcpus",
        area: "boot",
        severity: Severity::Warning,
        title: "cores that the scheduler leaves alone",
        what: "The scheduler puts no thread on an isolated core unless the thread asks for it, and balances no load there.",
        how: "isolcpus=managed_irq,domain,LIST on the command line; without a reboot, an isolated control group partition (onbeat tune --partition).",
        cost: "These cores do nothing else. Threads are not spread over them: two threads put on the same set of isolated cores both stay on the first, so pin each to its own core.",
        skip: "If you share the machine, or pin no thread.",
        judge: isolated,
    },
    Check {
        id: "nohz-full",
        area: "boot",
        severity: Severity::Info,
        title: "cores without a tick",
        what: "With nohz_full=, a core that has one runnable thread is not interrupted 100 to 1000 times a second. RCU callbacks of these cores are offloaded as well.",
        how: "nohz_full=LIST on the command line, on a kernel with CONFIG_NO_HZ_FULL.",
        cost: "System calls and interrupts cost more there, because the kernel accounts time at each of them. A second runnable thread, a CPU timer or the fair server brings the tick back; for a FIFO thread it often stays.",
        skip: "If threads sleep or make many system calls: it then costs time and gains nothing.",
        judge: tickless,
    },
    Check {
        id: "rcu-nocbs",
        area: "boot",
        severity: Severity::Warning,
        title: "RCU callbacks run on other cores",
        what: "The kernel frees some memory later (RCU), in a softirq on the core where it was released. Offloaded cores leave that work to threads.",
        how: "rcu_nocbs=LIST on the command line; nohz_full= implies it.",
        cost: "Threads rcuo* run on the other cores.",
        skip: "If the core runs no real-time work.",
        judge: offloaded,
    },
    Check {
        id: "irqaffinity",
        area: "boot",
        severity: Severity::Warning,
        title: "cores for new interrupts",
        what: "A device that is set up later gets its interrupts on the cores of this mask.",
        how: "irqaffinity=LIST on the command line, or /proc/irq/default_smp_affinity for an immediate change.",
        cost: "The other cores handle all of these interrupts.",
        skip: "If no device is added at run time.",
        judge: default_affinity,
    },
    Check {
        id: "command-line",
        area: "boot",
        severity: Severity::Critical,
        title: "the kernel understood its command line",
        what: "The kernel ignores a list with a mistake, an unknown flag or a misspelt name, at most with a line in its log. The machine then looks tuned but is not.",
        how: "Correct the line in the boot loader; onbeat tune prints it.",
        cost: "None.",
        skip: "Never.",
        judge: understood,
    },
    Check {
        id: "house-keeping",
        area: "boot",
        severity: Severity::Critical,
        title: "cores left to the system",
        what: "Interrupts, kernel threads, RCU callbacks and all programs need a core, better two. None is left if all cores are isolated or quiet.",
        how: "Leave at least one core out of isolcpus= and --cpus.",
        cost: "One core.",
        skip: "Never.",
        judge: house,
    },
    Check {
        id: "boot-options",
        area: "boot",
        severity: Severity::Info,
        title: "other boot options that change timing",
        what: "idle=poll keeps cores from sleeping, and slows the core's SMT sibling by up to half; tsc=reliable keeps the kernel from noticing a broken clock.",
        how: "The kernel's command line.",
        cost: "idle=poll: heat and power. tsc=reliable: time errors that go unnoticed.",
        skip: "If the option was set on purpose.",
        judge: options,
    },
];

fn isolated(case: &MachineCase) -> Judgement {
    let cpus = &case.facts.cpus;
    let isolated = match &cpus.isolated {
        Fact::Known(isolated) => isolated,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let missing = case.cpus.without(isolated);
    let wanted = Fix::boot("isolcpus", format!("managed_irq,domain,{}", case.cpus));
    if !missing.is_empty() {
        return Judgement::bad(format!(
            "any thread may run on {missing}; isolated cores: {}",
            cores(isolated)
        ))
        .fix(wanted);
    }
    let by_boot = case.cpus.without(&cpus.partitioned);
    let flags = case.facts.kernel.parameter("isolcpus").unwrap_or("");
    if !by_boot.is_empty() && !flags.split(',').any(|flag| flag == "managed_irq") {
        return Judgement::bad(format!("{isolated} are isolated without the flag managed_irq: interrupts of network and disk queues still reach them"))
            .with_severity(Severity::Info)
            .fix(wanted);
    }
    Judgement::good(format!("isolated cores: {isolated}"))
}

fn tickless(case: &MachineCase) -> Judgement {
    let spins =
        case.pipeline.as_ref().is_some_and(|pipeline| pipeline.workers.iter().any(|worker| worker.spins));
    let severity = if spins { Severity::Warning } else { Severity::Info };
    if let Some(useless) = without_effect(case, "NO_HZ_FULL", "nohz_full") {
        return useless;
    }
    let hz = case.facts.kernel.config.known().and_then(|config| config.get("HZ")).unwrap_or("100 to 1000");
    if case.facts.kernel.has("NO_HZ_FULL") == Some(false) {
        return Judgement::bad(format!(
            "this kernel always ticks, {hz} times a second: it was built without NO_HZ_FULL"
        ))
        .with_severity(severity)
        .fix(Fix::advice("boot a kernel with CONFIG_NO_HZ_FULL=y, such as that of Debian"));
    }
    let tickless = match &case.facts.cpus.nohz_full {
        Fact::Known(tickless) => tickless,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    match case.cpus.without(tickless) {
        missing if missing.is_empty() => {
            Judgement::good(format!("no tick on {tickless} while one thread runs there"))
        }
        missing => {
            Judgement::bad(format!("the tick interrupts {missing} {hz} times a second, whatever runs there"))
                .with_severity(severity)
                .fix(Fix::boot("nohz_full", case.cpus.to_string()))
        }
    }
}

/// An option on the command line that this kernel does not know. Its author relies on it.
fn without_effect(case: &MachineCase, config: &str, option: &str) -> Option<Judgement> {
    let kernel = &case.facts.kernel;
    let value = kernel.parameter(option).filter(|_| kernel.has(config) == Some(false))?;
    let seen = format!("{option}={value} has no effect: this kernel was built without {config}");
    let fix = Fix::advice(format!("boot a kernel with CONFIG_{config}=y, or take the option away"));
    Some(Judgement::bad(seen).with_severity(Severity::Critical).fix(fix))
}

fn offloaded(case: &MachineCase) -> Judgement {
    if let Some(useless) = without_effect(case, "RCU_NOCB_CPU", "rcu_nocbs") {
        return useless;
    }
    let facts = &case.facts;
    if facts.kernel.has("RCU_NOCB_CPU") == Some(false) {
        return Judgement::bad("this kernel cannot offload RCU callbacks: it was built without RCU_NOCB_CPU")
            .fix(Fix::advice("boot a kernel with CONFIG_RCU_NOCB_CPU=y"));
    }
    let offloaded = match verify::offloaded(facts) {
        Fact::Known(offloaded) => offloaded,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let missing = case.cpus.without(&offloaded);
    match missing.is_empty() {
        true => Judgement::good(format!("threads rcuo* run the callbacks of {}", cores(&offloaded))),
        false => Judgement::bad(format!("RCU callbacks run in softirqs on {missing}"))
            .fix(Fix::boot("rcu_nocbs", case.cpus.to_string())),
    }
}

fn default_affinity(case: &MachineCase) -> Judgement {
    let affinity = match &case.facts.interrupts.default_affinity {
        Fact::Known(affinity) => affinity,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let both = affinity.common(&case.cpus);
    if both.is_empty() {
        return Judgement::good(format!("new interrupts go to {affinity}"));
    }
    let judged = Judgement::bad(format!("new interrupts may go to {both}"));
    let house = case.house();
    match house.is_empty() {
        true => judged,
        false => judged
            .fix(Fix::boot("irqaffinity", house.to_string()))
            .fix(Fix::write("proc/irq/default_smp_affinity", crate::lists::to_mask(&house))),
    }
}

fn understood(case: &MachineCase) -> Judgement {
    let line = match &case.facts.kernel.command_line {
        Fact::Known(line) => line,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let mut wrong: Vec<String> = verify::parameters(&case.facts)
        .into_iter()
        .filter(|row| row.agreement == Agreement::Differs)
        .map(|row| format!("{}={} was taken as {}", row.name, row.asked, row.found))
        .collect();
    wrong.extend(
        verify::misspelt(line)
            .into_iter()
            .map(|(word, meant)| format!("unknown parameter `{word}`: did you mean {meant}?")),
    );
    match wrong.is_empty() {
        true => Judgement::good("every core list was taken as written"),
        false => Judgement::bad(wrong.join("; "))
            .fix(Fix::advice("correct the line in the boot loader: `onbeat tune` prints it")),
    }
}

fn house(case: &MachineCase) -> Judgement {
    let online = case.online();
    let isolated = case.facts.cpus.isolated.known().cloned().unwrap_or_default();
    let asked = case
        .facts
        .kernel
        .parameter("isolcpus")
        .and_then(|value| verify::cores_of(value, verify::last(&case.facts)));
    let all_asked = asked.is_some_and(|asked| !online.is_empty() && online.without(&asked).is_empty());
    if online.is_empty() {
        return Judgement::unknown("the list of online cores is unknown");
    }
    if all_asked || online.without(&isolated).is_empty() {
        return Judgement::bad(format!(
            "isolcpus names every core ({online}): no core is left to the system"
        ))
        .fix(Fix::advice("leave at least one core out of isolcpus=, better two"));
    }
    let left = online.without(&case.cpus);
    let left_apart: CoreSet = left.without(&isolated);
    match (left.len(), left_apart.len()) {
        (0, _) => {
            Judgement::bad(format!("every core ({online}) should be quiet: no core is left to the system"))
                .with_severity(if online.len() == 1 { Severity::Warning } else { Severity::Critical })
                .fix(Fix::advice("name fewer with --cpus, or add a core to the machine"))
        }
        (_, 0) => Judgement::bad(format!(
            "all cores except the quiet ones are isolated too ({isolated}): no core is left to the system"
        ))
        .fix(Fix::advice("leave at least one core out of isolcpus=, better two")),
        (_, 1) if online.len() > 2 => {
            Judgement::bad(format!("one core ({left_apart}) is left to the system"))
                .with_severity(Severity::Info)
                .fix(Fix::advice("leave two cores to the system if possible"))
        }
        _ => Judgement::good(format!("cores left to the system: {left_apart}")),
    }
}

fn options(case: &MachineCase) -> Judgement {
    let line = match &case.facts.kernel.command_line {
        Fact::Known(line) => line,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let smt = case.facts.cpus.smt.known() == Some(&true);
    if line.value("idle") == Some("poll") && smt {
        return Judgement::bad(
            "idle=poll with two hardware threads per core: an idle one slows its busy sibling by up to half",
        )
        .with_severity(Severity::Warning)
        .fix(Fix::advice(
            "boot without idle=poll and set `dma_latency = \"0us\"` in the pipeline, or boot with nosmt",
        ));
    }
    if line.value("tsc") == Some("reliable") && case.facts.is_guest() == Some(true) {
        return Judgement::bad(
            "tsc=reliable in a virtual machine: the kernel would not notice a broken clock",
        )
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
    Judgement::good(if there.is_empty() { "none".to_owned() } else { there.join(" ") })
}
