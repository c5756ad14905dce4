//! The frames of a pass, shared between the thread that makes them and the one that looks for causes.

use onbeat_os::{clock, thread};
use onbeat_queue::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// One frame, in nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTimes {
    /// Due time.
    pub due_ns: u64,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Core on which it started.
    pub cpu: u32,
    /// Thread that made it.
    pub tid: i32,
}

#[derive(Default)]
struct FrameSlot {
    due_ns: AtomicU64,
    start_ns: AtomicU64,
    end_ns: AtomicU64,
    cpu: AtomicU32,
    tid: AtomicU32,
}

/// A list of fixed capacity with a single writer.
pub struct FrameLog {
    slots: Box<[FrameSlot]>,
    /// Number of frames. Written with Release, read with Acquire: the slots below it are complete.
    made: AtomicU64,
}

impl FrameLog {
    pub fn new(most: usize) -> FrameLog {
        FrameLog { slots: (0..most).map(|_| FrameSlot::default()).collect(), made: AtomicU64::new(0) }
    }

    /// Makes a frame: runs `work` and records the times. Frames beyond the capacity are made but not
    /// recorded.
    pub fn make(&self, due_ns: u64, start_ns: u64, work: impl FnOnce()) {
        let at = self.made.load(Relaxed) as usize;
        let cpu = thread::current_core() as u32;
        work();
        let Some(slot) = self.slots.get(at) else { return };
        slot.due_ns.store(due_ns, Relaxed);
        slot.start_ns.store(start_ns, Relaxed);
        slot.end_ns.store(clock::monotonic_ns(), Relaxed);
        slot.cpu.store(cpu, Relaxed);
        slot.tid.store(thread::current_id() as u32, Relaxed);
        self.made.store(at as u64 + 1, Release);
    }

    /// Returns the frames recorded from this index on.
    pub fn since(&self, first: usize) -> Vec<FrameTimes> {
        let made = self.made.load(Acquire) as usize;
        let slots = self.slots.get(first..made).unwrap_or_default();
        let frame = |slot: &FrameSlot| FrameTimes {
            due_ns: slot.due_ns.load(Relaxed),
            start_ns: slot.start_ns.load(Relaxed),
            end_ns: slot.end_ns.load(Relaxed),
            cpu: slot.cpu.load(Relaxed),
            tid: slot.tid.load(Relaxed) as i32,
        };
        slots.iter().map(frame).collect()
    }
}
