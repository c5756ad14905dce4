//! Peaks as finds, and their rate.

use super::maxima::Maxima;
use super::spacing::Spacing;
use crate::found::{Finder, Found};

/// Finds peaks of a height, at a distance.
pub(super) struct PeakFinder {
    maxima: Maxima,
    /// Lowest height.
    pub height: f64,
    /// Least distance in samples; up to 1, all have it.
    distance: u64,
    spacing: Spacing,
    /// Number of samples after which peaks are decided next.
    next: u64,
    is_finished: bool,
}

impl PeakFinder {
    pub fn new(height: Option<f64>, distance: u64) -> Self {
        PeakFinder {
            maxima: Maxima::default(),
            height: height.unwrap_or(f64::NEG_INFINITY),
            distance,
            spacing: Spacing::new(distance),
            next: distance,
            is_finished: false,
        }
    }

    /// Position before which all peaks were found.
    fn found_before(&self) -> u64 {
        let known = if self.is_finished { self.maxima.taken } else { self.maxima.known() };
        self.spacing.first_open().unwrap_or(known)
    }

    fn notes(&self) -> Vec<String> {
        let mut texts = Vec::new();
        if self.maxima.nan > 0 {
            let nan = self.maxima.nan;
            texts.push(format!("{nan} samples were not a number: none of them is a peak or next to one"));
        }
        if self.spacing.forced > 0 {
            texts.push(
                "too many peaks were within the distance of higher ones: some were decided early".into(),
            );
        }
        texts
    }
}

impl Finder for PeakFinder {
    type Sample = f32;
    type Value = f64;

    fn take(&mut self, samples: &[f32]) -> (usize, Option<Found>) {
        let to_found = |peak: super::maxima::Maximum| Found { value: peak.height.into(), at: peak.at };
        if let Some(peak) = self.spacing.pop() {
            return (0, Some(to_found(peak)));
        }
        for (at, &x) in samples.iter().enumerate() {
            let peak = self.maxima.take(x).filter(|peak| f64::from(peak.height) >= self.height);
            if self.distance <= 1 {
                if peak.is_some() {
                    return (at + 1, peak.map(to_found));
                }
                continue;
            }
            if let Some(peak) = peak {
                self.spacing.add(peak);
            }
            if self.maxima.taken == self.next {
                self.next += self.distance;
                self.spacing.decide(Some(self.maxima.known()));
                if let Some(peak) = self.spacing.pop() {
                    return (at + 1, Some(to_found(peak)));
                }
            }
        }
        (samples.len(), None)
    }

    fn finish(&mut self) {
        self.maxima.finish();
        self.spacing.decide(None);
        self.is_finished = true;
    }

    fn note(&self) -> Option<String> {
        let texts = self.notes();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

/// Finds the number of peaks per minute.
pub(super) struct RateFinder {
    peaks: PeakFinder,
    /// Samples of a count.
    every: u64,
    /// Peaks per minute for one peak.
    unit: f64,
    end: u64,
    count: u64,
    /// A peak that is not counted yet.
    held: Option<u64>,
}

impl RateFinder {
    pub fn new(peaks: PeakFinder, every: u64, rate_hz: f64) -> Self {
        RateFinder { peaks, every, unit: 60.0 * rate_hz / every as f64, end: every, count: 0, held: None }
    }

    /// The finder of the peaks that are counted.
    pub fn peaks(&mut self) -> &mut PeakFinder {
        &mut self.peaks
    }

    fn end(&mut self) -> Found {
        let found = Found { value: std::mem::take(&mut self.count) as f64 * self.unit, at: self.end };
        self.end += self.every;
        found
    }
}

impl Finder for RateFinder {
    type Sample = f32;
    type Value = f64;

    fn take(&mut self, samples: &[f32]) -> (usize, Option<Found>) {
        let mut used = 0;
        loop {
            match self.held {
                Some(at) if at < self.end => {
                    self.count += 1;
                    self.held = None;
                }
                Some(_) => return (used, Some(self.end())),
                None => {
                    let (count, found) = self.peaks.take(&samples[used..]);
                    used += count;
                    self.held = found.map(|found| found.at);
                    if found.is_none() && self.peaks.found_before() >= self.end {
                        return (used, Some(self.end()));
                    }
                    if found.is_none() && used == samples.len() {
                        return (used, None);
                    }
                }
            }
        }
    }

    fn finish(&mut self) {
        self.peaks.finish();
    }

    fn note(&self) -> Option<String> {
        let mut texts = self.peaks.notes();
        let left = self.peaks.maxima.taken.saturating_sub(self.end - self.every);
        if left > 0 {
            texts.push(format!("the last {left} samples do not fill `every`: their peaks were left out"));
        }
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}
