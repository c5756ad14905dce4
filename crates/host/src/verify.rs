//! Compares the kernel's command line with what the kernel did.

use crate::command_line::CommandLine;
use crate::fact::Fact;
use crate::facts::{Facts, SystemThread};
use crate::lists;
use onbeat_os::CoreSet;
use serde::Serialize;

/// A parameter of the command line, and its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Name of the parameter.
    pub name: String,
    /// Value on the command line.
    pub asked: String,
    /// Value that the kernel reports.
    pub found: String,
    /// File that reports it.
    pub place: &'static str,
    /// Whether the two agree.
    pub agreement: Agreement,
}

/// Agreement of the command line and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// They agree.
    Same,
    /// They differ.
    Differs,
    /// The kernel does not report the value.
    Unknown,
}

/// Returns the last possible core: the value of `N`.
#[must_use]
pub fn last(facts: &Facts) -> usize {
    let possible = facts.cpus.possible.known().or(facts.cpus.online.known());
    possible.and_then(|cores| cores.iter().next_back()).unwrap_or(0)
}

/// Flags at the start of an `isolcpus=` value.
const FLAGS: [&str; 3] = ["nohz", "domain", "managed_irq"];

/// Parses the cores of `isolcpus=` or another list, without flags; `None` if the kernel cannot parse it.
#[must_use]
pub fn cores_of(value: &str, last: usize) -> Option<CoreSet> {
    let mut rest = value;
    while let Some((flag, behind)) = rest.split_once(',') {
        if !FLAGS.contains(&flag) {
            break;
        }
        rest = behind;
    }
    lists::list(rest, last)
}

/// Compares every core list on the command line with what the kernel reports.
#[must_use]
pub fn parameters(facts: &Facts) -> Vec<Row> {
    let Some(line) = facts.kernel.command_line.known() else { return Vec::new() };
    let last = last(facts);
    let rcu = offloaded(facts);
    let by_boot = match &facts.cpus.isolated {
        Fact::Known(all) => Fact::Known(all.without(&facts.cpus.partitioned)),
        Fact::Unknown(why) => Fact::Unknown(why.clone()),
    };
    let places: [(&str, &'static str, Fact<CoreSet>); 4] = [
        ("isolcpus", "/sys/devices/system/cpu/isolated", by_boot),
        ("nohz_full", "/sys/devices/system/cpu/nohz_full", facts.cpus.nohz_full.clone()),
        ("rcu_nocbs", "threads rcuo*", rcu),
        ("irqaffinity", "/proc/irq/default_smp_affinity", facts.interrupts.default_affinity.clone()),
    ];
    let mut rows = Vec::new();
    for (name, place, found) in places {
        let Some(value) = line.value(name) else { continue };
        let asked = cores_of(value, last);
        // Without the flag `domain` the scheduler goes on using the cores, and the file does not name them.
        let flags: Vec<&str> = value.split(',').filter(|flag| FLAGS.contains(flag)).collect();
        let expected = match (name, &asked) {
            ("isolcpus", Some(_)) if !flags.is_empty() && !flags.contains(&"domain") => {
                Some(CoreSet::default())
            }
            // // Every boot adds the boot core to the ones that take interrupts.
            _ => asked.clone(),
        };
        let agreement = match (&expected, &found) {
            (_, Fact::Unknown(_)) => Agreement::Unknown,
            // // nohz_full adds its own cores.
            (Some(expected), Fact::Known(found)) if name == "rcu_nocbs" => {
                match expected.without(found).is_empty() {
                    true => Agreement::Same,
                    false => Agreement::Differs,
                }
            }
            (Some(expected), Fact::Known(found)) if expected == found => Agreement::Same,
            _ => Agreement::Differs,
        };
        rows.push(Row {
            name: name.to_owned(),
            asked: crate::fact::short(value),
            found: match &found {
                Fact::Known(cores) if cores.is_empty() => "none".to_owned(),
                Fact::Known(cores) => cores.to_string(),
                Fact::Unknown(why) => why.clone(),
            },
            place,
            agreement,
        });
    }
    rows.extend(mode(facts, line));
    rows
}

/// Compares `preempt=`, if the kernel reports its mode.
fn mode(facts: &Facts, line: &CommandLine) -> Option<Row> {
    let asked = line.value("preempt")?;
    let found = &facts.kernel.preempt;
    Some(Row {
        name: "preempt".to_owned(),
        asked: crate::fact::short(asked),
        found: found.known().cloned().unwrap_or_else(|| found.why().to_owned()),
        place: "/sys/kernel/debug/sched/preempt",
        agreement: match found {
            Fact::Known(mode) if mode == asked => Agreement::Same,
            Fact::Known(_) => Agreement::Differs,
            Fact::Unknown(_) => Agreement::Unknown,
        },
    })
}

/// Returns the cores whose RCU callbacks run in threads. Kernels start such threads (`rcuop/2`) for every
/// core as soon as one core is offloaded, so the threads alone do not tell.
#[must_use]
pub fn offloaded(facts: &Facts) -> Fact<CoreSet> {
    let tickless = facts.cpus.nohz_full.known().cloned().unwrap_or_default();
    let threads = match &facts.threads {
        Fact::Known(threads) => with_threads(threads),
        Fact::Unknown(_) if !tickless.is_empty() => return Fact::Known(tickless),
        Fact::Unknown(why) => return Fact::Unknown(why.clone()),
    };
    Fact::Known(match facts.kernel.parameter("rcu_nocbs") {
        Some(value) => lists::list(value, last(facts)).unwrap_or_default().common(&threads).and(&tickless),
        None if !tickless.is_empty() => tickless,
        // // Some kernels offload all cores by default.
        None => threads,
    })
}

/// Returns the cores that have threads named `rcuop/2` or `rcuos/2`.
fn with_threads(threads: &[SystemThread]) -> CoreSet {
    let core = |thread: &SystemThread| {
        let rest = thread.name.strip_prefix("rcuo").filter(|_| thread.is_kernel)?;
        let (kind, core) = rest.split_once('/')?;
        matches!(kind, "p" | "s" | "b").then(|| core.parse().ok()).flatten()
    };
    CoreSet::from_cores(threads.iter().filter_map(core)).unwrap_or_default()
}

/// Parameter names that matter here, and correct ones that resemble them.
const KNOWN: [&str; 24] = [
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "rcu_nocb_poll",
    "irqaffinity",
    "skew_tick",
    "nosoftlockup",
    "nowatchdog",
    "nmi_watchdog",
    "hardlockup_all_cpu_backtrace",
    "threadirqs",
    "transparent_hugepage",
    "rt_group_sched",
    "preempt",
    "mitigations",
    "intel_pstate",
    "amd_pstate",
    "processor.max_cstate",
    "intel_idle.max_cstate",
    "kthread_cpus",
    "clocksource",
    "maxcpus",
    "possible_cpus",
    "noirqdebug",
];
/// Shorter names resemble too many others.
const LEAST_LETTERS: usize = 7;

/// Finds words that are not a known parameter but resemble one, with the parameter they resemble.
#[must_use]
pub fn misspelt(line: &CommandLine) -> Vec<(String, &'static str)> {
    let mut found: Vec<(String, &'static str)> = Vec::new();
    for parameter in line.parameters() {
        let name = parameter.name.replace('-', "_").to_ascii_lowercase();
        let is_exact = KNOWN.iter().any(|known| known.replace('-', "_") == parameter.name.replace('-', "_"));
        if is_exact || name.len() < LEAST_LETTERS || name.len() > 64 {
            continue;
        }
        let near = KNOWN.iter().map(|known| (strsim::osa_distance(&name, known), *known)).min();
        if let Some((0..=2, meant)) = near {
            found.push((crate::fact::short(&parameter.to_string()), meant));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_flags_in_front() {
        for (value, cores) in [
            ("managed_irq,domain,2-3", Some("2-3")),
            ("domain,1", Some("1")),
            ("2,3", Some("2-3")),
            ("managed_irqs,domain,2-3", None),
            ("2-x", None),
        ] {
            assert_eq!(cores_of(value, 3).map(|cores| cores.to_string()).as_deref(), cores, "{value}");
        }
    }

    #[test]
    fn misspelt_names_are_found_and_others_are_not() {
        let line = CommandLine::parse(
            "isolcpu=2 nohzfull=2 rcu_nocb=2 irq_affinity=0 preempt=full nohz=on rcu_nocb_poll quiet console=ttyS0 rcupdate.rcu_expedited=1 Isolcpus=3",
        );
        let meant: Vec<&str> = misspelt(&line).into_iter().map(|(_, meant)| meant).collect();
        assert_eq!(meant, ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "isolcpus"]);
    }
}
