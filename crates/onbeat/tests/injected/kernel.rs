//! What the kernel does in interrupts.

use crate::alone;
use crate::pipeline::{Log, PERIOD_NS, WORK_NS, graph, options, run};
use crate::score::{Expected, score};
use onbeat::trace::CauseClass;
use onbeat_os::clock::{self, monotonic_ns};
use onbeat_os::{CoreSet, thread};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Timers that ring in the same moment, on the core on which they were set: one long interrupt.
const TIMERS: usize = 5_000;

fn timers() -> Option<Vec<OwnedFd>> {
    onbeat_os::perf::allow_open_files(TIMERS as u64 + 1024);
    (0..TIMERS).map(|_| timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok()).collect()
}

fn set(timers: &[OwnedFd], at_ns: u64) {
    let at = Timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
    for timer in timers {
        timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once).expect("a timer that is there");
    }
}

#[test]
fn a_long_timer_interrupt() {
    alone(|| {
        let Some(timers) = timers() else {
            eprintln!("skipped: {TIMERS} timers cannot be had");
            return;
        };
        let (log, stop) = (Log::default(), Arc::new(AtomicBool::new(false)));
        let (noted, stopped) = (log.clone(), Arc::clone(&stop));
        let worked_ns = Arc::new(AtomicU64::new(0));
        let last_ns = Arc::clone(&worked_ns);
        let main = move || {
            thread::set_cores(&CoreSet::from_cores([1]).expect("a core")).expect("on that core");
            let policy: onbeat::Policy = "f:10".parse().expect("a policy");
            policy.set(onbeat_os::policy::PolicyFlags::default()).expect("that policy");
            while !stopped.load(Ordering::Relaxed) {
                // Three messages later, in the middle of the work.
                let last_ns = last_ns.load(Ordering::Relaxed);
                let at_ns = (last_ns + 3 * PERIOD_NS - WORK_NS / 2).max(monotonic_ns() + PERIOD_NS);
                set(&timers, at_ns);
                noted.ring(at_ns);
                clock::sleep_until(at_ns + 4_000_000);
            }
        };
        let injector = thread::spawn("timers", main).expect("a thread");
        let (record, start_ns) = run(
            graph(500_000, move |_| worked_ns.store(monotonic_ns(), Ordering::Relaxed)),
            &options("f:20"),
        );
        stop.store(true, Ordering::Relaxed);
        injector.join().expect("no panic");
        // How long they take nobody but the kernel knows: the truth is what the lateness comes to beyond the
        // usual.
        let expected = Expected { class: CauseClass::Irq, name: "local_timer" };
        let usual_ns = record.paths[0].latency.median_ns;
        let truth = log.rung(&record, start_ns, usual_ns);
        score("a timer interrupt", &record, start_ns, &truth, expected).is_good();
    });
}
