//! Environment of the process: container, hypervisor, control group, limits.

use crate::fact::{self, Fact};
use crate::lists;
use crate::tree::Tree;
use onbeat_os::CoreSet;

/// Container, hypervisor and control group of this process.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Kind of container; empty for none.
    pub container: Fact<String>,
    /// Name of the hypervisor or machine, by DMI and the kernel.
    pub hypervisor: Fact<String>,
    /// Whether a system call filter is on.
    pub seccomp: Fact<bool>,
    /// Time limit of this process's control group.
    pub quota: Fact<Quota>,
    /// Cores of this process's control group.
    pub cpuset: Fact<CoreSet>,
    /// Control group v2 of this process.
    pub group: Fact<String>,
    /// Real-time run time of this process's control group v1, if the kernel has a budget per group.
    pub group_rt_runtime_us: Fact<i64>,
    /// Mount point of cgroup v2, if it has the cpuset controller.
    pub cpusets: Fact<String>,
    /// Share of the last ten seconds in which threads waited for a core, in percent.
    pub pressure: Fact<f64>,
    /// Share of all time since boot that the hypervisor reports as stolen.
    pub stolen_share: Fact<f64>,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Fact<i64>,
    /// `kernel.unprivileged_bpf_disabled`.
    pub bpf_disabled: Fact<i64>,
}

/// Time limit: run time per period; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Microseconds.
    pub quota_us: Option<i64>,
    /// Microseconds.
    pub period_us: i64,
}

impl Environment {
    pub(super) fn read(tree: &dyn Tree) -> Self {
        let groups = fact::text(tree, "proc/self/cgroup");
        let lines = groups.known().map_or("", String::as_str);
        let second = lines.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
        let first = |controller: &str| group_of(lines, controller);
        let at = |group: &str, file: &str| {
            format!("sys/fs/cgroup/{}/{file}", group.trim_matches('/')).replace("//", "/")
        };
        let cpu_max = fact::parsed(tree, &at(second, "cpu.max"), quota);
        let cpu_first = first("cpu").map(|group| {
            let file =
                |name: &str| fact::number(tree, &at(&format!("cpu/{}", group.trim_matches('/')), name));
            let period_us = file("cpu.cfs_period_us").known().copied().unwrap_or(100_000);
            let quota =
                file("cpu.cfs_quota_us").map(|us| Quota { quota_us: (us >= 0).then_some(us), period_us });
            (quota, file("cpu.rt_runtime_us"))
        });
        let (quota_first, group_rt_runtime_us) = cpu_first.unwrap_or_else(|| {
            let why = "cgroup v1 does not control CPU time here".to_owned();
            (Fact::Unknown(why.clone()), Fact::Unknown(why))
        });
        let cpuset = |path: String| fact::parsed(tree, &path, lists::file);
        let none = || Fact::Unknown("no control group has cpusets here".to_owned());
        let cpuset_first = first("cpuset").map_or_else(none, |group| {
            cpuset(at(&format!("cpuset/{}", group.trim_matches('/')), "cpuset.effective_cpus"))
        });
        Environment {
            container: container(tree),
            hypervisor: hypervisor(tree),
            seccomp: fact::parsed(tree, "proc/self/status", |text| {
                Some(text.lines().find_map(|line| line.strip_prefix("Seccomp:"))?.trim() != "0")
            }),
            // // The root of cgroup v2 has no limit, and no file that says so.
            quota: quota_first.or(cpu_max),
            cpuset: cpuset_first.or(cpuset(at(second, "cpuset.cpus.effective"))),
            group: groups.and_then(|text| match text.lines().find_map(|line| line.strip_prefix("0::")) {
                Some(group) => Fact::Known(fact::short(group)),
                None => Fact::Unknown("/proc/self/cgroup names no cgroup v2".to_owned()),
            }),
            group_rt_runtime_us,
            cpusets: cpusets(tree),
            pressure: fact::parsed(tree, "proc/pressure/cpu", |text| {
                let some = text.lines().find_map(|line| line.strip_prefix("some avg10="))?;
                some.split_whitespace().next()?.parse().ok().filter(|share: &f64| share.is_finite())
            }),
            stolen_share: fact::parsed(tree, "proc/stat", stolen_share),
            paranoid: fact::number(tree, "proc/sys/kernel/perf_event_paranoid"),
            bpf_disabled: fact::number(tree, "proc/sys/kernel/unprivileged_bpf_disabled"),
        }
    }
}

/// Returns the cgroup v1 that has a controller.
fn group_of<'t>(groups: &'t str, controller: &str) -> Option<&'t str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        controllers.split(',').any(|one| one == controller).then(|| parts.next()).flatten()
    })
}

/// The eighth number, divided by the sum of the first eight. The last two are already part of the first two.
fn stolen_share(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let sum = ticks.iter().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
    ticks.get(7).filter(|_| sum > 0).map(|stolen| *stolen as f64 / sum as f64)
}

/// Parses `max 100000`, `50000 100000`.
fn quota(text: &str) -> Option<Quota> {
    let (quota, period) = text.split_once(' ')?;
    let quota_us = if quota == "max" { None } else { Some(quota.parse().ok()?) };
    Some(Quota { quota_us, period_us: period.parse().ok().filter(|us| *us > 0)? })
}

fn cpusets(tree: &dyn Tree) -> Fact<String> {
    fact::text(tree, "sys/fs/cgroup/cgroup.controllers").and_then(|controllers| {
        match controllers.split_whitespace().any(|one| one == "cpuset") {
            true => Fact::Known("/sys/fs/cgroup".to_owned()),
            false => Fact::Unknown("/sys/fs/cgroup/cgroup.controllers has no cpuset".to_owned()),
        }
    })
}

fn container(tree: &dyn Tree) -> Fact<String> {
    if let Fact::Known(name) = fact::text(tree, "run/systemd/container") {
        return Fact::Known(fact::short(&name));
    }
    // Threads of the kernel are seen from the first namespace only: a machine that was booted from the image
    // of a container is none.
    if fact::text(tree, "proc/2/comm").known().is_some_and(|name| name.trim() == "kthreadd") {
        return Fact::Known(String::new());
    }
    for (file, name) in [(".dockerenv", "docker"), ("run/.containerenv", "podman")] {
        if tree.read(file).is_ok() {
            return Fact::Known(name.to_owned());
        }
    }
    fact::text(tree, "proc/1/cgroup").map(|text| {
        let known = ["docker", "kubepods", "containerd", "libpod", "lxc"];
        known.iter().find(|name| text.contains(*name)).map_or(String::new(), ToString::to_string)
    })
}

fn hypervisor(tree: &dyn Tree) -> Fact<String> {
    let dmi = |name: &str| fact::text(tree, &format!("sys/class/dmi/id/{name}"));
    let named = fact::text(tree, "sys/hypervisor/type").or(dmi("product_name")).or(dmi("sys_vendor"));
    named.map(|name| fact::short(&name))
}
