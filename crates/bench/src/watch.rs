//! Progress reports and stop requests.

/// Receives the progress of a bench, and tells whether to stop it.
pub trait BenchWatch {
    /// `done` of `all` measurements are complete, and `next` follows. Never called during a measurement.
    fn at(&mut self, done: usize, all: usize, next: &str);

    /// Whether to stop and report the results so far.
    fn is_stopped(&self) -> bool;
}

/// No progress reports, and no stop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl BenchWatch for Unwatched {
    fn at(&mut self, _: usize, _: usize, _: &str) {}

    fn is_stopped(&self) -> bool {
        false
    }
}
