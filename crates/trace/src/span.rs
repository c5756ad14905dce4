//! A step in time, kernel events meanwhile, and their source.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A step of an operator. All times in nanoseconds on `CLOCK_MONOTONIC`.
///
/// A message waits for its turn from `due_ns` to the `start_ns` of its source, and then from the `end_ns` of
/// each step to the `start_ns` of the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// Index of the operator in the plan's order. Names are resolved at the end, not in the loop.
    pub operator: u32,
    /// Index of the worker in the plan.
    pub worker: u32,
    /// Index of the message's source among the sources.
    pub source: u32,
    /// Index in the plan of the edge that had no room, if the operator was held back; [`Span::NONE`] if it
    /// was not.
    pub held_by: u32,
    /// Number of the message among those of its source, from 0.
    pub sequence: u64,
    /// Time at which the source should send the message; [`Span::NO_DUE`] if no time is set, or no message
    /// was taken.
    pub due_ns: u64,
    /// Since when the operator was held back, if it was.
    pub held_ns: u64,
    /// Start of the step.
    pub start_ns: u64,
    /// End of the step.
    pub end_ns: u64,
}

impl Span {
    /// No edge.
    pub const NONE: u32 = u32::MAX;
    /// No due time.
    pub const NO_DUE: u64 = u64::MAX;
}

/// Interval in which a thread had no core. All times in nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffCpu {
    /// Kernel id of the thread.
    pub tid: i32,
    /// When it lost the core.
    pub out_ns: u64,
    /// Whether the loss was seen. If not, `out_ns` is the last time at which it is known to have had a core:
    /// some kernels omit switches to an idle core.
    pub is_begin_known: bool,
    /// Since when it was ready to run; equal to `out_ns` if it was preempted.
    pub runnable_ns: u64,
    /// When it had a core again; `u64::MAX` while it has none.
    pub in_ns: u64,
    /// Whether the return was seen. If not, `in_ns` is the first later time at which it is known to have had
    /// a core.
    pub is_end_known: bool,
    /// Why it lost the core.
    pub why: Left,
    /// Core that it left.
    pub from_cpu: u32,
    /// Core that it came back to; `from_cpu` while it has none.
    pub cpu: u32,
    /// Cause of the wake-up, if known.
    pub woken_by: Option<WakeSource>,
}

/// Interval in which a thread waited for a lock that it knows: that of the Python interpreter. All times in
/// nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWait {
    /// Kernel id of the thread.
    pub tid: i32,
    /// Begin of the wait.
    pub from_ns: u64,
    /// End of the wait.
    pub to_ns: u64,
    /// Operator or thread that had the lock.
    pub holder: String,
}

/// A message that came over a link from another run. All times in nanoseconds on the `CLOCK_MONOTONIC` of
/// this machine, as far as the two clocks are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkArrival {
    /// Kernel id of the thread that took it.
    pub tid: i32,
    /// When the other run sent it.
    pub sent_ns: u64,
    /// When this thread had all of it.
    pub came_ns: u64,
    /// Shortest time between the two so far.
    pub least_ns: u64,
    /// Its number among the messages of its source there.
    pub origin: u64,
    /// Name of the link.
    pub link: Arc<str>,
    /// The other run: host name and process.
    pub node: Arc<str>,
}

/// A page fault of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFault {
    /// Kernel id of the thread.
    pub tid: i32,
    /// Start, in nanoseconds on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Time until the memory counted as the process's own, in nanoseconds, without kernel entry and exit;
    /// `None` if that was not seen. It is not seen for a page that is only read and was never written: all
    /// such pages are one.
    pub took_ns: Option<u64>,
}

/// Counts of one thread between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Kernel id of the thread.
    pub tid: i32,
    /// Time of the first sample, in nanoseconds on `CLOCK_MONOTONIC`.
    pub from_ns: u64,
    /// Time of the second sample.
    pub to_ns: u64,
    /// Time for which it was ready to run while other threads had the core, in nanoseconds.
    pub run_queue_ns: u64,
    /// Number of page faults, with and without a disk access.
    pub page_faults: u64,
}

/// Reason why a thread left its core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Left {
    /// It was preempted by another thread.
    Taken,
    /// It waited, interruptibly by a signal.
    Asleep,
    /// It waited in the kernel, uninterruptibly: for a disk, a page.
    Blocked,
    /// It was stopped by a signal or a debugger.
    Stopped,
}

/// Cause of a thread's wake-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeSource {
    /// Thread that had the core at the wake-up.
    pub tid: i32,
    /// Its name, if known.
    pub name: String,
    /// Whether an interrupt on its core made the wake-up.
    pub is_interrupt: bool,
    /// Whether it belongs to the same process as the woken thread.
    pub is_ours: bool,
}

/// Class of a kernel event. The first classes have a core; each of them can interrupt the later ones. The
/// last classes are instants in the life of a thread, without a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The core was taken from the kernel itself, by the hypervisor (steal) or by firmware.
    Hardware,
    /// A non-maskable interrupt.
    Nmi,
    /// A hardware interrupt.
    Irq,
    /// Deferred interrupt work.
    Softirq,
    /// Another thread, of the kernel or of a program.
    Thread,
    /// Wake-up of a thread that should run on this core: from then on it waits in the run queue.
    Wakeup,
    /// Migration of a thread to this core.
    Migration,
    /// A thread, or the kernel on its behalf, touches memory that is not present.
    #[serde(rename = "page_fault")]
    PageFault,
}

impl Class {
    /// Whether events of this class have a core for a time.
    #[must_use]
    pub fn has_core(self) -> bool {
        self <= Class::Thread
    }
}

/// An interval in which the kernel or a thread had a core, or an instant at which something happened to a
/// thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelEvent {
    /// Core, by the kernel's number.
    pub cpu: u32,
    /// Start, in nanoseconds on `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// Time for which it had the core, in nanoseconds, without the time of events that interrupted it.
    pub duration_ns: u64,
    /// Its class.
    pub class: Class,
    /// The kernel's name of the interrupt's device, the softirq or the thread; for a page fault,
    /// `page_fault_user` or `page_fault_kernel`.
    pub name: String,
    /// Kernel id of the thread that has the core, or that the event is about; 0 if there is none.
    pub pid: i32,
    /// Kernel priority of the thread, as tracepoints print it (0 to 98 real-time, 120 a normal thread of nice
    /// 0); 0 if it is not a thread.
    pub priority: i32,
    /// Number of events that it interrupted: 0 if it interrupted the running thread.
    pub depth: u32,
}

/// A source of kernel events: perf tracepoints, the osnoise tracer, or counters in `/proc`.
///
/// The runtime accepts any source; it asks after the fact, outside the hot loop.
pub trait Evidence: Send {
    /// Name of the source, for the record: `"perf"`, `"osnoise"`, `"proc"`, `"none"`.
    fn source(&self) -> &str;

    /// Returns the events on core `cpu` that overlap `window_ns` (nanoseconds on `CLOCK_MONOTONIC`), by their
    /// start.
    ///
    /// An empty list means that none was seen. A source that lost events in the window, or does not reach
    /// back that far, returns those it has. It takes `&mut` because asking may drain the kernel's rings.
    fn events(&mut self, cpu: u32, window_ns: Range<u64>) -> Vec<KernelEvent>;

    /// Follows these threads, by kernel id, from now on: see [`off_cpu`](Self::off_cpu).
    fn follow(&mut self, tids: &[i32]) {
        let _ = tids;
    }

    /// Returns the off-core intervals of followed threads that overlap `window_ns`, by start. A source that
    /// knows only cores, not threads, returns none.
    fn off_cpu(&mut self, window_ns: Range<u64>) -> Vec<OffCpu> {
        let _ = window_ns;
        Vec::new()
    }

    /// Returns the page faults of followed threads that begin in `window_ns`, by time.
    fn page_faults(&mut self, window_ns: Range<u64>) -> Vec<PageFault> {
        let _ = window_ns;
        Vec::new()
    }

    /// Returns counts of followed threads around `window_ns`, from a source without times: how much, not
    /// when.
    fn counted(&mut self, window_ns: Range<u64>) -> Vec<Counted> {
        let _ = window_ns;
        Vec::new()
    }

    /// Reads the kernel's rings, so that no event is lost for lack of room. Call it about every 50 ms.
    fn drain(&mut self) {}

    /// Number of records lost so far.
    fn lost(&self) -> u64 {
        0
    }

    /// Why no better source is available, and the command that makes one available; `None` for the best one.
    fn lack(&self) -> Option<(String, String)> {
        None
    }
}

/// No evidence: for runs that asked for none, or on machines that allow none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoEvidence;

impl Evidence for NoEvidence {
    fn source(&self) -> &str {
        "none"
    }

    fn events(&mut self, _cpu: u32, _window_ns: Range<u64>) -> Vec<KernelEvent> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_evidence_says_so_and_knows_nothing() {
        let mut evidence: Box<dyn Evidence> = Box::new(NoEvidence);
        assert_eq!(evidence.source(), "none");
        assert!(evidence.events(0, 0..u64::MAX).is_empty());
    }

    #[test]
    fn classes_are_ordered_by_who_interrupts_whom() {
        let classes = [Class::Hardware, Class::Nmi, Class::Irq, Class::Softirq, Class::Thread];
        assert!(classes.is_sorted() && classes.iter().all(|class| class.has_core()));
        assert!(![Class::Wakeup, Class::Migration, Class::PageFault].iter().any(|class| class.has_core()));
    }

    #[test]
    fn an_event_survives_json() {
        let event = KernelEvent {
            cpu: 1,
            start_ns: 10,
            duration_ns: 5,
            class: Class::Softirq,
            name: "NET_RX".to_owned(),
            pid: 0,
            priority: 0,
            depth: 1,
        };
        let json = serde_json::to_string(&event).unwrap();
        assert!(json.contains(r#""class":"softirq""#), "{json}");
        assert_eq!(serde_json::from_str::<KernelEvent>(&json).unwrap(), event);
    }
}
