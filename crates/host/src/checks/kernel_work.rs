//! Background work of the kernel, on any core that is allowed.

use super::Check;
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "work-queues",
        area: "kernel work",
        severity: Severity::Warning,
        title: "unbound work queues",
        what: "kworkers of unbound queues run on any core of their mask, to write back dirty pages for instance.",
        how: "Write the mask of the other cores to /sys/devices/virtual/workqueue/cpumask and to the queues' own masks.",
        cost: "The other cores do all of this work.",
        skip: "If these cores are isolated by isolcpus=domain: the mask then excludes them already.",
        judge: work_queues,
    },
    Check {
        id: "watchdogs",
        area: "kernel work",
        severity: Severity::Warning,
        title: "kernel watchdogs",
        what: "The hard-lockup watchdog is an NMI on every core. The soft one is a timer and a thread of the highest priority, every four seconds.",
        how: "sysctl kernel.nmi_watchdog=0, and write the other cores to kernel.watchdog_cpumask.",
        cost: "The kernel does not notice a core that hangs.",
        skip: "While you suspect a driver of hanging.",
        judge: watchdogs,
    },
    Check {
        id: "machine-checks",
        area: "kernel work",
        severity: Severity::Info,
        title: "polling for machine checks",
        what: "Each core checks for corrected memory and cache errors every few minutes.",
        how: "Write 0 to /sys/devices/system/machinecheck/machinecheck0/check_interval, or boot with mce=ignore_ce.",
        cost: "The kernel does not report memory that begins to fail.",
        skip: "If a gap every five minutes is acceptable.",
        judge: machine_checks,
    },
    Check {
        id: "console",
        area: "kernel work",
        severity: Severity::Info,
        title: "kernel messages on a slow console",
        what: "A log line on a serial console takes milliseconds, with interrupts off on older kernels.",
        how: "sysctl kernel.printk=\"4 4 1 7\", or quiet on the command line.",
        cost: "The console shows less; the log still has everything.",
        skip: "If the console is not a serial line.",
        judge: console,
    },
    Check {
        id: "tracing",
        area: "kernel work",
        severity: Severity::Warning,
        title: "a tracer that was left on",
        what: "Every event costs 100 to 300 ns; a function tracer costs many times that. A tool that crashed leaves its tracer on.",
        how: "Write nop to current_tracer and nothing to set_event, if no tool is tracing.",
        cost: "A tool that is tracing loses its trace.",
        skip: "While you trace.",
        judge: tracing,
    },
];

fn work_queues(case: &MachineCase) -> Judgement {
    let queues = match &case.facts.interrupts.work_queues {
        Fact::Known(queues) => queues,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let house = case.house();
    // The first mask bounds all others.
    let all = queues.first().map(|(_, cores)| cores.common(&case.cpus)).unwrap_or_default();
    let ours: Vec<&(String, onbeat_os::CoreSet)> =
        queues.iter().filter(|(_, cores)| !cores.common(&all).is_empty()).collect();
    match ours.first() {
        None => Judgement::good("no unbound kworker may run on these cores"),
        Some(_) => {
            let judged = Judgement::bad(format!(
                "kworkers of {} of {} masks may run on {}",
                ours.len(),
                queues.len(),
                case.cpus
            ));
            match house.is_empty() {
                true => judged,
                false => judged.fixes(
                    ours.iter().map(|(path, _)| Fix::write(path.clone(), crate::lists::to_mask(&house))),
                ),
            }
        }
    }
}

fn watchdogs(case: &MachineCase) -> Judgement {
    let interrupts = &case.facts.interrupts;
    let mut seen = Vec::new();
    let mut fixes = Vec::new();
    if interrupts.nmi_watchdog.known().is_some_and(|on| *on != 0) {
        seen.push("the NMI watchdog interrupts every core".to_owned());
        fixes.push(Fix::sysctl("kernel.nmi_watchdog", "0"));
    }
    let soft = interrupts.soft_watchdog.known().is_none_or(|on| *on != 0);
    if let Fact::Known(cores) = &interrupts.watchdog_cpus
        && soft
    {
        let (both, house) = (cores.common(&case.cpus), case.house());
        if !both.is_empty() {
            seen.push(format!("the soft watchdog runs on {both}"));
            if !house.is_empty() {
                fixes.push(Fix::sysctl("kernel.watchdog_cpumask", house.to_string()));
            }
        }
    }
    if !seen.is_empty() {
        return Judgement::bad(seen.join("; ")).fixes(fixes);
    }
    match (&interrupts.nmi_watchdog, &interrupts.watchdog_cpus) {
        (Fact::Unknown(why), Fact::Unknown(_)) => Judgement::unknown(why),
        _ => Judgement::good("the watchdogs leave these cores alone"),
    }
}

fn machine_checks(case: &MachineCase) -> Judgement {
    if case.facts.kernel.parameter("mce").is_some_and(|value| value == "ignore_ce" || value == "off") {
        return Judgement::good("mce=ignore_ce");
    }
    match &case.facts.interrupts.check_interval_s {
        Fact::Known(0) => Judgement::good("off"),
        Fact::Known(s) => Judgement::bad(format!("each core checks for corrected errors every {s} s"))
            .fix(Fix::command("echo 0 > /sys/devices/system/machinecheck/machinecheck0/check_interval   # the kernel then reports no such errors")),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn console(case: &MachineCase) -> Judgement {
    let kernel = &case.facts.kernel;
    let serial = kernel.command_line.known().and_then(|line| {
        let mut consoles = line.parameters().iter().filter(|parameter| parameter.name == "console");
        consoles.find_map(|console| {
            console.value.clone().filter(|value| {
                value.starts_with("tty")
                    && !value.starts_with("tty0")
                    && value[3..].starts_with(|c: char| c.is_ascii_uppercase())
            })
        })
    });
    match (&kernel.console_level, serial) {
        (Fact::Known(level), _) if *level <= 4 => {
            Judgement::good(format!("warnings do not go to the console (level {level})"))
        }
        (Fact::Known(level), Some(console)) => {
            Judgement::bad(format!("messages up to level {level} go to the serial console {console}"))
                .fix(Fix::command("sysctl kernel.printk=\"4 4 1 7\""))
        }
        (Fact::Known(level), None) => Judgement::good(format!("level {level}, no serial console")),
        (Fact::Unknown(why), _) => Judgement::unknown(why),
    }
}

fn tracing(case: &MachineCase) -> Judgement {
    let interrupts = &case.facts.interrupts;
    let tracer = match &interrupts.tracer {
        Fact::Known(tracer) => tracer,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let events = interrupts.trace_events.known().map_or(&[][..], Vec::as_slice);
    if tracer != "nop" {
        return Judgement::bad(format!("the tracer `{tracer}` is on"))
            .fix(Fix::command("echo nop > /sys/kernel/tracing/current_tracer   # if no tool is tracing"));
    }
    match events.is_empty() {
        true => Judgement::good("none"),
        false => Judgement::bad(format!("events are being traced: {}", super::some(events)))
            .fix(Fix::command("echo > /sys/kernel/tracing/set_event   # if no tool is tracing")),
    }
}
