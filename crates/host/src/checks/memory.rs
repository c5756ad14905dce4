//! Page faults, and background work of the kernel's memory management.

use super::{Check, some};
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "swap",
        area: "memory",
        severity: Severity::Warning,
        title: "swap",
        what: "A swapped-out page has to be read back from disk: that takes milliseconds within a step.",
        how: "swapoff -a, or lock_memory = true in the pipeline.",
        cost: "Without swap, a machine that runs out of memory kills programs earlier.",
        skip: "If all memory that matters is locked.",
        judge: swap,
    },
    Check {
        id: "huge-pages",
        area: "memory",
        severity: Severity::Warning,
        title: "transparent huge pages",
        what: "khugepaged merges pages of running programs into huge ones, and a page fault may wait until 2 MiB of contiguous memory are free.",
        how: "Write madvise or never to transparent_hugepage/enabled, and never or defer to defrag.",
        cost: "Programs that use much memory and do not ask for huge pages get slower.",
        skip: "If memory is locked and nothing is allocated after the start.",
        judge: huge_pages,
    },
    Check {
        id: "compaction",
        area: "memory",
        severity: Severity::Warning,
        title: "memory compaction",
        what: "The kernel moves pages, including locked ones, to make contiguous room. A thread that touches such a page waits until it is moved: 14 ms were seen.",
        how: "sysctl vm.compact_unevictable_allowed=0 and vm.compaction_proactiveness=0.",
        cost: "Large contiguous blocks of memory are harder to get.",
        skip: "On PREEMPT_RT kernels, which do not move locked pages.",
        judge: compaction,
    },
    Check {
        id: "ksm",
        area: "memory",
        severity: Severity::Warning,
        title: "merging of identical pages (KSM)",
        what: "ksmd scans memory for identical pages. A write to a merged page is a page fault that copies it.",
        how: "Write 0 to /sys/kernel/mm/ksm/run.",
        cost: "More memory is used, if many guests hold the same pages.",
        skip: "If no program marks its memory as mergeable.",
        judge: ksm,
    },
    Check {
        id: "damon",
        area: "memory",
        severity: Severity::Warning,
        title: "DAMON monitors memory",
        what: "kdamond checks which pages are in use, in slices of 2 to 20 ms on any core, and may give some back to the host.",
        how: "Write off to the state file of each kdamond. It may have been started for a reason, so onbeat never stops it on its own.",
        cost: "Unused memory is no longer given back.",
        skip: "If kdamond does not run on these cores.",
        judge: damon,
    },
    Check {
        id: "balloon",
        area: "memory",
        severity: Severity::Warning,
        title: "memory balloon and free page reporting",
        what: "The host takes memory back from a guest. The next touch of a page that was taken waits for the host.",
        how: "Switch off the balloon and free page reporting on the host (in qemu: no virtio-balloon, or free-page-reporting=off), or lock the memory.",
        cost: "The host cannot use the guest's free memory.",
        skip: "If memory is locked before the start.",
        judge: balloon,
    },
    Check {
        id: "vmstat",
        area: "memory",
        severity: Severity::Info,
        title: "memory statistics",
        what: "A kworker on every core adds up counters once a second.",
        how: "sysctl vm.stat_interval=10.",
        cost: "/proc/vmstat is up to ten seconds old.",
        skip: "With nohz_full, which leaves quiet cores alone.",
        judge: vmstat,
    },
    Check {
        id: "page-faults",
        area: "memory",
        severity: Severity::Warning,
        title: "page faults during the run",
        what: "The first touch of a page costs a microsecond; from a disk, milliseconds.",
        how: "lock_memory = true and prefault in the pipeline; allocate before the start.",
        cost: "The start takes longer, and all memory is allocated at once.",
        skip: "If the workers have no real-time policy.",
        judge: page_faults,
    },
];

fn swap(case: &MachineCase) -> Judgement {
    let memory = &case.facts.memory;
    match &memory.swaps {
        Fact::Known(swaps) if swaps.is_empty() => Judgement::good("there is no swap"),
        Fact::Known(swaps) if case.pipeline.as_ref().is_some_and(|pipeline| pipeline.lock_memory) => {
            Judgement::good(format!("the pipeline locks its memory; swap goes to {}", some(swaps)))
        }
        Fact::Known(swaps) => Judgement::bad(format!("memory may be swapped to {}", some(swaps)))
            .fix(Fix::command("swapoff -a   # or lock_memory = true in the pipeline")),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn huge_pages(case: &MachineCase) -> Judgement {
    let memory = &case.facts.memory;
    let folder = "sys/kernel/mm/transparent_hugepage";
    let (enabled, defrag) = match (&memory.huge_pages, &memory.huge_pages_defrag) {
        (Fact::Known(enabled), defrag) => (enabled.as_str(), defrag.known().map_or("never", String::as_str)),
        (Fact::Unknown(why), _) => return Judgement::unknown(why),
    };
    match (enabled, defrag) {
        ("never", _) | ("madvise", "never" | "defer") => {
            Judgement::good(format!("enabled: {enabled}, defrag: {defrag}"))
        }
        ("madvise", _) => Judgement::bad(format!(
            "a program that asks for huge pages waits for them at page faults (defrag: {defrag})"
        ))
        .with_severity(Severity::Info)
        .fix(Fix::write(format!("{folder}/defrag"), "defer")),
        _ => Judgement::bad(format!(
            "khugepaged works on the memory of all programs (enabled: {enabled}, defrag: {defrag})"
        ))
        .fix(Fix::write(format!("{folder}/enabled"), "madvise"))
        .fixes(
            (!matches!(defrag, "never" | "defer")).then(|| Fix::write(format!("{folder}/defrag"), "defer")),
        ),
    }
}

fn compaction(case: &MachineCase) -> Judgement {
    let memory = &case.facts.memory;
    let is_realtime = case.facts.kernel.is_realtime().known() == Some(&true);
    let (moves, ahead) = match (&memory.moves_locked, &memory.compaction) {
        (Fact::Known(moves), ahead) => (*moves, ahead.known().copied().unwrap_or(0)),
        (Fact::Unknown(_), _) if case.facts.kernel.has("COMPACTION") == Some(false) => {
            return Judgement::good("this kernel moves no pages");
        }
        (Fact::Unknown(why), _) => return Judgement::unknown(why),
    };
    let mut seen = Vec::new();
    let mut fixes = Vec::new();
    if moves != 0 && !is_realtime {
        seen.push("the kernel moves locked pages too");
        fixes.push(Fix::sysctl("vm.compact_unevictable_allowed", "0"));
    }
    if ahead != 0 {
        seen.push("kcompactd moves pages in advance");
        fixes.push(Fix::sysctl("vm.compaction_proactiveness", "0"));
    }
    let judged = match seen.is_empty() {
        true => Judgement::good("locked pages stay where they are"),
        false => Judgement::bad(seen.join(", and ")),
    };
    let judged = judged.fixes(fixes);
    if moves == 0 || is_realtime { judged.with_severity(Severity::Info) } else { judged }
}

fn ksm(case: &MachineCase) -> Judgement {
    match &case.facts.memory.ksm {
        Fact::Known(1) => {
            Judgement::bad("ksmd merges identical pages").fix(Fix::write("sys/kernel/mm/ksm/run", "0"))
        }
        Fact::Known(_) => Judgement::good("off"),
        Fact::Unknown(_) if case.facts.kernel.has("KSM") == Some(false) => {
            Judgement::good("this kernel has no page merging")
        }
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn damon(case: &MachineCase) -> Judgement {
    let facts = &case.facts;
    let threads = facts.threads.known().into_iter().flatten();
    let names: Vec<String> = threads
        .filter(|thread| thread.is_kernel && thread.name.starts_with("kdamond"))
        .map(|thread| format!("{}:{}", thread.name, thread.tid))
        .collect();
    let on: Vec<&String> = facts
        .memory
        .damon
        .known()
        .into_iter()
        .flatten()
        .filter(|(_, state)| state == "on")
        .map(|(number, _)| number)
        .collect();
    if !names.is_empty() || !on.is_empty() {
        let took = case.measured.noise.known().and_then(|noise| {
            let cause = noise.causes.iter().find(|cause| cause.name.starts_with("kdamond"))?;
            Some(format!(
                ": it took {:.1} ms of {:.1} s here, up to {:.1} ms at a time",
                cause.total_ns as f64 / 1e6,
                noise.runtime_ns as f64 / 1e9,
                cause.max_ns as f64 / 1e6
            ))
        });
        let who = if names.is_empty() { "a kdamond".to_owned() } else { some(&names) };
        let fixes = on.iter().map(|number| {
            Fix::command(format!(
                "echo off > /sys/kernel/mm/damon/admin/kdamonds/{number}/state   # if nothing needs it"
            ))
        });
        let judged =
            Judgement::bad(format!("{who} monitors memory{}", took.unwrap_or_default())).fixes(fixes);
        return match judged.fixes.is_empty() {
            true => judged.fix(Fix::advice(
                "find the program or module that started it (damon_reclaim, damon_lru_sort, damon_stat, damo) and stop it",
            )),
            false => judged,
        };
    }
    match (&facts.threads, &facts.memory.damon) {
        (Fact::Known(_), _) => Judgement::good("no kdamond runs"),
        (_, Fact::Known(_)) => Judgement::good("no kdamond is switched on"),
        (Fact::Unknown(why), _) => Judgement::unknown(why),
    }
}

fn balloon(case: &MachineCase) -> Judgement {
    match case.facts.is_guest() {
        Some(false) => return Judgement::good("this is not a virtual machine"),
        None => return Judgement::unknown(case.facts.cpus.flags.why().to_owned()),
        Some(true) => {}
    }
    match &case.facts.memory.balloon {
        Fact::Known(queues) if queues.is_empty() => Judgement::good("there is no balloon"),
        Fact::Known(queues) => {
            let used: Vec<String> = queues
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| format!("{name} {count} times"))
                .collect();
            match used.is_empty() {
                true => Judgement::good("there is a balloon, and it has not been used"),
                false => Judgement::bad(format!("the host takes memory back: {}", some(&used)))
                    .fix(Fix::advice("switch off the balloon and free page reporting on the host; lock_memory = true in the pipeline")),
            }
        }
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn vmstat(case: &MachineCase) -> Judgement {
    match &case.facts.memory.stat_interval_s {
        Fact::Known(s) if *s >= 10 => Judgement::good(format!("every {s} s")),
        Fact::Known(s) => Judgement::bad(format!("a kworker adds up the counters of every core every {s} s"))
            .fix(Fix::sysctl("vm.stat_interval", "10")),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn page_faults(case: &MachineCase) -> Judgement {
    let Some(causes) = &case.causes else {
        return Judgement::unknown("no record of a run was given (--record)");
    };
    match causes.faults {
        None => Judgement::unknown("the record has no page-fault counts of workers with a real-time policy"),
        Some(0) => Judgement::good("none after the start"),
        Some(faults) => Judgement::bad(format!(
            "workers with a real-time policy had {faults} page faults after the start"
        ))
        .fix(Fix::advice("lock_memory = true in the pipeline; sysctl vm.compact_unevictable_allowed=0")),
    }
}
