//! Percentiles of windows.

use super::engine::WindowProgress;
use super::lengths::Lengths;
use crate::check;
use crate::found::{Finder, Found};
use onbeat_runtime::Error;

/// Most samples of a window: it is kept twice.
const MOST: f64 = 16_777_216.0;

/// Keeps the samples of the window.
pub(super) struct PercentileEngine {
    lengths: Lengths,
    /// From 0 to 100.
    pub percent: f64,
    /// The last samples, each at its number modulo the length.
    window: Vec<f32>,
    next: usize,
    filled: u64,
    scratch: Vec<f32>,
    progress: WindowProgress,
}

impl PercentileEngine {
    pub fn new(lengths: Lengths, percent: f64) -> Result<Self, Error> {
        check::within("window", lengths.window as f64, 1.0, MOST, "this is its number of samples")?;
        let length = lengths.window as usize;
        Ok(PercentileEngine {
            lengths,
            percent,
            window: vec![0.0; length],
            next: 0,
            filled: 0,
            scratch: vec![0.0; length],
            progress: WindowProgress::default(),
        })
    }

    fn value(&mut self) -> f64 {
        if self.window.iter().any(|x| !x.is_finite()) {
            return f64::NAN;
        }
        self.scratch.copy_from_slice(&self.window);
        percentile(&mut self.scratch, self.percent)
    }
}

/// Percentile of some samples, which end in another order. Between two samples it lies on a straight line,
/// which is computed like `numpy.percentile` does with `method="linear"`.
fn percentile(samples: &mut [f32], percent: f64) -> f64 {
    let place = (samples.len() - 1) as f64 * (percent / 100.0);
    let below = (place.floor() as usize).min(samples.len() - 1);
    let part = place - below as f64;
    let (_, low, higher) = samples.select_nth_unstable_by(below, f32::total_cmp);
    let low = f64::from(*low);
    let Some(high) = higher.iter().copied().reduce(f32::min).map(f64::from) else { return low };
    let apart = high - low;
    if part < 0.5 { low + apart * part } else { high - apart * (1.0 - part) }
}

impl Finder for PercentileEngine {
    type Sample = f32;
    type Value = f64;

    fn take(&mut self, samples: &[f32]) -> (usize, Option<Found>) {
        let skipped = self.progress.skip(samples.len());
        let rest = &samples[skipped..];
        let missing = (self.lengths.window - self.filled) as usize;
        let count = missing.min(self.window.len() - self.next).min(rest.len());
        let taken = &rest[..count];
        self.window[self.next..self.next + count].copy_from_slice(taken);
        self.progress.not_finite += taken.iter().filter(|x| !x.is_finite()).count() as u64;
        self.next = (self.next + count) % self.window.len();
        self.filled += count as u64;
        self.progress.taken += count as u64;
        self.progress.left += count as u64;
        if self.filled < self.lengths.window {
            return (skipped + count, None);
        }
        let Lengths { window, hop } = self.lengths;
        (self.filled, self.progress.skip) = (window.saturating_sub(hop), hop.saturating_sub(window));
        let value = self.value();
        (skipped + count, Some(self.progress.found(value)))
    }

    fn note(&self) -> Option<String> {
        self.progress.note()
    }
}
