//! What makes messages late is put into a pipeline, one cause after the other, and the verdicts must name it.
//!
//! Each case knows when its cause was there: a miss counts where the cause had at least half of its lateness, so that what the
//! machine does beside does not count for or against. Where a case cannot run it says "skipped: why".

#![allow(clippy::disallowed_macros, reason = "a test says what it found and what it skips")]

mod kernel;
mod neighbours;
mod pipeline;
mod refused;
mod score;
mod stopped;

use std::panic::{RefUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// One at a time: each wants the machine as it is. What somebody else does on it meanwhile may hide what is injected, so a case may be
/// played three times; each of them says what it found.
fn tried(case: impl Fn() + RefUnwindSafe) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for left in (0..3).rev() {
        match catch_unwind(&case) {
            Ok(()) => return,
            Err(panic) if left == 0 => resume_unwind(panic),
            Err(_) => eprintln!("once more"),
        }
    }
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
