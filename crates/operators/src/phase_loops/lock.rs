//! Whether a loop follows its carrier.

/// Says whether a loop is locked: the sum of what agrees with the reference, over the sum of all, in windows
/// one after another. The first window is left out.
#[derive(Debug, Clone)]
pub(crate) struct LockDetector {
    /// Samples of a window, and those of this one so far.
    window: u64,
    filled: u64,
    /// Quality from which on the loop is locked, and below which it is not any more.
    thresholds: (f64, f64),
    agreeing: f64,
    all: f64,
    is_first: bool,
    is_locked: bool,
}

impl LockDetector {
    /// Takes windows of this number of samples.
    pub fn new(window: f64, thresholds: (f64, f64)) -> Self {
        LockDetector {
            window: (window.ceil() as u64).max(1),
            filled: 0,
            thresholds,
            agreeing: 0.0,
            all: 0.0,
            is_first: true,
            is_locked: false,
        }
    }

    /// Takes a sample: how much agrees, from −`all` to `all`. Returns whether the loop is locked.
    pub fn push(&mut self, agreeing: f64, all: f64) -> bool {
        self.agreeing += agreeing;
        self.all += all;
        self.filled += 1;
        if self.filled == self.window {
            let (on, off) = self.thresholds;
            let threshold = if self.is_locked { off } else { on };
            // Multiplied, because both can be 0.
            let is_good = self.all > 0.0 && self.agreeing >= threshold * self.all;
            self.is_locked = is_good && !std::mem::take(&mut self.is_first);
            (self.filled, self.agreeing, self.all) = (0, 0.0, 0.0);
        }
        self.is_locked
    }

    pub fn is_locked(&self) -> bool {
        self.is_locked
    }
}
