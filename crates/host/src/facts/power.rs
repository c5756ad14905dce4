//! Clocks, clock rates and idle states.

use super::CpuFacts;
use crate::fact::{self, Fact};
use crate::tree::Tree;
use onbeat_os::CoreSet;

/// Clocks, clock rates and idle states.
#[derive(Debug, Clone, Default)]
pub struct PowerFacts {
    /// Clock rate governors, with the cores that use them.
    pub governors: Fact<Vec<(String, CoreSet)>>,
    /// Lists of governors that there are, with the cores that have them.
    pub known_governors: Fact<Vec<(String, CoreSet)>>,
    /// Energy performance preferences (EPP), with their cores.
    pub preferences: Fact<Vec<(String, CoreSet)>>,
    /// Energy performance biases (EPB), with their cores.
    pub biases: Fact<Vec<(String, CoreSet)>>,
    /// Idle states of the first core that has any.
    pub idle_states: Fact<Vec<IdleState>>,
    /// Governor that chooses among them.
    pub idle_governor: Fact<String>,
    /// Limit that `/dev/cpu_dma_latency` sets now, in microseconds.
    pub dma_latency_us: Fact<i64>,
    /// Cores whose idle states are limited by `pm_qos_resume_latency_us`.
    pub kept_awake: CoreSet,
    /// Time for which a guest polls for work before it halts.
    pub halt_poll_ns: Fact<i64>,
    /// Clock source.
    pub clock_source: Fact<String>,
}

/// An idle state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// Exit latency, by the kernel's estimate.
    pub latency_us: i64,
    /// Whether it is in use.
    pub enabled: bool,
}

const CPU: &str = "sys/devices/system/cpu";

impl PowerFacts {
    pub(super) fn read(tree: &dyn Tree, cpus: &CpuFacts) -> Self {
        let cores: Vec<usize> =
            cpus.online.known().map(|online| online.iter().take(1024).collect()).unwrap_or_default();
        let by_core = |file: &str| by_core(tree, &cores, file);
        let idle_states =
            cores.iter().map(|core| idle_states(tree, *core)).find(|states| states.known().is_some());
        let awake = cores.iter().copied().filter(|core| {
            let file = format!("{CPU}/cpu{core}/power/pm_qos_resume_latency_us");
            // // 0 means no limit, `n/a` means no latency at all.
            fact::text(tree, &file)
                .known()
                .is_some_and(|text| text == "n/a" || text.parse::<u32>().is_ok_and(|us| us > 0))
        });
        PowerFacts {
            governors: by_core("cpufreq/scaling_governor"),
            known_governors: by_core("cpufreq/scaling_available_governors"),
            preferences: by_core("cpufreq/energy_performance_preference"),
            biases: by_core("power/energy_perf_bias"),
            idle_states: idle_states
                .unwrap_or_else(|| Fact::Unknown(format!("/{CPU}/cpu*/cpuidle does not exist"))),
            idle_governor: fact::text(tree, &format!("{CPU}/cpuidle/current_governor_ro"))
                .or(fact::text(tree, &format!("{CPU}/cpuidle/current_governor"))),
            dma_latency_us: dma_latency(tree),
            kept_awake: CoreSet::from_cores(awake).unwrap_or_default(),
            halt_poll_ns: fact::number(tree, "sys/module/haltpoll/parameters/guest_halt_poll_ns"),
            clock_source: fact::text(tree, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        }
    }
}

/// Reads a file of each core: the distinct values, each with its cores.
fn by_core(tree: &dyn Tree, cores: &[usize], file: &str) -> Fact<Vec<(String, CoreSet)>> {
    let mut found: Vec<(String, Vec<usize>)> = Vec::new();
    let mut why = format!("/{CPU}/cpu*/{file} does not exist");
    for core in cores {
        match fact::text(tree, &format!("{CPU}/cpu{core}/{file}")) {
            Fact::Known(value) => {
                let value = fact::short(&value);
                match found.iter_mut().find(|(known, _)| *known == value) {
                    Some((_, cores)) => cores.push(*core),
                    None => found.push((value, vec![*core])),
                }
            }
            Fact::Unknown(reason) if !reason.ends_with("does not exist") => why = reason,
            Fact::Unknown(_) => {}
        }
    }
    if found.is_empty() {
        return Fact::Unknown(why);
    }
    Fact::Known(
        found
            .into_iter()
            .map(|(value, cores)| (value, CoreSet::from_cores(cores).unwrap_or_default()))
            .collect(),
    )
}

fn idle_states(tree: &dyn Tree, core: usize) -> Fact<Vec<IdleState>> {
    let folder = format!("{CPU}/cpu{core}/cpuidle");
    let mut states = Vec::new();
    for name in
        tree.list(&folder).unwrap_or_default().iter().filter(|name| name.starts_with("state")).take(32)
    {
        let file = |file: &str| format!("{folder}/{name}/{file}");
        let Fact::Known(latency_us) = fact::number(tree, &file("latency")) else { continue };
        let shown =
            fact::text(tree, &file("name")).known().map_or_else(|| name.clone(), |name| fact::short(name));
        let enabled = fact::number(tree, &file("disable")).known() != Some(&1);
        states.push(IdleState { name: shown, latency_us, enabled });
    }
    match states.is_empty() {
        true => Fact::Unknown(format!("/{folder} does not exist")),
        false => Fact::Known(states),
    }
}

/// Reads the four bytes of the file; it is not a text.
fn dma_latency(tree: &dyn Tree) -> Fact<i64> {
    let path = "dev/cpu_dma_latency";
    match tree.read(path) {
        Ok(bytes) => match <[u8; 4]>::try_from(&bytes[..]) {
            Ok(bytes) => Fact::Known(i64::from(i32::from_ne_bytes(bytes))),
            Err(_) => Fact::Unknown(format!("/{path} has {} bytes, not four", bytes.len())),
        },
        Err(_) => fact::text(tree, path).and_then(|_| Fact::Unknown(format!("/{path} was not read"))),
    }
}
