//! What makes messages late is put into a pipeline, one cause after the other, and the verdicts must name it.
//!
//! Each case knows when its cause was there: a miss counts where the cause had at least half of its lateness,
//! so that what the machine does beside does not count for or against. Where a case cannot run it says
//! "skipped: why".

#![allow(clippy::disallowed_macros, reason = "a test says what it found and what it skips")]

mod fed;
mod graph;
mod kernel;
mod neighbours;
mod normal;
mod pipeline;
mod preempted;
mod quota;
mod rationed;
mod refused;
mod score;
mod softirq;
mod stopped;

use std::panic::{RefUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// How often a case is played that the hypervisor was in the way of, and from how much of its time on it was.
const PLAYS: usize = 5;
const STOLEN_NS: u64 = 40_000_000;

/// One at a time, where it can run at all: each wants the machine as it is. What a hypervisor takes is late
/// for a reason that nobody has injected, so a case that fails is played again if the kernel counted stolen
/// time meanwhile, and only then.
fn alone(case: impl Fn() + RefUnwindSafe) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !can() {
        return;
    }
    for _ in 0..PLAYS {
        let before_ns = stolen_ns();
        let played = catch_unwind(&case);
        let stolen_ns = stolen_ns() - before_ns;
        eprintln!("stolen meanwhile: {} ms", stolen_ns / 1_000_000);
        match played {
            Ok(()) => return,
            Err(panic) if stolen_ns < STOLEN_NS => resume_unwind(panic),
            Err(_) => eprintln!("the hypervisor was in the way: once more"),
        }
    }
    eprintln!("skipped: the hypervisor took the machine away in each of {PLAYS} plays");
}

/// What the hypervisor has taken of all cores so far (`proc_stat(5)`: hundredths of a second).
fn stolen_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let steal = text.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse::<u64>().ok());
    steal.unwrap_or(0) * 10_000_000
}

/// Whether threads can be given policies and the kernel's tracepoints be read here. Says so if not.
fn can() -> bool {
    let online = onbeat_os::CoreSet::online().unwrap_or_default();
    if !(online.contains(0) && online.contains(1)) {
        eprintln!("skipped: it needs two cores");
        return false;
    }
    if let Err(refused) =
        onbeat_noise::TracepointEvidence::open(&[1], 1 << 16, onbeat_noise::decode::Extent::Cores)
    {
        eprintln!("skipped: {}", refused.why);
        return false;
    }
    for text in ["f:20", "d:2ms:10ms:10ms"] {
        let policy: onbeat::Policy = text.parse().expect("a policy");
        let tried =
            onbeat_os::thread::spawn("tries", move || policy.set(onbeat_os::policy::PolicyFlags::default()));
        if let Err(error) = tried.expect("a thread").join().expect("no panic") {
            eprintln!("skipped: the policy {text} cannot be had here: {error}");
            return false;
        }
    }
    true
}
