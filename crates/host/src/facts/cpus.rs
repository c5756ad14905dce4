//! Cores: which exist, which are isolated, and what they share.

use crate::fact::{self, Fact};
use crate::lists;
use crate::tree::Tree;
use onbeat_os::CoreSet;

/// The cores of a machine.
#[derive(Debug, Clone, Default)]
pub struct CpuFacts {
    /// Cores that are online.
    pub online: Fact<CoreSet>,
    /// Cores that could be online.
    pub possible: Fact<CoreSet>,
    /// Cores isolated by `isolcpus=` with the flag `domain`, or by isolated control group partitions.
    pub isolated: Fact<CoreSet>,
    /// Cores isolated by control groups alone.
    pub partitioned: CoreSet,
    /// Cores without a periodic tick.
    pub nohz_full: Fact<CoreSet>,
    /// Hardware threads of one physical core, in sets of at least two.
    pub siblings: Vec<CoreSet>,
    /// Whether two hardware threads share a core now.
    pub smt: Fact<bool>,
    /// Content of `smt/control`.
    pub smt_control: Fact<String>,
    /// Cores by NUMA node.
    pub nodes: Vec<(usize, CoreSet)>,
    /// Cores that share a second-level or third-level cache, in sets.
    pub caches: Vec<(u8, CoreSet)>,
    /// Flags of the first core, on x86.
    pub flags: Fact<Vec<String>>,
    /// Processor vulnerabilities, with the state of their mitigations.
    pub vulnerabilities: Vec<(String, String)>,
}

const CPU: &str = "sys/devices/system/cpu";
/// Limit on the cores that are read one by one.
const MOST_CORES: usize = 1024;

impl CpuFacts {
    pub(super) fn read(tree: &dyn Tree) -> Self {
        let set = |name: &str| fact::parsed(tree, &format!("{CPU}/{name}"), lists::file);
        let online = set("online");
        let some: Vec<usize> =
            online.known().map(|online| online.iter().take(MOST_CORES).collect()).unwrap_or_default();
        let partitioned = partitioned(tree);
        CpuFacts {
            possible: set("possible"),
            isolated: set("isolated").map(|isolated| isolated.and(&partitioned)),
            partitioned,
            nohz_full: set("nohz_full"),
            siblings: groups(tree, &some, "topology/thread_siblings_list"),
            smt: fact::switch(tree, &format!("{CPU}/smt/active")),
            smt_control: fact::text(tree, &format!("{CPU}/smt/control")),
            nodes: nodes(tree),
            caches: caches(tree, &some),
            flags: fact::text(tree, "proc/cpuinfo").and_then(|text| {
                let no =
                    || Fact::Unknown("/proc/cpuinfo has no flags: only x86 processors list them".to_owned());
                flags(&text).map_or_else(no, Fact::Known)
            }),
            vulnerabilities: vulnerabilities(tree),
            online,
        }
    }

    /// Returns the cores that share a physical core with one of `cores`, without `cores` themselves.
    #[must_use]
    pub fn siblings_of(&self, cores: &CoreSet) -> CoreSet {
        let beside = self.siblings.iter().filter(|set| !set.common(cores).is_empty());
        beside.fold(CoreSet::default(), |all, set| all.and(set)).without(cores)
    }
}

/// Returns the distinct sets of at least two cores that `file` of each core names.
fn groups(tree: &dyn Tree, cores: &[usize], file: &str) -> Vec<CoreSet> {
    let mut sets: Vec<CoreSet> = Vec::new();
    for core in cores {
        let set = fact::parsed(tree, &format!("{CPU}/cpu{core}/{file}"), lists::file);
        if let Fact::Known(set) = set
            && set.len() > 1
            && !sets.contains(&set)
        {
            sets.push(set);
        }
    }
    sets
}

fn caches(tree: &dyn Tree, cores: &[usize]) -> Vec<(u8, CoreSet)> {
    let mut caches = Vec::new();
    for index in 0..8 {
        let level = fact::number(tree, &format!("{CPU}/cpu0/cache/index{index}/level"));
        if let Some(level @ 2..=3) = level.known().copied() {
            let sets = groups(tree, cores, &format!("cache/index{index}/shared_cpu_list"));
            caches.extend(sets.into_iter().map(|set| (level as u8, set)));
        }
    }
    caches
}

fn nodes(tree: &dyn Tree) -> Vec<(usize, CoreSet)> {
    let names = tree.list("sys/devices/system/node").unwrap_or_default();
    let node = |name: &String| {
        let number = name.strip_prefix("node")?.parse().ok()?;
        let cores = fact::parsed(tree, &format!("sys/devices/system/node/{name}/cpulist"), lists::file);
        Some((number, cores.known()?.clone()))
    };
    names.iter().filter_map(node).collect()
}

fn flags(cpuinfo: &str) -> Option<Vec<String>> {
    let line = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    Some(line.split_once(':')?.1.split_whitespace().map(str::to_owned).collect())
}

fn vulnerabilities(tree: &dyn Tree) -> Vec<(String, String)> {
    let folder = format!("{CPU}/vulnerabilities");
    let names = tree.list(&folder).unwrap_or_default();
    let one =
        |name: String| Some((name.clone(), fact::text(tree, &format!("{folder}/{name}")).known()?.clone()));
    names.into_iter().take(100).filter_map(one).collect()
}

/// Returns the cores of isolated partitions. Kernels before 6.7 report them only in each group.
fn partitioned(tree: &dyn Tree) -> CoreSet {
    let root = "sys/fs/cgroup";
    let all = fact::parsed(tree, &format!("{root}/cpuset.cpus.isolated"), lists::file);
    let mut cores = all.known().cloned().unwrap_or_default();
    for name in tree.list(root).unwrap_or_default().into_iter().take(1000) {
        let file = |file: &str| fact::text(tree, &format!("{root}/{name}/{file}"));
        if file("cpuset.cpus.partition").known().is_some_and(|partition| partition == "isolated")
            && let Some(own) = file("cpuset.cpus.effective").known().and_then(|text| lists::file(text))
        {
            cores = cores.and(&own);
        }
    }
    cores
}
