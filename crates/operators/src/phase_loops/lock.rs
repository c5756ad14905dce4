//! Whether a loop follows its carrier.

/// Averages below this count as 0, because numbers that are nearly 0 take long.
const SILENCE: f64 = 1e-60;

/// Says whether a loop is locked: the mean of what agrees with the reference, over the mean of all.
#[derive(Debug, Clone)]
pub(crate) struct LockDetector {
    /// Share of a new sample in the means.
    share: f64,
    /// Quality from which on the loop is locked, and below which it is not any more.
    thresholds: (f64, f64),
    agreeing: f64,
    all: f64,
    is_locked: bool,
}

impl LockDetector {
    /// Takes the means over this number of samples.
    pub fn new(samples: f64, thresholds: (f64, f64)) -> Self {
        let share = (1.0 / samples).clamp(0.0, 1.0);
        LockDetector { share, thresholds, agreeing: 0.0, all: 0.0, is_locked: false }
    }

    /// Takes a sample: how much agrees, from −`all` to `all`. Returns whether the loop is locked.
    pub fn push(&mut self, agreeing: f64, all: f64) -> bool {
        self.agreeing += (agreeing - self.agreeing) * self.share;
        self.all += (all - self.all) * self.share;
        if self.all < SILENCE {
            (self.agreeing, self.all) = (0.0, 0.0);
        }
        let (on, off) = self.thresholds;
        // Multiplied, because both can be 0.
        let threshold = if self.is_locked { off } else { on };
        self.is_locked = self.all > 0.0 && self.agreeing >= threshold * self.all;
        self.is_locked
    }

    pub fn is_locked(&self) -> bool {
        self.is_locked
    }
}
