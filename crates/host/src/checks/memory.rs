//! What takes pages away from a thread, and who works on memory in the background.

use super::{Check, some};
use crate::case::Case;
use crate::fact::Fact;
use crate::finding::{Fix, Judged, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "swap",
        area: "memory",
        severity: Severity::Warning,
        title: "swap",
        what: "A page that was swapped out comes back from a disk: milliseconds in a step.",
        how: "swapoff -a, or lock_memory = true in the pipeline.",
        cost: "Without swap, a machine that runs out of memory ends programs earlier.",
        skip: "Where all that matters is locked.",
        judge: swap,
    },
    Check {
        id: "huge-pages",
        area: "memory",
        severity: Severity::Warning,
        title: "transparent huge pages",
        what: "khugepaged moves pages together behind a program's back, and a page fault may wait until 2 MiB are free in one piece.",
        how: "madvise or never into transparent_hugepage/enabled, never or defer into defrag.",
        cost: "Programs with much memory that do not ask for huge pages are slower.",
        skip: "Where memory is locked and nothing is allocated after the start.",
        judge: huge_pages,
    },
    Check {
        id: "compaction",
        area: "memory",
        severity: Severity::Warning,
        title: "pages that are moved together",
        what: "The kernel moves pages, locked ones too, to make room in one piece; a thread that touches one meanwhile waits until it is moved. 14 ms were seen.",
        how: "sysctl vm.compact_unevictable_allowed=0 and vm.compaction_proactiveness=0.",
        cost: "Large pieces of memory are harder to get.",
        skip: "On PREEMPT_RT kernels, which do not move locked pages.",
        judge: compaction,
    },
    Check {
        id: "ksm",
        area: "memory",
        severity: Severity::Warning,
        title: "merging of equal pages",
        what: "ksmd looks through memory for equal pages; writing to a merged page is a page fault that copies it.",
        how: "0 into /sys/kernel/mm/ksm/run.",
        cost: "More memory is used, where many guests are alike.",
        skip: "Where nobody has marked memory as mergeable.",
        judge: ksm,
    },
    Check {
        id: "damon",
        area: "memory",
        severity: Severity::Warning,
        title: "DAMON watches memory",
        what: "kdamond looks at which pages are used, in slices of 2 to 20 ms on any core, and may give some back to the host.",
        how: "off into the state file of each kdamond. Whoever started it may have a reason, so onbeat does not do it by itself.",
        cost: "Memory that is not used is not given back any more.",
        skip: "Where kdamond keeps off these cores.",
        judge: damon,
    },
    Check {
        id: "balloon",
        area: "memory",
        severity: Severity::Warning,
        title: "a balloon, and free pages that are reported",
        what: "The host takes memory from a guest and gives it back; the next touch of a page that was given back waits for the host.",
        how: "Switch off the balloon and free page reporting at the host (in qemu: no virtio-balloon, or free-page-reporting=off), or lock the memory.",
        cost: "The host cannot use the guest's free memory.",
        skip: "Where memory is locked before the start.",
        judge: balloon,
    },
    Check {
        id: "vmstat",
        area: "memory",
        severity: Severity::Info,
        title: "statistics of memory",
        what: "A kworker on every core sums up counters once a second.",
        how: "sysctl vm.stat_interval=10.",
        cost: "/proc/vmstat is up to ten seconds old.",
        skip: "With nohz_full, where quiet cores are left alone.",
        judge: vmstat,
    },
    Check {
        id: "page-faults",
        area: "memory",
        severity: Severity::Warning,
        title: "page faults while it runs",
        what: "A page that is touched for the first time costs a microsecond, from a disk milliseconds.",
        how: "lock_memory = true and prefault in the pipeline; allocate before the start.",
        cost: "Start takes longer, and all memory is taken at once.",
        skip: "Where the workers have no real-time policy.",
        judge: page_faults,
    },
];

fn swap(case: &Case) -> Judged {
    let memory = &case.facts.memory;
    match &memory.swaps {
        Fact::Known(swaps) if swaps.is_empty() => Judged::good("there is no swap"),
        Fact::Known(swaps) if case.pipeline.as_ref().is_some_and(|pipeline| pipeline.lock_memory) => {
            Judged::good(format!("the pipeline locks its memory; swap goes to {}", some(swaps)))
        }
        Fact::Known(swaps) => Judged::bad(format!("memory may be swapped to {}", some(swaps)))
            .fix(Fix::command("swapoff -a   # or lock_memory = true in the pipeline")),
        Fact::Unknown(why) => Judged::unknown(why),
    }
}

fn huge_pages(case: &Case) -> Judged {
    let memory = &case.facts.memory;
    let folder = "sys/kernel/mm/transparent_hugepage";
    let (enabled, defrag) = match (&memory.huge_pages, &memory.huge_pages_defrag) {
        (Fact::Known(enabled), defrag) => (enabled.as_str(), defrag.known().map_or("never", String::as_str)),
        (Fact::Unknown(why), _) => return Judged::unknown(why),
    };
    match (enabled, defrag) {
        ("never", _) | ("madvise", "never" | "defer") => {
            Judged::good(format!("enabled: {enabled}, defrag: {defrag}"))
        }
        ("madvise", _) => Judged::bad(format!(
            "a program that asks for huge pages waits for them at a page fault (defrag: {defrag})"
        ))
        .with_severity(Severity::Info)
        .fix(Fix::write(format!("{folder}/defrag"), "defer")),
        _ => Judged::bad(format!(
            "khugepaged works on the memory of all programs (enabled: {enabled}, defrag: {defrag})"
        ))
        .fix(Fix::write(format!("{folder}/enabled"), "madvise"))
        .fixes(
            (!matches!(defrag, "never" | "defer")).then(|| Fix::write(format!("{folder}/defrag"), "defer")),
        ),
    }
}

fn compaction(case: &Case) -> Judged {
    let memory = &case.facts.memory;
    let is_realtime = case.facts.kernel.is_realtime().known() == Some(&true);
    let (moves, ahead) = match (&memory.moves_locked, &memory.compaction) {
        (Fact::Known(moves), ahead) => (*moves, ahead.known().copied().unwrap_or(0)),
        (Fact::Unknown(_), _) if case.facts.kernel.has("COMPACTION") == Some(false) => {
            return Judged::good("this kernel moves no pages");
        }
        (Fact::Unknown(why), _) => return Judged::unknown(why),
    };
    let mut seen = Vec::new();
    let mut fixes = Vec::new();
    if moves != 0 && !is_realtime {
        seen.push("locked pages are moved too");
        fixes.push(Fix::sysctl("vm.compact_unevictable_allowed", "0"));
    }
    if ahead != 0 {
        seen.push("kcompactd moves pages ahead of need");
        fixes.push(Fix::sysctl("vm.compaction_proactiveness", "0"));
    }
    let judged = match seen.is_empty() {
        true => Judged::good("locked pages stay where they are"),
        false => Judged::bad(seen.join(", and ")),
    };
    let judged = judged.fixes(fixes);
    if moves == 0 || is_realtime { judged.with_severity(Severity::Info) } else { judged }
}

fn ksm(case: &Case) -> Judged {
    match &case.facts.memory.ksm {
        Fact::Known(1) => {
            Judged::bad("ksmd merges equal pages").fix(Fix::write("sys/kernel/mm/ksm/run", "0"))
        }
        Fact::Known(_) => Judged::good("off"),
        Fact::Unknown(_) if case.facts.kernel.has("KSM") == Some(false) => {
            Judged::good("this kernel does not do that")
        }
        Fact::Unknown(why) => Judged::unknown(why),
    }
}

fn damon(case: &Case) -> Judged {
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
                ": it took {:.1} ms of {:.1} s here, {:.1} ms at once",
                cause.total_ns as f64 / 1e6,
                noise.runtime_ns as f64 / 1e9,
                cause.max_ns as f64 / 1e6
            ))
        });
        let who = if names.is_empty() { "a kdamond".to_owned() } else { some(&names) };
        let fixes = on.iter().map(|number| {
            Fix::command(format!(
                "echo off > /sys/kernel/mm/damon/admin/kdamonds/{number}/state   # if nobody needs it"
            ))
        });
        let judged = Judged::bad(format!("{who} watches memory{}", took.unwrap_or_default())).fixes(fixes);
        return match judged.fixes.is_empty() {
            true => judged.fix(Fix::advice(
                "find out who has started it (damon_reclaim, damon_lru_sort, damon_stat, damo), and end that",
            )),
            false => judged,
        };
    }
    match (&facts.threads, &facts.memory.damon) {
        (Fact::Known(_), _) => Judged::good("no kdamond runs"),
        (_, Fact::Known(_)) => Judged::good("no kdamond is on"),
        (Fact::Unknown(why), _) => Judged::unknown(why),
    }
}

fn balloon(case: &Case) -> Judged {
    match case.facts.is_guest() {
        Some(false) => return Judged::good("this is no virtual machine"),
        None => return Judged::unknown(case.facts.cpus.flags.why().to_owned()),
        Some(true) => {}
    }
    match &case.facts.memory.balloon {
        Fact::Known(queues) if queues.is_empty() => Judged::good("there is none"),
        Fact::Known(queues) => {
            let used: Vec<String> = queues
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| format!("{name} {count} times"))
                .collect();
            match used.is_empty() {
                true => Judged::good("a balloon is there and has not been used"),
                false => Judged::bad(format!("the host takes memory back: {}", some(&used)))
                    .fix(Fix::advice("switch off the balloon and free page reporting at the host; lock_memory = true in the pipeline")),
            }
        }
        Fact::Unknown(why) => Judged::unknown(why),
    }
}

fn vmstat(case: &Case) -> Judged {
    match &case.facts.memory.stat_interval_s {
        Fact::Known(s) if *s >= 10 => Judged::good(format!("every {s} s")),
        Fact::Known(s) => Judged::bad(format!("a kworker sums up counters of every core each {s} s"))
            .fix(Fix::sysctl("vm.stat_interval", "10")),
        Fact::Unknown(why) => Judged::unknown(why),
    }
}

fn page_faults(case: &Case) -> Judged {
    let Some(causes) = &case.causes else {
        return Judged::unknown("no record of a run was given (--record)");
    };
    match causes.faults {
        None => {
            Judged::unknown("the record has no worker with a real-time policy whose page faults were counted")
        }
        Some(0) => Judged::good("none after the start"),
        Some(faults) => {
            Judged::bad(format!("workers with a real-time policy had {faults} page faults after the start"))
                .fix(Fix::advice(
                    "lock_memory = true in the pipeline; sysctl vm.compact_unevictable_allowed=0",
                ))
        }
    }
}
