//! Device interrupts.

use super::{Check, cores, some};
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::facts::Irq;
use crate::finding::{Fix, Judgement, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "device-interrupts",
        area: "interrupts",
        severity: Severity::Warning,
        title: "device interrupts on these cores",
        what: "A device interrupt takes microseconds from whatever runs on the core; the softirq after it takes much more.",
        how: "Write the other cores to /proc/irq/N/smp_affinity_list. Managed interrupts refuse that (EIO): isolcpus=managed_irq keeps them off.",
        cost: "The other cores handle all of these interrupts.",
        skip: "For the device that the pipeline reads from: its interrupt may be best on the pipeline's core.",
        judge: devices,
    },
    Check {
        id: "irqbalance",
        area: "interrupts",
        severity: Severity::Warning,
        title: "irqbalance moves interrupts",
        what: "irqbalance spreads interrupts over all cores, and overwrites affinities set by hand.",
        how: "systemctl disable --now irqbalance, or IRQBALANCE_BANNED_CPULIST=LIST in /etc/default/irqbalance.",
        cost: "Interrupts are no longer balanced.",
        skip: "If these cores are isolated: irqbalance then leaves them out.",
        judge: balancer,
    },
    Check {
        id: "threaded-interrupts",
        area: "interrupts",
        severity: Severity::Info,
        title: "interrupts as threads",
        what: "With threadirqs or PREEMPT_RT, an interrupt handler is a thread with a priority. A worker can have a higher one.",
        how: "threadirqs on the command line.",
        cost: "A context switch per interrupt.",
        skip: "If these cores get no interrupts.",
        judge: threaded,
    },
    Check {
        id: "packet-steering",
        area: "interrupts",
        severity: Severity::Info,
        title: "packet processing on these cores",
        what: "RPS and XPS distribute packets to the cores of a mask, which process them in softirqs.",
        how: "Write the mask of the other cores to queues/*/rps_cpus and xps_cpus.",
        cost: "Fewer cores process packets.",
        skip: "If the pipeline reads from the network and needs its packets on these cores.",
        judge: steering,
    },
];

fn devices(case: &MachineCase) -> Judgement {
    let irqs = match &case.facts.interrupts.irqs {
        Fact::Known(irqs) => irqs,
        Fact::Unknown(why) => return Judgement::unknown(why),
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
    // The kernel does not allow anybody to move an interrupt that it manages per queue.
    let fixes = may
        .iter()
        .filter(|_| !house.is_empty())
        .map(|irq| Fix::write(format!("proc/irq/{}/smp_affinity_list", irq.number), house.to_string()));
    if may.is_empty() {
        return Judgement::good(format!("no device interrupt may come to {}{busy}", cores(&case.cpus)));
    }
    let count = may.len();
    match here.is_empty() {
        true => Judgement::bad(format!("{count} may come to {}, none does now{busy}", case.cpus))
            .with_severity(Severity::Info)
            .fixes(fixes),
        false => {
            let mut used: Vec<&Irq> = here.clone();
            used.sort_by_key(|irq| std::cmp::Reverse(irq.count));
            let names: Vec<String> = used.iter().map(|irq| irq.name.clone()).collect();
            Judgement::bad(format!("{} come to {}: {}{busy}", here.len(), case.cpus, some(&names)))
                .fixes(fixes)
        }
    }
}

/// Describes the interrupts of the measured second.
fn measured(case: &MachineCase, irqs: &[Irq]) -> String {
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
        "; in one measured second: {} from devices, {} from the kernel ({timer} from its timer)",
        sum(true),
        sum(false)
    )
}

fn balancer(case: &MachineCase) -> Judgement {
    let threads = match &case.facts.threads {
        Fact::Known(threads) => threads,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    if !threads.iter().any(|thread| thread.name == "irqbalance") {
        return Judgement::good("irqbalance does not run");
    }
    let isolated = case.facts.cpus.isolated.known().cloned().unwrap_or_default();
    match case.cpus.without(&isolated).is_empty() {
        true => Judgement::good("irqbalance runs, and leaves isolated cores out"),
        false => Judgement::bad("irqbalance runs, and overwrites smp_affinity_list")
            .fix(Fix::command(format!("systemctl disable --now irqbalance   # or IRQBALANCE_BANNED_CPULIST={} in /etc/default/irqbalance", case.cpus))),
    }
}

fn threaded(case: &MachineCase) -> Judgement {
    let kernel = &case.facts.kernel;
    match (kernel.is_realtime(), kernel.parameter("threadirqs")) {
        (_, Some(_)) => Judgement::good("threadirqs"),
        (Fact::Known(true), _) => Judgement::good("PREEMPT_RT"),
        (Fact::Known(false), None) => {
            // Without interrupts on these cores, threads gain nothing.
            match case.facts.interrupts.on(&case.cpus).next() {
                None => Judgement::good("no device interrupt comes to these cores"),
                Some(_) => Judgement::bad("interrupts run before every thread, whatever its priority")
                    .fix(Fix::Boot { name: "threadirqs".to_owned(), value: None }),
            }
        }
        (Fact::Unknown(why), None) => Judgement::unknown(why),
    }
}

fn steering(case: &MachineCase) -> Judgement {
    let queues = match &case.facts.interrupts.steering {
        Fact::Known(queues) => queues,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let ours: Vec<&(String, onbeat_os::CoreSet)> =
        queues.iter().filter(|(_, cores)| !cores.common(&case.cpus).is_empty()).collect();
    if ours.is_empty() {
        return Judgement::good("no queue's mask contains these cores");
    }
    let names: Vec<String> =
        ours.iter().map(|(path, _)| path.trim_start_matches("sys/class/net/").to_owned()).collect();
    let fixes = ours
        .iter()
        .map(|(path, cores)| Fix::write(path.clone(), crate::lists::to_mask(&cores.without(&case.cpus))));
    Judgement::bad(format!("these cores process packets: {}", some(&names))).fixes(fixes)
}
