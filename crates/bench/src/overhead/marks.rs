//! Clock readings at given points of a run, taken inside the operators.

use onbeat_os::{EventCounter, Usage, clock};
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of steps of an operator: a warm-up, then the measured part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    /// At least 1.
    pub warm_up: u64,
    /// At least 1.
    pub iterations: u64,
}

/// Counts an operator's steps down to the next point; this costs the step one subtraction and one branch.
#[derive(Debug)]
pub(super) struct StepCounter {
    left: u64,
    next: Point,
    length: Length,
    times: Arc<Times>,
    counts: Option<Arc<UsageCounts>>,
}

#[derive(Debug, Clone, Copy)]
enum Point {
    First,
    Begin,
    End,
}

/// Times at which an operator reached its points, in nanoseconds of CLOCK_MONOTONIC; 0 if not reached.
#[derive(Debug, Default)]
pub(super) struct Times {
    first: AtomicU64,
    begin: AtomicU64,
    end: AtomicU64,
}

/// Kernel counters at the beginning and the end of the measured part.
#[derive(Debug)]
pub(super) struct UsageCounts {
    /// Counter of futex calls, if available and wanted.
    futex: Option<EventCounter>,
    taken: Mutex<[Option<UsageSample>; 2]>,
}

#[derive(Debug, Clone, Copy)]
struct UsageSample {
    usage: Usage,
    futex: Option<u64>,
}

/// The difference between two points.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UsageDelta {
    pub usage: Usage,
    pub futex: Option<u64>,
}

impl StepCounter {
    /// Creates the marks of one operator. `counts` must be given to one operator of a run only.
    pub fn new(length: Length, times: &Arc<Times>, counts: Option<&Arc<UsageCounts>>) -> Self {
        StepCounter { left: 1, next: Point::First, length, times: Arc::clone(times), counts: counts.cloned() }
    }

    /// Records one step. Returns whether it was the last.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        self.left -= 1;
        self.left == 0 && self.reached()
    }

    #[cold]
    fn reached(&mut self) -> bool {
        // Relaxed: the reader of the times has joined this thread.
        loop {
            match self.next {
                Point::First => {
                    self.times.first.store(clock::monotonic_ns(), Ordering::Relaxed);
                    (self.next, self.left) = (Point::Begin, self.length.warm_up - 1);
                }
                Point::Begin => {
                    // The clock is read last here and first below, so that the counting is not included.
                    self.count(0);
                    self.times.begin.store(clock::monotonic_ns(), Ordering::Relaxed);
                    (self.next, self.left) = (Point::End, self.length.iterations);
                }
                Point::End => {
                    self.times.end.store(clock::monotonic_ns(), Ordering::Relaxed);
                    self.count(1);
                    return true;
                }
            }
            if self.left > 0 {
                return false;
            }
        }
    }

    fn count(&self, at: usize) {
        if let Some(counts) = &self.counts {
            counts.take(at);
        }
    }
}

impl Times {
    /// Time of the first step.
    pub fn first_ns(&self) -> u64 {
        self.first.load(Ordering::Relaxed)
    }

    /// Time of the end of the warm-up; 0 if not reached.
    pub fn begin_ns(&self) -> u64 {
        self.begin.load(Ordering::Relaxed)
    }

    /// Time of the last step; 0 if not reached.
    pub fn end_ns(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }
}

impl UsageCounts {
    pub fn new(futex: Option<EventCounter>) -> Self {
        UsageCounts { futex, taken: Mutex::default() }
    }

    fn take(&self, at: usize) {
        let taken =
            Usage::of_process().ok().map(|usage| UsageSample { usage, futex: self.read().ok().flatten() });
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)[at] = taken;
    }

    fn read(&self) -> io::Result<Option<u64>> {
        self.futex.as_ref().map(EventCounter::count).transpose()
    }

    /// Counts of the kernel; `None` if it does not provide them.
    pub fn counted(&self) -> Option<UsageDelta> {
        let [begin, end] = *self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (begin, end) = (begin?, end?);
        let futex = begin.futex.zip(end.futex).map(|(begin, end)| end.saturating_sub(begin));
        Some(UsageDelta { usage: end.usage.since(&begin.usage), futex })
    }
}
