//! Scheduler settings, and threads that run before real-time workers.

use super::{Check, some};
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::facts::SystemThread;
use crate::finding::{Fix, Judgement, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "autogroup",
        area: "scheduler",
        severity: Severity::Info,
        title: "scheduling groups by session",
        what: "Normal threads share a core by session, not by thread: niceness counts only within a session.",
        how: "sysctl kernel.sched_autogroup_enabled=0.",
        cost: "A desktop under load responds more slowly.",
        skip: "If all threads that matter have a real-time policy.",
        judge: autogroup,
    },
    Check {
        id: "timer-migration",
        area: "scheduler",
        severity: Severity::Info,
        title: "timers move to busy cores",
        what: "Timers of idle cores move to a core that is awake, possibly a quiet one.",
        how: "sysctl kernel.timer_migration=0.",
        cost: "Idle cores wake up more often.",
        skip: "With nohz_full, whose cores take no such timers.",
        judge: timer_migration,
    },
    Check {
        id: "sched-ext",
        area: "scheduler",
        severity: Severity::Warning,
        title: "a BPF scheduler (sched_ext)",
        what: "A loaded scx scheduler schedules all normal threads by its own rules.",
        how: "Stop the program that loaded it.",
        cost: "The benefit it was loaded for.",
        skip: "If it was chosen for this machine.",
        judge: sched_ext,
    },
    Check {
        id: "rivals",
        area: "scheduler",
        severity: Severity::Warning,
        title: "other threads with a real-time policy",
        what: "A FIFO, RR or DEADLINE thread of another program on the same core can delay a worker if the thread has at least the worker's priority.",
        how: "chrt to lower its priority, taskset to move it.",
        cost: "That thread is then late instead.",
        skip: "For interrupt threads that the pipeline depends on: they must run first.",
        judge: rivals,
    },
    Check {
        id: "kernel-threads",
        area: "scheduler",
        severity: Severity::Info,
        title: "priorities of kernel threads",
        what: "While a real-time thread is busy, ksoftirqd and RCU threads of lower priority wait on its core. Timers, network packets and the freeing of memory wait with them.",
        how: "rcutree.kthread_prio=N on the command line and chrt -f -p N for ksoftirqd, both above the pipeline's priority if its threads never sleep.",
        cost: "These threads then preempt the pipeline.",
        skip: "If real-time threads sleep regularly, or the core is isolated and its RCU callbacks are offloaded.",
        judge: kernel_threads,
    },
    Check {
        id: "numa-balancing",
        area: "scheduler",
        severity: Severity::Warning,
        title: "page migration between NUMA nodes",
        what: "The kernel unmaps pages to see which node uses them, and moves them. That causes page faults, even of locked memory.",
        how: "sysctl kernel.numa_balancing=0.",
        cost: "Programs that are not pinned to a node may have their memory on another one.",
        skip: "On machines with one node.",
        judge: numa_balancing,
    },
    Check {
        id: "slices",
        area: "scheduler",
        severity: Severity::Info,
        title: "time slice of normal threads",
        what: "If normal threads share a core, a thread waits this long for its turn.",
        how: "Write sched/base_slice_ns in debugfs; better: give the thread a core of its own or a real-time policy.",
        cost: "Shorter slices mean more context switches.",
        skip: "If no thread that matters is a normal one.",
        judge: slices,
    },
];

fn autogroup(case: &MachineCase) -> Judgement {
    match &case.facts.scheduler.autogroup {
        Fact::Known(0) => Judgement::good("off"),
        Fact::Known(_) => {
            Judgement::bad("normal threads share cores by session: niceness counts only within a session")
                .fix(Fix::sysctl("kernel.sched_autogroup_enabled", "0"))
        }
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn timer_migration(case: &MachineCase) -> Judgement {
    match &case.facts.scheduler.timer_migration {
        Fact::Known(0) => Judgement::good("off"),
        Fact::Known(_) => Judgement::bad("timers of idle cores move to busy ones")
            .fix(Fix::sysctl("kernel.timer_migration", "0")),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn sched_ext(case: &MachineCase) -> Judgement {
    let scheduler = &case.facts.scheduler;
    match &scheduler.ext {
        Fact::Known(state) if state == "disabled" => Judgement::good("none is loaded"),
        Fact::Known(state) => {
            let name = scheduler.ext_name.known().map_or("?", String::as_str);
            Judgement::bad(format!(
                "the scheduler `{}` is {}",
                crate::fact::short(name),
                crate::fact::short(state)
            ))
            .fix(Fix::advice("stop the program that loaded it, unless it was chosen for this machine"))
        }
        Fact::Unknown(_) if case.facts.kernel.has("SCHED_CLASS_EXT") == Some(false) => {
            Judgement::good("this kernel supports none")
        }
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

/// Kernel threads with a real-time policy that exist on every core and do urgent work.
const OWN: [&str; 4] = ["migration/", "watchdog", "cpuhp", "idle_inject/"];

fn rivals(case: &MachineCase) -> Judgement {
    let threads = match &case.facts.threads {
        Fact::Known(threads) => threads,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let priority = case.pipeline.as_ref().map_or(1, |pipeline| u32::from(pipeline.priority().max(1)));
    let is_rival = |thread: &&SystemThread| {
        thread.is_real_time()
            && (thread.policy == 6 || thread.priority >= priority)
            && !(thread.is_kernel && OWN.iter().any(|own| thread.name.starts_with(own)))
            && thread.name != "onbeat"
            && thread.cores.as_ref().is_none_or(|cores| !cores.common(&case.cpus).is_empty())
    };
    let shown = |thread: &SystemThread| {
        let policy = match thread.policy {
            1 => format!("f:{}", thread.priority),
            2 => format!("r:{}", thread.priority),
            _ => "deadline".to_owned(),
        };
        format!("{}:{} ({policy})", thread.name, thread.tid)
    };
    let found: Vec<&SystemThread> = threads.iter().filter(is_rival).collect();
    let names: Vec<String> = found.iter().map(|thread| shown(thread)).collect();
    match names.is_empty() {
        true => Judgement::good(format!("no other thread with priority {priority} or more may run there")),
        false => {
            // The pipeline may depend on these interrupts.
            let only_interrupts =
                found.iter().all(|thread| thread.is_kernel && thread.name.starts_with("irq/"));
            let judged = Judgement::bad(format!(
                "threads that may run on {} with priority {priority} or more: {}",
                case.cpus,
                some(&names)
            ));
            let judged = if only_interrupts { judged.with_severity(Severity::Info) } else { judged };
            match only_interrupts {
                true => judged.fix(Fix::advice(
                    "fine if the pipeline needs these devices; otherwise move them: see device-interrupts",
                )),
                false => judged.fix(Fix::command(format!(
                    "chrt -o -p 0 {}   # or taskset -p, if you may change it",
                    found[0].tid
                ))),
            }
        }
    }
}

fn kernel_threads(case: &MachineCase) -> Judgement {
    let threads = match &case.facts.threads {
        Fact::Known(threads) => threads,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let priority = case.pipeline.as_ref().map_or(0, |pipeline| u32::from(pipeline.priority()));
    let never_sleeps = case.pipeline.as_ref().is_some_and(|pipeline| {
        pipeline.workers.iter().any(|worker| worker.never_sleeps && worker.is_real_time())
    });
    let own = |thread: &&SystemThread| {
        thread.is_kernel && (thread.name.starts_with("ksoftirqd/") || thread.name.starts_with("rcuc/"))
    };
    let lowest = threads.iter().filter(own).map(|thread| thread.priority).min();
    match lowest {
        None => Judgement::unknown("/proc shows no ksoftirqd"),
        Some(lowest) if never_sleeps && lowest < priority => Judgement::bad(format!(
            "ksoftirqd has priority {lowest}, a worker of the pipeline that never sleeps has {priority}: timers and network of its core wait forever"
        ))
        .with_severity(Severity::Warning)
        .fix(Fix::advice("let the worker park, or isolate its core with rcu_nocbs and irqaffinity, so that ksoftirqd has no work")),
        Some(0) => Judgement::good("ksoftirqd is a normal thread: a real-time thread that sleeps lets it run"),
        Some(lowest) => Judgement::good(format!("ksoftirqd has priority {lowest}")),
    }
}

fn numa_balancing(case: &MachineCase) -> Judgement {
    match &case.facts.scheduler.numa_balancing {
        Fact::Known(0) => Judgement::good("off"),
        Fact::Known(_) => Judgement::bad("the kernel unmaps pages and moves them between nodes")
            .fix(Fix::sysctl("kernel.numa_balancing", "0")),
        Fact::Unknown(_) if case.facts.kernel.has("NUMA_BALANCING") == Some(false) => {
            Judgement::good("this kernel does not balance pages")
        }
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn slices(case: &MachineCase) -> Judgement {
    match &case.facts.scheduler.base_slice_ns {
        Fact::Known(ns) => Judgement::good(format!("{:.1} ms", *ns as f64 / 1e6)),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}
