//! Settings of the scheduler.

use crate::fact::{self, Fact};
use crate::tree::Tree;

/// Settings of the scheduler.
#[derive(Debug, Clone, Default)]
pub struct SchedulerFacts {
    /// `kernel.sched_rt_runtime_us`; -1 for no limit.
    pub rt_runtime_us: Fact<i64>,
    /// `kernel.sched_rt_period_us`.
    pub rt_period_us: Fact<i64>,
    /// Fair server of each core: run time and period for normal threads, in nanoseconds.
    pub fair_server: Fact<Vec<(String, i64, i64)>>,
    /// `kernel.sched_autogroup_enabled`.
    pub autogroup: Fact<i64>,
    /// `kernel.timer_migration`.
    pub timer_migration: Fact<i64>,
    /// `kernel.numa_balancing`.
    pub numa_balancing: Fact<i64>,
    /// State of BPF scheduling (sched_ext).
    pub ext: Fact<String>,
    /// Name of the loaded BPF scheduler.
    pub ext_name: Fact<String>,
    /// Time slice of a normal thread, in nanoseconds.
    pub base_slice_ns: Fact<i64>,
}

impl SchedulerFacts {
    pub(super) fn read(tree: &dyn Tree) -> Self {
        let kernel = |name: &str| fact::number(tree, &format!("proc/sys/kernel/{name}"));
        SchedulerFacts {
            rt_runtime_us: kernel("sched_rt_runtime_us"),
            rt_period_us: kernel("sched_rt_period_us"),
            fair_server: fair_server(tree),
            autogroup: kernel("sched_autogroup_enabled"),
            timer_migration: kernel("timer_migration"),
            numa_balancing: kernel("numa_balancing"),
            ext: fact::text(tree, "sys/kernel/sched_ext/state"),
            ext_name: fact::text(tree, "sys/kernel/sched_ext/root/ops"),
            base_slice_ns: fact::number(tree, "sys/kernel/debug/sched/base_slice_ns"),
        }
    }
}

fn fair_server(tree: &dyn Tree) -> Fact<Vec<(String, i64, i64)>> {
    let folder = "sys/kernel/debug/sched/fair_server";
    let names = match tree.list(folder) {
        Ok(names) => names,
        Err(_) if tree.list("sys/kernel/debug").is_ok_and(|names| names.is_empty()) => {
            let how = "mount -t debugfs none /sys/kernel/debug";
            return Fact::Unknown(format!("/{folder}: debugfs is not mounted: {how}"));
        }
        Err(error) => return Fact::Unknown(format!("/{folder}: {error}")),
    };
    let one = |name: String| {
        let number = |file: &str| fact::number(tree, &format!("{folder}/{name}/{file}")).known().copied();
        Some((name.clone(), number("runtime")?, number("period")?))
    };
    let servers: Vec<_> = names.into_iter().take(1024).filter_map(one).collect();
    match servers.is_empty() {
        true => Fact::Unknown(format!("/{folder} has no readable core")),
        false => Fact::Known(servers),
    }
}
