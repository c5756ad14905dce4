//! Interrupts, and background work of the kernel.

use crate::fact::{self, Fact};
use crate::lists;
use crate::tree::Tree;
use onbeat_os::CoreSet;
use std::collections::BTreeMap;

/// Interrupts and background work of the kernel.
#[derive(Debug, Clone, Default)]
pub struct InterruptFacts {
    /// Cores that new interrupts may come to.
    pub default_affinity: Fact<CoreSet>,
    /// Device interrupts.
    pub irqs: Fact<Vec<Irq>>,
    /// Masks of unbound work queues: file and cores.
    pub work_queues: Fact<Vec<(String, CoreSet)>>,
    /// Network queues that other cores process: file and cores.
    pub steering: Fact<Vec<(String, CoreSet)>>,
    /// `kernel.nmi_watchdog`.
    pub nmi_watchdog: Fact<i64>,
    /// `kernel.watchdog_cpumask`.
    pub watchdog_cpus: Fact<CoreSet>,
    /// `kernel.soft_watchdog`.
    pub soft_watchdog: Fact<i64>,
    /// Period of the polling for machine checks, in seconds.
    pub check_interval_s: Fact<i64>,
    /// Current tracer.
    pub tracer: Fact<String>,
    /// Events being traced.
    pub trace_events: Fact<Vec<String>>,
}

/// A device interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Irq {
    /// Its number.
    pub number: u32,
    /// Name of its device.
    pub name: String,
    /// Cores that it may come to.
    pub affinity: CoreSet,
    /// Cores that it does come to.
    pub effective: Option<CoreSet>,
    /// Number of times that it came, on all cores.
    pub count: u64,
}

impl Irq {
    /// Whether a device uses it: an interrupt without a handler has no name, and two of a PC belong to the
    /// kernel.
    #[must_use]
    pub fn is_movable(&self) -> bool {
        !matches!(self.name.as_str(), NOBODY | "timer" | "cascade")
    }
}

/// Name of an interrupt without a handler.
const NOBODY: &str = "?";

/// Limit on the number of interrupts read.
const MOST_IRQS: usize = 4096;

impl InterruptFacts {
    pub(super) fn read(tree: &dyn Tree) -> Self {
        let kernel = |name: &str| format!("proc/sys/kernel/{name}");
        let tracing = |name: &str| {
            let at = |root: &str| fact::text(tree, &format!("{root}/{name}"));
            at("sys/kernel/tracing").or(at("sys/kernel/debug/tracing"))
        };
        InterruptFacts {
            default_affinity: fact::parsed(tree, "proc/irq/default_smp_affinity", lists::mask),
            irqs: irqs(tree),
            work_queues: work_queues(tree),
            steering: steering(tree),
            nmi_watchdog: fact::number(tree, &kernel("nmi_watchdog")),
            watchdog_cpus: fact::parsed(tree, &kernel("watchdog_cpumask"), lists::file),
            soft_watchdog: fact::number(tree, &kernel("soft_watchdog")),
            check_interval_s: fact::number(
                tree,
                "sys/devices/system/machinecheck/machinecheck0/check_interval",
            ),
            tracer: tracing("current_tracer").map(|tracer| fact::short(&tracer)),
            trace_events: tracing("set_event").map(|text| text.lines().take(1000).map(fact::short).collect()),
        }
    }

    /// Returns the interrupts that may come to one of these cores, without those that no handler uses or the
    /// kernel keeps.
    pub fn on<'i>(&'i self, cores: &'i CoreSet) -> impl Iterator<Item = &'i Irq> {
        let irqs = self.irqs.known().into_iter().flatten();
        irqs.filter(|irq| irq.is_movable() && !irq.affinity.common(cores).is_empty())
    }
}

fn irqs(tree: &dyn Tree) -> Fact<Vec<Irq>> {
    let names = match tree.list("proc/irq") {
        Ok(names) => names,
        Err(error) => return Fact::Unknown(format!("/proc/irq: {error}")),
    };
    let described = described(fact::text(tree, "proc/interrupts").known().map_or("", String::as_str));
    let numbers = names.iter().filter_map(|name| name.parse::<u32>().ok());
    let irq = |number: u32| {
        let set = |file: &str| fact::parsed(tree, &format!("proc/irq/{number}/{file}"), lists::file);
        let (name, count) = described.get(&number).cloned().unwrap_or_else(|| (NOBODY.to_owned(), 0));
        let affinity = set("smp_affinity_list").known()?.clone();
        Some(Irq {
            number,
            name,
            affinity,
            effective: set("effective_affinity_list").known().cloned(),
            count,
        })
    };
    Fact::Known(numbers.take(MOST_IRQS).filter_map(irq).collect())
}

/// Parses names and counts by number from `/proc/interrupts`.
fn described(text: &str) -> BTreeMap<u32, (String, u64)> {
    let one = |line: &str| {
        let (label, rest) = line.split_once(':')?;
        let number = label.trim().parse().ok()?;
        let counts = rest.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let name = rest.split_whitespace().next_back()?;
        Some((number, (fact::short(name), counts.fold(0, u64::saturating_add))))
    };
    text.lines().filter_map(one).collect()
}

fn work_queues(tree: &dyn Tree) -> Fact<Vec<(String, CoreSet)>> {
    let first = "sys/devices/virtual/workqueue/cpumask".to_owned();
    let all = match fact::parsed(tree, &first, lists::mask) {
        Fact::Known(cores) => (first, cores),
        Fact::Unknown(why) => return Fact::Unknown(why),
    };
    let names = tree.list("sys/bus/workqueue/devices").unwrap_or_default();
    let others = names.into_iter().take(256).filter_map(|name| {
        let path = format!("sys/bus/workqueue/devices/{name}/cpumask");
        let cores = fact::parsed(tree, &path, lists::mask).known()?.clone();
        Some((path, cores))
    });
    Fact::Known(std::iter::once(all).chain(others).collect())
}

/// Returns the queues whose mask names a core.
fn steering(tree: &dyn Tree) -> Fact<Vec<(String, CoreSet)>> {
    let devices = match tree.list("sys/class/net") {
        Ok(devices) => devices,
        Err(error) => return Fact::Unknown(format!("/sys/class/net: {error}")),
    };
    let mut found = Vec::new();
    for device in devices.iter().take(64) {
        let folder = format!("sys/class/net/{device}/queues");
        for queue in tree.list(&folder).unwrap_or_default().iter().take(256) {
            let file = if queue.starts_with("rx-") { "rps_cpus" } else { "xps_cpus" };
            let path = format!("{folder}/{queue}/{file}");
            if let Fact::Known(cores) = fact::parsed(tree, &path, lists::mask)
                && !cores.is_empty()
            {
                found.push((path, cores));
            }
        }
    }
    Fact::Known(found)
}
