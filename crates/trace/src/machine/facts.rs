//! Reads the facts, with one small function for each that is not simply the content of a file.

use std::path::Path;

use super::{Machine, Tsc, text, virtualisation};

const CPU: &str = "sys/devices/system/cpu";

/// Kernel parameters that change when threads and interrupts run. A name that ends in `.` stands for all
/// names that begin with it. Source: Documentation/admin-guide/kernel-parameters.txt.
const TIMING_PARAMETERS: &[&str] = &[
    "amd_pstate",
    "clocksource",
    "cpufreq.",
    "cpuidle.",
    "default_hugepagesz",
    "hpet",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.",
    "intel_pstate",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "mce",
    "mitigations",
    "nmi_watchdog",
    "no-kvmclock",
    "nohz",
    "nohz_full",
    "nosmt",
    "nosoftlockup",
    "nowatchdog",
    "preempt",
    "processor.",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "rcupdate.",
    "rcutree.",
    "skew_tick",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
    "workqueue.",
];

pub(super) fn read(root: &Path) -> Machine {
    let cpuinfo = text(root, "proc/cpuinfo").unwrap_or_default();
    let flags = value_of(&cpuinfo, "flags", ':');
    Machine {
        cpu_model: cpu_model(&cpuinfo).or_else(|| text(root, "proc/device-tree/model")),
        cores_online: cpu_file(root, "online").and_then(|list| count_cores(&list)),
        cores_possible: cpu_file(root, "possible").and_then(|list| count_cores(&list)),
        cores_isolated: cpu_file(root, "isolated"),
        cores_nohz_full: cpu_file(root, "nohz_full").map(no_null),
        smt: cpu_file(root, "smt/active").and_then(|active| switch(&active)),
        l1d_bytes: cache_bytes(root, "1", "Data"),
        l2_bytes: cache_bytes(root, "2", "Unified"),
        l3_bytes: cache_bytes(root, "3", "Unified"),
        tsc: flags.as_deref().and_then(tsc),
        clock_source: text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        governor: cpu_file(root, "cpu0/cpufreq/scaling_governor"),
        virtualisation: virtualisation::read(root, flags.as_deref()),
        memory_bytes: text(root, "proc/meminfo").and_then(|meminfo| memory_bytes(&meminfo)),
        kernel: text(root, "proc/sys/kernel/osrelease"),
        preemption: preemption(root),
        tainted: text(root, "proc/sys/kernel/tainted").and_then(|bits| bits.parse().ok()),
        kernel_parameters: text(root, "proc/cmdline").map(|line| timing_parameters(&line)),
        distribution: distribution(root),
    }
}

fn cpu_file(root: &Path, name: &str) -> Option<String> {
    text(root, &format!("{CPU}/{name}"))
}

/// Returns the value of the first line `key <separator> value`.
fn value_of(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    // x86 and some others; boards such as the Raspberry Pi; POWER.
    ["model name", "Model", "cpu"].iter().find_map(|key| value_of(cpuinfo, key, ':'))
}

/// Counts the cores in a kernel list such as `0-3,8`; `None` if it is not such a list.
fn count_cores(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |count, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        count.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// The kernel prints `(null)` for a list of cores that was never set up.
fn no_null(list: String) -> String {
    if list == "(null)" { String::new() } else { list }
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn cache_bytes(root: &Path, level: &str, kind: &str) -> Option<u64> {
    // A core has three to five caches, numbered without gaps.
    (0..8).find_map(|index| {
        let fact = |name| cpu_file(root, &format!("cpu0/cache/index{index}/{name}"));
        let here = fact("level")? == level && fact("type")? == kind;
        if here { fact("size").and_then(|size| kernel_size_bytes(&size)) } else { None }
    })
}

/// Parses `48K`, `2M` or plain bytes.
fn kernel_size_bytes(size: &str) -> Option<u64> {
    let (number, unit) = match size.strip_suffix(['K', 'M', 'G']) {
        Some(number) if size.ends_with('K') => (number, 1 << 10),
        Some(number) if size.ends_with('M') => (number, 1 << 20),
        Some(number) => (number, 1 << 30),
        None => (size, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn tsc(flags: &str) -> Option<Tsc> {
    let has = |flag| flags.split_whitespace().any(|word| word == flag);
    has("tsc").then(|| Tsc {
        constant: has("constant_tsc"),
        nonstop: has("nonstop_tsc"),
        reliable: has("tsc_reliable"),
        known_frequency: has("tsc_known_freq"),
    })
}

/// `MemTotal` has units that the kernel writes as `kB` and that are 1024 bytes (`proc_meminfo(5)`).
fn memory_bytes(meminfo: &str) -> Option<u64> {
    let total = value_of(meminfo, "MemTotal", ':')?;
    total.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn preemption(root: &Path) -> Option<String> {
    let version = text(root, "proc/version")?;
    let built = version.split_whitespace().find(|word| word.starts_with("PREEMPT"))?;
    // The mode in force is in parentheses among the others: "none voluntary (full) lazy".
    let modes = text(root, "sys/kernel/debug/sched/preempt").unwrap_or_default();
    match modes.split_once('(').and_then(|(_, rest)| rest.split_once(')')) {
        Some((mode, _)) => Some(format!("{built} ({mode})")),
        None => Some(built.to_owned()),
    }
}

fn timing_parameters(command_line: &str) -> Vec<String> {
    let changes_timing = |parameter: &&str| {
        let name = parameter.split_once('=').map_or(*parameter, |(name, _)| name);
        TIMING_PARAMETERS.iter().any(|known| match known.strip_suffix('.') {
            Some(_) => name.starts_with(known),
            None => name == *known,
        })
    };
    // The text after `--` is for the first program, not for the kernel.
    let kernel_part = command_line.split_whitespace().take_while(|word| *word != "--");
    kernel_part.filter(changes_timing).map(str::to_owned).collect()
}

fn distribution(root: &Path) -> Option<String> {
    // In this order, os-release(5).
    let release = text(root, "etc/os-release").or_else(|| text(root, "usr/lib/os-release"))?;
    let name = value_of(&release, "PRETTY_NAME", '=').or_else(|| value_of(&release, "NAME", '='))?;
    Some(name.trim_matches(['"', '\'']).to_owned())
}
