//! Interrupts of devices.

use super::{Check, cores, some};
use crate::case::Case;
use crate::fact::Fact;
use crate::facts::Irq;
use crate::finding::{Fix, Judged, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "device-interrupts",
        area: "interrupts",
        severity: Severity::Warning,
        title: "interrupts of devices on these cores",
        what: "A device's interrupt takes microseconds from whatever runs, and the softirq behind it much more.",
        how: "The other cores into /proc/irq/N/smp_affinity_list. Managed interrupts refuse that (EIO): isolcpus=managed_irq keeps them off.",
        cost: "The other cores handle them all.",
        skip: "The interrupt of the device that the pipeline reads from may be best on its core.",
        judge: devices,
    },
    Check {
        id: "irqbalance",
        area: "interrupts",
        severity: Severity::Warning,
        title: "irqbalance moves interrupts",
        what: "It spreads interrupts over all cores again, whatever was written by hand.",
        how: "systemctl disable --now irqbalance, or IRQBALANCE_BANNED_CPULIST=LIST in /etc/default/irqbalance.",
        cost: "Interrupts stay where they are put.",
        skip: "Where these cores are isolated: irqbalance leaves them out then.",
        judge: balancer,
    },
    Check {
        id: "threaded-interrupts",
        area: "interrupts",
        severity: Severity::Info,
        title: "interrupts as threads",
        what: "With threadirqs, or PREEMPT_RT, an interrupt is a thread with a priority: ours can be above it.",
        how: "threadirqs on the command line.",
        cost: "A switch per interrupt.",
        skip: "Where interrupts are kept off these cores.",
        judge: threaded,
    },
    Check {
        id: "packet-steering",
        area: "interrupts",
        severity: Severity::Info,
        title: "packets on other cores",
        what: "RPS and XPS have packets worked on by the cores of a mask, in softirqs.",
        how: "The mask of the other cores into queues/*/rps_cpus and xps_cpus.",
        cost: "Fewer cores work on packets.",
        skip: "Where the pipeline reads from the network and wants it so.",
        judge: steering,
    },
];

fn devices(case: &Case) -> Judged {
    let irqs = match &case.facts.interrupts.irqs {
        Fact::Known(irqs) => irqs,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    let house = case.house();
    let reaches = |irq: &&Irq| {
        let place = irq.effective.as_ref().unwrap_or(&irq.affinity);
        irq.is_movable()
            && !irq.affinity.common(&case.cpus).is_empty()
            && (!place.common(&case.cpus).is_empty() || irq.affinity.without(&case.cpus).is_empty())
    };
    let here: Vec<&Irq> = irqs.iter().filter(reaches).collect();
    let may: Vec<&Irq> = case.facts.interrupts.on(&case.cpus).collect();
    let busy = measured(case, irqs);
    // Of an interrupt that a queue manages, the kernel lets nobody change the place.
    let fixes = may
        .iter()
        .filter(|_| !house.is_empty())
        .map(|irq| Fix::write(format!("proc/irq/{}/smp_affinity_list", irq.number), house.to_string()));
    if may.is_empty() {
        return Judged::good(format!("none may come to {}{busy}", cores(&case.cpus)));
    }
    let count = may.len();
    match here.is_empty() {
        true => Judged::bad(format!("{count} may come to {}, and none does now{busy}", case.cpus))
            .with_severity(Severity::Info)
            .fixes(fixes),
        false => {
            let mut used: Vec<&Irq> = here.clone();
            used.sort_by_key(|irq| std::cmp::Reverse(irq.count));
            let names: Vec<String> = used.iter().map(|irq| irq.name.clone()).collect();
            Judged::bad(format!("{} come to {}: {}{busy}", here.len(), case.cpus, some(&names))).fixes(fixes)
        }
    }
}

/// What came in the measured second.
fn measured(case: &Case, irqs: &[Irq]) -> String {
    let Some(counts) = case.measured.interrupts.known() else { return String::new() };
    let is_device = |name: &str| irqs.iter().any(|irq| irq.name == name);
    let sum = |device: bool| -> u64 {
        let all = counts.iter().flat_map(|(_, counts)| counts);
        all.filter(|(name, _)| is_device(name) == device).map(|(_, count)| *count).sum()
    };
    let timer: u64 = counts
        .iter()
        .flat_map(|(_, counts)| counts)
        .filter(|(name, _)| name == "LOC")
        .map(|(_, count)| *count)
        .sum();
    format!(
        "; in a measured second {} of devices, {} of the kernel ({timer} of its timer)",
        sum(true),
        sum(false)
    )
}

fn balancer(case: &Case) -> Judged {
    let threads = match &case.facts.threads {
        Fact::Known(threads) => threads,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    if !threads.iter().any(|thread| thread.name == "irqbalance") {
        return Judged::good("it does not run");
    }
    let isolated = case.facts.cpus.isolated.known().cloned().unwrap_or_default();
    match case.cpus.without(&isolated).is_empty() {
        true => Judged::good("it runs, and leaves isolated cores out"),
        false => Judged::bad("it runs, and undoes what is written to smp_affinity_list")
            .fix(Fix::command(format!("systemctl disable --now irqbalance   # or IRQBALANCE_BANNED_CPULIST={} in /etc/default/irqbalance", case.cpus))),
    }
}

fn threaded(case: &Case) -> Judged {
    let kernel = &case.facts.kernel;
    match (kernel.is_realtime(), kernel.parameter("threadirqs")) {
        (_, Some(_)) => Judged::good("threadirqs"),
        (Fact::Known(true), _) => Judged::good("PREEMPT_RT"),
        (Fact::Known(false), None) => {
            // Without interrupts there, nothing is won.
            match case.facts.interrupts.on(&case.cpus).next() {
                None => Judged::good("no interrupt of a device comes to these cores"),
                Some(_) => Judged::bad("interrupts run before every thread, whatever its priority")
                    .fix(Fix::Boot { name: "threadirqs".to_owned(), value: None }),
            }
        }
        (Fact::Unknown(why), None) => Judged::unknown(why),
    }
}

fn steering(case: &Case) -> Judged {
    let queues = match &case.facts.interrupts.steering {
        Fact::Known(queues) => queues,
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    let ours: Vec<&(String, onbeat_os::CoreSet)> =
        queues.iter().filter(|(_, cores)| !cores.common(&case.cpus).is_empty()).collect();
    if ours.is_empty() {
        return Judged::good("none names these cores");
    }
    let names: Vec<String> =
        ours.iter().map(|(path, _)| path.trim_start_matches("sys/class/net/").to_owned()).collect();
    let fixes = ours
        .iter()
        .map(|(path, cores)| Fix::write(path.clone(), crate::lists::to_mask(&cores.without(&case.cpus))));
    Judged::bad(format!("packets are worked on by these cores: {}", some(&names))).fixes(fixes)
}
