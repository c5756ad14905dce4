//! Another thread on the core of the worker, and what is said where the kernel tells of another time.

use crate::alone;
use crate::pipeline::{Injector, Log, busy, every, graph, options, run_with};
use crate::score::{Expected, Score, score};
use onbeat::trace::{CauseClass, Evidence, KernelEvent, OffCpu};
use std::ops::Range;

const THREAD: Expected = Expected { class: CauseClass::Preempted, name: "injector" };

/// A FIFO thread that takes the core for 3 ms now and then.
fn with_a_thread(change: impl FnOnce(Box<dyn Evidence>) -> Box<dyn Evidence>) -> Score {
    let log = Log::default();
    let noted = log.clone();
    let injector = Injector::start("injector", 1, "f:50", move || {
        every(33_000_000);
        noted.note(|| busy(3_000_000));
    });
    let (record, start_ns) = run_with(graph(1_000_000, |_| ()), &options("f:20"), change);
    drop(injector);
    score("a thread", &record, start_ns, &log.all(), THREAD)
}

#[test]
fn a_thread_on_the_core() {
    alone(|| {
        with_a_thread(|evidence| evidence).is_good();
    });
}

/// Answers with what was at another time.
pub struct Elsewhen(pub Box<dyn Evidence>);

const SHIFT_NS: u64 = 123_456_789;

impl Evidence for Elsewhen {
    fn source(&self) -> &str {
        self.0.source()
    }
    fn events(&mut self, cpu: u32, window: Range<u64>) -> Vec<KernelEvent> {
        let events = self.0.events(cpu, window.start - SHIFT_NS..window.end - SHIFT_NS).into_iter();
        events.map(|event| KernelEvent { start_ns: event.start_ns + SHIFT_NS, ..event }).collect()
    }
    fn follow(&mut self, tids: &[i32]) {
        self.0.follow(tids);
    }
    fn off_cpu(&mut self, window: Range<u64>) -> Vec<OffCpu> {
        let all = self.0.off_cpu(window.start - SHIFT_NS..window.end - SHIFT_NS).into_iter();
        let later = |ns: u64| ns.saturating_add(SHIFT_NS);
        all.map(|off| OffCpu {
            out_ns: later(off.out_ns),
            runnable_ns: later(off.runnable_ns),
            in_ns: later(off.in_ns),
            ..off
        })
        .collect()
    }
    fn drain(&mut self) {
        self.0.drain();
    }
}

#[test]
fn what_the_kernel_did_at_another_time_explains_nothing() {
    alone(|| {
        let score = with_a_thread(|evidence| Box::new(Elsewhen(evidence)));
        // The thread has the core for a twelfth of the time.
        assert!(score.misses >= 5 && score.named * 100 <= score.misses * 30, "{score:?}");
    });
}
