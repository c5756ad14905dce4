//! A watch that stops a bench.

use onbeat_bench::BenchWatch;
use std::cell::Cell;

/// Stops the bench after this many polls.
pub(crate) struct StopsAfter {
    looks: Cell<usize>,
}

impl StopsAfter {
    pub(crate) fn looks(looks: usize) -> Self {
        StopsAfter { looks: Cell::new(looks) }
    }
}

impl BenchWatch for StopsAfter {
    fn at(&mut self, done: usize, all: usize, next: &str) {
        assert!(done <= all && !next.is_empty(), "{done} of {all}: {next}");
    }

    fn is_stopped(&self) -> bool {
        let left = self.looks.get();
        self.looks.set(left.saturating_sub(1));
        left == 0
    }
}
