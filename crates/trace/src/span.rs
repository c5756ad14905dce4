//! One step in time, what the kernel did meanwhile, and where that knowledge comes from.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// One step of one operator. All times in nanoseconds on `CLOCK_MONOTONIC`.
///
/// From `due_ns` to the `start_ns` of its source a message waits for its turn, then from the `end_ns` of each step on its way to
/// the `start_ns` of the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// Which operator: its index in the plan's order. Names are looked up at the end, not in the loop.
    pub operator: u32,
    /// Which worker stepped it: its index in the plan.
    pub worker: u32,
    /// Of which source the message is: its index among the sources.
    pub source: u32,
    /// Which edge had no room, by its index in the plan, if the operator was held back; [`Span::NONE`] where it was not.
    pub held_by: u32,
    /// Which message of its source it worked on, from 0.
    pub sequence: u64,
    /// When the source was to send that message; [`Span::NO_DUE`] where nothing sets a time, or no message was taken.
    pub due_ns: u64,
    /// Since when it was held back, where it was.
    pub held_ns: u64,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

impl Span {
    /// No edge.
    pub const NONE: u32 = u32::MAX;
    /// No due time.
    pub const NO_DUE: u64 = u64::MAX;
}

/// One interval in which a thread had no core. All times in nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffCpu {
    /// The kernel's id of the thread.
    pub tid: i32,
    /// When it lost the core.
    pub out_ns: u64,
    /// Whether that was seen. If not, `out_ns` is the last moment at which it is known to have had one: some kernels leave out
    /// switches to an idle core.
    pub is_begin_known: bool,
    /// From when on it could have run again: equal to `out_ns` where the core was taken from it.
    pub runnable_ns: u64,
    /// When it had a core again; `u64::MAX` while it has none.
    pub in_ns: u64,
    /// Whether that was seen. If not, `in_ns` is the first moment after it at which it is known to have had one.
    pub is_end_known: bool,
    /// Why it left.
    pub why: Left,
    /// The core that it left.
    pub from_cpu: u32,
    /// The core that it came back to; `from_cpu` while it has none.
    pub cpu: u32,
    /// Who woke it, where that is known.
    pub woken_by: Option<Waker>,
}

/// A thread touched memory that was not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFault {
    /// The kernel's id of the thread.
    pub tid: i32,
    /// When, in nanoseconds on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// From then until the memory counted as the process's own, in nanoseconds, without the way into the kernel and back; `None`
    /// where that was not seen. That is so for a page that is only read and has never been written: all of those are one.
    pub took_ns: Option<u64>,
}

/// What was counted of one thread between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// The kernel's id of the thread.
    pub tid: i32,
    /// The one look, in nanoseconds on `CLOCK_MONOTONIC`.
    pub from_ns: u64,
    /// The other.
    pub to_ns: u64,
    /// How long it could have run and others had the core, in nanoseconds.
    pub run_queue_ns: u64,
    /// How many page faults it had.
    pub page_faults: u64,
}

/// Why a thread left its core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Left {
    /// It could have gone on: somebody else had it.
    Taken,
    /// It waited for something, and a signal would have ended that.
    Asleep,
    /// It waited within the kernel, and no signal would have ended that: for a disk, a page.
    Blocked,
    /// It was stopped, by a signal or a debugger.
    Stopped,
}

/// Who made a thread ready to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waker {
    /// The thread that had the core there.
    pub tid: i32,
    /// Its name, where that is known.
    pub name: String,
    /// It only lent its core to an interrupt: that woke the thread.
    pub is_interrupt: bool,
    /// It belongs to the process of the thread that it woke.
    pub is_ours: bool,
}

/// What kind a kernel event is. First those that have a core, in the order in which one may interrupt another: what comes first
/// interrupts what comes later. Then what happens to a thread at one moment, without a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The core was taken from the kernel itself: by the hypervisor (steal) or by firmware.
    Hardware,
    /// An interrupt that cannot be masked.
    Nmi,
    /// A hardware interrupt.
    Irq,
    /// Deferred interrupt work.
    Softirq,
    /// Another thread, of the kernel or of a program.
    Thread,
    /// A thread is woken, to run on this core: from here to its turn it waits in the run queue.
    Wakeup,
    /// A thread goes to this core, from another one.
    Migration,
    /// A thread, or the kernel for it, touches memory that is not there yet.
    #[serde(rename = "page_fault")]
    PageFault,
}

impl Class {
    /// Whether such an event is a time in which something has a core.
    #[must_use]
    pub fn has_core(self) -> bool {
        self <= Class::Thread
    }
}

/// One interval in which the kernel, or somebody whom it let run, had a core; or a moment at which something happened to a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelEvent {
    /// Which core, as the kernel numbers them.
    pub cpu: u32,
    /// When it began, in nanoseconds on `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// How long it had the core, in nanoseconds; what interrupted it is an event of its own and is
    /// not part of this.
    pub duration_ns: u64,
    /// What kind.
    pub class: Class,
    /// The kernel's name: of the interrupt's device, of the softirq, of the thread; of a page fault where it happened,
    /// `page_fault_user` or `page_fault_kernel`.
    pub name: String,
    /// The kernel's id of the thread that has the core, or that it happens to; 0 where there is none.
    pub pid: i32,
    /// The kernel's priority of the thread as tracepoints print it (0 to 98 real-time, 120 a normal
    /// thread of nice 0); 0 where it is not a thread.
    pub priority: i32,
    /// How many events it interrupted: 0 where it interrupted the thread that was running.
    pub depth: u32,
}

/// A source of kernel events: perf tracepoints, the osnoise tracer, or what `/proc` has to offer.
///
/// The runtime takes any; it asks after the fact, away from the hot loop.
pub trait Evidence: Send {
    /// Which source this is, for the record: `"perf"`, `"osnoise"`, `"proc"`, `"none"`.
    fn source(&self) -> &str;

    /// The events on core `cpu` that overlap `window_ns` (nanoseconds on `CLOCK_MONOTONIC`), by their
    /// start.
    ///
    /// An empty list means that none was seen; a source that lost events in the window, or does not
    /// reach back that far, gives what it has. `&mut` because asking may drain the kernel's rings.
    fn events(&mut self, cpu: u32, window_ns: Range<u64>) -> Vec<KernelEvent>;

    /// Has these threads, by the kernel's ids, followed from now on: see [`off_cpu`](Self::off_cpu).
    fn follow(&mut self, tids: &[i32]) {
        let _ = tids;
    }

    /// When the threads that are followed had no core, of what overlaps `window_ns`, by the begin. A source that knows of cores
    /// but not of threads gives nothing.
    fn off_cpu(&mut self, window_ns: Range<u64>) -> Vec<OffCpu> {
        let _ = window_ns;
        Vec::new()
    }

    /// Page faults of the threads that are followed which begin in `window_ns`, by time.
    fn page_faults(&mut self, window_ns: Range<u64>) -> Vec<PageFault> {
        let _ = window_ns;
        Vec::new()
    }

    /// What was counted of the threads that are followed, around `window_ns`, by a source that knows no moments: how much, not when.
    fn counted(&mut self, window_ns: Range<u64>) -> Vec<Counted> {
        let _ = window_ns;
        Vec::new()
    }

    /// Reads what the kernel has for it, so that nothing is lost for lack of room: to be called every 50 ms or so.
    fn drain(&mut self) {}

    /// Records that were lost so far.
    fn lost(&self) -> u64 {
        0
    }

    /// Why it is this source and no better one, and the command that gives a better one; `None` where it is the best.
    fn lack(&self) -> Option<(String, String)> {
        None
    }
}

/// No evidence: what a run has where nothing was asked for or the machine allows nothing.
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
