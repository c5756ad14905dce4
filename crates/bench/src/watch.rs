//! Between a bench and whoever waits for it.

/// Is told how far a bench is, and says whether it is to stop.
pub trait Watch {
    /// `done` of `all` measurements are made, and this one comes next. Never called while something is measured.
    fn at(&mut self, done: usize, all: usize, next: &str);

    /// Whether to stop with what there is.
    fn is_stopped(&self) -> bool;
}

/// Nobody waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn at(&mut self, _: usize, _: usize, _: &str) {}

    fn is_stopped(&self) -> bool {
        false
    }
}
