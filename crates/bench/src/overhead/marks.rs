//! The points in a run between which the clock is read, seen from inside of operators.

use onbeat_os::{Counter, Usage, clock};
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// How often an operator is stepped: first to get warm, then to be measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    /// At least 1.
    pub warm_up: u64,
    /// At least 1.
    pub iterations: u64,
}

/// Counts an operator's steps down to the next point, which costs the step one subtraction and one branch.
#[derive(Debug)]
pub(super) struct Mark {
    left: u64,
    next: Point,
    length: Length,
    times: Arc<Times>,
    counts: Option<Arc<Counts>>,
}

#[derive(Debug, Clone, Copy)]
enum Point {
    First,
    Begin,
    End,
}

/// When one operator came to its points, in nanoseconds of CLOCK_MONOTONIC; 0 while it has not.
#[derive(Debug, Default)]
pub(super) struct Times {
    first: AtomicU64,
    begin: AtomicU64,
    end: AtomicU64,
}

/// What the kernel counted between the begin and the end.
#[derive(Debug)]
pub(super) struct Counts {
    /// Counts futex calls, where that is possible and wanted.
    futex: Option<Counter>,
    taken: Mutex<[Option<Taken>; 2]>,
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    usage: Usage,
    futex: Option<u64>,
}

/// The difference of two points.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub usage: Usage,
    pub futex: Option<u64>,
}

impl Mark {
    /// `counts` for one operator of a run only.
    pub fn new(length: Length, times: &Arc<Times>, counts: Option<&Arc<Counts>>) -> Self {
        Mark { left: 1, next: Point::First, length, times: Arc::clone(times), counts: counts.cloned() }
    }

    /// One step is made; whether it was the last.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        self.left -= 1;
        self.left == 0 && self.reached()
    }

    #[cold]
    fn reached(&mut self) -> bool {
        // Relaxed: whoever reads the times has joined this thread.
        loop {
            match self.next {
                Point::First => {
                    self.times.first.store(clock::monotonic_ns(), Ordering::Relaxed);
                    (self.next, self.left) = (Point::Begin, self.length.warm_up - 1);
                }
                Point::Begin => {
                    // The clock last here and first below: what counting costs is not in between.
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
    /// When it made its first step.
    pub fn first_ns(&self) -> u64 {
        self.first.load(Ordering::Relaxed)
    }

    /// When it was warm; 0 if it never was.
    pub fn begin_ns(&self) -> u64 {
        self.begin.load(Ordering::Relaxed)
    }

    /// When it had made all its steps; 0 if it never had.
    pub fn end_ns(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }
}

impl Counts {
    pub fn new(futex: Option<Counter>) -> Self {
        Counts { futex, taken: Mutex::default() }
    }

    fn take(&self, at: usize) {
        let taken = Usage::of_process().ok().map(|usage| Taken { usage, futex: self.read().ok().flatten() });
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)[at] = taken;
    }

    fn read(&self) -> io::Result<Option<u64>> {
        self.futex.as_ref().map(Counter::count).transpose()
    }

    /// What was counted; `None` if the kernel did not say.
    pub fn counted(&self) -> Option<Counted> {
        let [begin, end] = *self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (begin, end) = (begin?, end?);
        let futex = begin.futex.zip(end.futex).map(|(begin, end)| end.saturating_sub(begin));
        Some(Counted { usage: end.usage.since(&begin.usage), futex })
    }
}
