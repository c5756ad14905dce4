//! Rights, tested by use: a separate thread tries each one and then ends.

use crate::fact::Fact;
use crate::lists;
use onbeat_os::latency::DmaLatency;
use onbeat_os::memory::MemoryLock;
use onbeat_os::policy::PolicyFlags;
use onbeat_os::rights::{Rights, explain, explain_lock};
use onbeat_os::tracefs::Tracefs;
use onbeat_os::{CoreSet, EventCounter, Policy, thread};

/// Result of an attempt: success, or a refusal with the way to grant the right.
pub type Attempt = Fact<Result<(), AttemptRefusal>>;

/// Why a right is refused, and how to grant it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRefusal {
    /// Reason.
    pub why: String,
    /// What to do.
    pub fix: String,
}

/// Results of all attempts.
#[derive(Debug, Clone, Default)]
pub struct Attempts {
    /// `SCHED_FIFO` with `priority`.
    pub fifo: Attempt,
    /// `SCHED_RR` with `priority`.
    pub round_robin: Attempt,
    /// Priority that was tried.
    pub priority: u8,
    /// `SCHED_DEADLINE`.
    pub deadline: Attempt,
    /// Running on each of the cores alone.
    pub affinity: Attempt,
    /// Locking memory.
    pub lock: Attempt,
    /// Counting a tracepoint with perf.
    pub perf: Attempt,
    /// Reading tracefs.
    pub tracefs: Attempt,
    /// Holding a latency limit for idle cores.
    pub dma_latency: Attempt,
}

impl Attempts {
    /// Tries every right, with this priority and on these cores.
    #[must_use]
    pub fn now(priority: u8, cpus: &CoreSet) -> Self {
        let priority = priority.clamp(1, 98);
        let cpus = cpus.clone();
        let probe = thread::spawn("onbeat-probe", move || attempts(priority, &cpus));
        let done = probe
            .map_err(|error| error.to_string())
            .and_then(|probe| probe.join().map_err(|_| "the probing thread panicked".to_owned()));
        done.unwrap_or_else(|why| Attempts::not(&why))
    }

    /// Nothing was tried, for this reason.
    #[must_use]
    pub fn not(why: &str) -> Self {
        let not = || Fact::Unknown(why.to_owned());
        Attempts {
            fifo: not(),
            round_robin: not(),
            priority: 0,
            deadline: not(),
            affinity: not(),
            lock: not(),
            perf: not(),
            tracefs: not(),
            dma_latency: not(),
        }
    }
}

fn attempts(priority: u8, cpus: &CoreSet) -> Attempts {
    let policy = |policy: Policy| {
        let done = policy.set(PolicyFlags { reset_on_fork: true, ..PolicyFlags::default() });
        let result = done.map_err(|error| {
            let refusal = explain(&policy, error.raw_os_error().unwrap_or(0), &Rights::read());
            AttemptRefusal { why: refusal.why, fix: refusal.fix }
        });
        // // Each attempt starts from a normal policy.
        let _kept = Policy::Other(0).set(PolicyFlags::default());
        Fact::Known(result)
    };
    let deadline = Policy::Deadline { runtime_ns: 1_000_000, deadline_ns: 10_000_000, period_ns: 10_000_000 };
    let lock = MemoryLock::take(false).map(drop).map_err(|error| {
        let refusal = explain_lock(error.raw_os_error().unwrap_or(0), &Rights::read());
        AttemptRefusal { why: refusal.why, fix: refusal.fix }
    });
    let dma_latency = DmaLatency::hold(0).map(drop).map_err(|error| AttemptRefusal {
        why: error.to_string(),
        fix: "run as root, or give a group write access: sudo chgrp GROUP /dev/cpu_dma_latency; sudo chmod g+rw /dev/cpu_dma_latency"
            .to_owned(),
    });
    let perf = EventCounter::tracepoint("sched", "sched_switch").map(drop).map_err(|error| AttemptRefusal {
        why: error.to_string(),
        fix: "sudo setcap cap_sys_nice,cap_ipc_lock,cap_perfmon+ep \"$(command -v onbeat)\", and make tracefs readable".to_owned(),
    });
    let tracefs = Tracefs::find().map(drop).map_err(|error| AttemptRefusal {
        why: error.to_string(),
        fix: "sudo mount -o remount,gid=GROUP,mode=0750 /sys/kernel/tracing".to_owned(),
    });
    Attempts {
        fifo: policy(Policy::Fifo(priority)),
        round_robin: policy(Policy::RoundRobin(priority)),
        priority,
        deadline: policy(deadline),
        lock: Fact::Known(lock),
        perf: Fact::Known(perf),
        tracefs: Fact::Known(tracefs),
        dma_latency: Fact::Known(dma_latency),
        // // Last, because it leaves the thread on one core.
        affinity: Fact::Known(affinity(cpus)),
    }
}

fn affinity(cpus: &CoreSet) -> Result<(), AttemptRefusal> {
    let refused: Vec<usize> = cpus
        .iter()
        .filter(|core| {
            let only = CoreSet::from_cores([*core]).unwrap_or_default();
            thread::set_cores(&only).is_err() || thread::cores().ok() != Some(only)
        })
        .collect();
    if refused.is_empty() {
        return Ok(());
    }
    let refused = CoreSet::from_cores(refused).unwrap_or_default();
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let online = online.as_deref().and_then(lists::file).unwrap_or_default();
    let (why, fix) = match refused.without(&online).is_empty() {
        true => (
            format!("this process may not run on {refused}: they are not in its cpuset"),
            "widen the cpuset: AllowedCPUs= of the service, --cpuset-cpus of the container",
        ),
        false => (
            format!("{} are not online; online are {online}", refused.without(&online)),
            "name cores that are online",
        ),
    };
    Err(AttemptRefusal { why, fix: fix.to_owned() })
}
