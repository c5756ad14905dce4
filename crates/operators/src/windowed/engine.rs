//! Statistics of windows that may overlap.

use super::lengths::Lengths;
use super::statistics::WindowStatistic;
use crate::found::{Finder, Found};
use crate::mode_s::MagnitudeSample;
use onbeat_runtime::Error;
use std::marker::PhantomData;

/// Most parts of a window.
const MOST_PARTS: u64 = 1 << 20;

/// Divides the stream into parts that no window border cuts, and puts windows together from these parts. No
/// sample is ever subtracted, so there is no error that grows with the length of the stream.
///
/// The parts of the current window form a queue of two stacks: each sum of `front` is that of one part and
/// all later ones of `front`, so the oldest part can leave without a new summation.
pub(super) struct WindowEngine<T, S> {
    lengths: Lengths,
    /// Samples of a part.
    part: u64,
    front: Vec<WindowPart<S>>,
    back: Vec<WindowPart<S>>,
    back_sum: WindowPart<S>,
    current: WindowPart<S>,
    /// Samples of the current part so far.
    filled: u64,
    progress: WindowProgress,
    samples: PhantomData<fn() -> T>,
}

/// Figures of some samples.
#[derive(Debug, Clone, Default)]
struct WindowPart<S> {
    statistic: S,
    /// Whether a sample was not finite.
    is_spoiled: bool,
}

impl<S: WindowStatistic> WindowPart<S> {
    fn append(&mut self, later: &Self) {
        self.statistic.append(&later.statistic);
        self.is_spoiled |= later.is_spoiled;
    }

    fn value(&self) -> f64 {
        if self.is_spoiled { f64::NAN } else { self.statistic.value() }
    }
}

/// Counts of the stream so far.
#[derive(Debug, Default)]
pub(super) struct WindowProgress {
    /// Number of samples taken.
    pub taken: u64,
    /// Samples to leave out before the next window.
    pub skip: u64,
    /// Samples that are in no window yet.
    pub left: u64,
    pub not_finite: u64,
    /// Windows whose value is NaN.
    pub spoiled: u64,
}

impl WindowProgress {
    /// Leaves out samples between two windows, and returns their number.
    pub fn skip(&mut self, offered: usize) -> usize {
        let count = self.skip.min(offered as u64);
        self.skip -= count;
        self.taken += count;
        count as usize
    }

    /// Ends a window.
    pub fn found(&mut self, value: f64) -> Found {
        self.left = 0;
        self.spoiled += u64::from(value.is_nan());
        Found { value, at: self.taken }
    }

    pub fn note(&self) -> Option<String> {
        let mut texts = Vec::new();
        if self.not_finite > 0 {
            let WindowProgress { not_finite, spoiled, .. } = self;
            texts.push(format!(
                "{not_finite} samples were not finite: the values of {spoiled} windows are NaN"
            ));
        }
        if self.left > 0 {
            texts.push(format!("the last {} samples do not fill a window, and were left out", self.left));
        }
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl<T, S: WindowStatistic> WindowEngine<T, S> {
    /// An engine for windows of these lengths.
    pub fn new(lengths: Lengths) -> Result<Self, Error> {
        let Lengths { window, hop } = lengths;
        let part = if hop < window { greatest_common_divisor(window, hop) } else { window };
        let parts = window / part;
        if parts > MOST_PARTS {
            return Err(Error::new(format!(
                "a window of {window} samples every {hop} samples has {parts} parts, more than {MOST_PARTS}: choose a \
                 hop that divides the window"
            )));
        }
        let parts = if parts > 1 { parts as usize } else { 0 };
        Ok(WindowEngine {
            lengths,
            part,
            front: Vec::with_capacity(parts),
            back: Vec::with_capacity(parts),
            back_sum: WindowPart::default(),
            current: WindowPart::default(),
            filled: 0,
            progress: WindowProgress::default(),
            samples: PhantomData,
        })
    }

    /// Ends a part, and with it perhaps a window.
    fn end_part(&mut self) -> Option<Found> {
        self.filled = 0;
        let part = std::mem::take(&mut self.current);
        if self.lengths.hop >= self.lengths.window {
            self.progress.skip = self.lengths.hop - self.lengths.window;
            return Some(self.progress.found(part.value()));
        }
        self.back_sum.append(&part);
        self.back.push(part);
        if ((self.front.len() + self.back.len()) as u64) < self.lengths.window / self.part {
            return None;
        }
        let value = match self.front.last() {
            Some(front) => {
                let mut all = front.clone();
                all.append(&self.back_sum);
                all.value()
            }
            None => self.back_sum.value(),
        };
        for _ in 0..self.lengths.hop / self.part {
            self.drop_oldest();
        }
        Some(self.progress.found(value))
    }

    fn drop_oldest(&mut self) {
        if self.front.is_empty() {
            let mut sum = WindowPart::default();
            for mut part in self.back.drain(..).rev() {
                part.append(&sum);
                sum = part.clone();
                self.front.push(part);
            }
            self.back_sum = WindowPart::default();
        }
        self.front.pop();
    }
}

impl<T: MagnitudeSample, S: WindowStatistic> Finder for WindowEngine<T, S> {
    type Sample = T;
    type Value = f64;

    fn take(&mut self, samples: &[T]) -> (usize, Option<Found>) {
        let skipped = self.progress.skip(samples.len());
        let rest = &samples[skipped..];
        let count = (self.part - self.filled).min(rest.len() as u64);
        for x in &rest[..count as usize] {
            let x = f64::from(x.magnitude());
            if x.is_finite() {
                self.current.statistic.add(x);
            } else {
                self.current.is_spoiled = true;
                self.progress.not_finite += 1;
            }
        }
        self.filled += count;
        self.progress.taken += count;
        self.progress.left += count;
        let found = if self.filled == self.part { self.end_part() } else { None };
        (skipped + count as usize, found)
    }

    fn note(&self) -> Option<String> {
        self.progress.note()
    }
}
