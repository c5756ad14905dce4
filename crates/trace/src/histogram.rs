//! Histogram of durations, in bounded memory.

use serde::{Deserialize, Serialize};

/// Durations in nanoseconds, counted in buckets whose width grows with the value (High Dynamic Range
/// histogram).
///
/// - **Error bound:** a quantile reads at most 1 % (1/128) too high and never too low. Up to 255 ns it is
///   exact. Count, minimum, maximum and mean are always exact: they are kept apart from the buckets.
/// - **Range:** 0 to [`MAX_NS`](Self::MAX_NS), one hour. A longer duration is counted as one hour; only the
///   maximum and the mean have its true value.
/// - **Cost:** about 36 KiB, allocated by [`new`](Self::new). Recording allocates nothing: it finds one
///   bucket by shifts and adds to it.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    count: u64,
    /// `u64::MAX` while empty.
    min_ns: u64,
    max_ns: u64,
    /// Room for 2^64 values of 2^64 ns.
    sum_ns: u128,
}

/// Durations in a few numbers, in nanoseconds. All zero, including the count, if nothing was recorded.
///
/// The quantiles are within the [error bound](Histogram) of the histogram and never outside
/// `min_ns..=max_ns`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of durations.
    pub count: u64,
    /// Minimum, exact.
    pub min_ns: u64,
    /// Arithmetic mean, exact to 0.001 ns.
    pub mean_ns: f64,
    /// Median: half of the durations are at most this.
    pub median_ns: u64,
    /// 90 % are at most this.
    pub p90_ns: u64,
    /// 99 % are at most this.
    pub p99_ns: u64,
    /// 99.9 % are at most this.
    pub p99_9_ns: u64,
    /// Maximum, exact.
    pub max_ns: u64,
}

/// Durations by length, in the record: the number of durations up to each bound, and above the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buckets {
    /// Bounds in nanoseconds, ascending.
    pub up_to_ns: Vec<u64>,
    /// Number of durations for each bound.
    pub count: Vec<u64>,
}

impl Buckets {
    /// Returns bound and count of each bucket.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + ExactSizeIterator + '_ {
        self.up_to_ns.iter().copied().zip(self.count.iter().copied())
    }

    /// Number of durations in all buckets.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.count.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }
}

impl Histogram {
    /// One hour in nanoseconds: longer durations share the last bucket.
    pub const MAX_NS: u64 = 3_600_000_000_000;

    /// Two significant digits cost 36 KiB; three would cost 264 KiB per operator, more than many L2 caches
    /// have.
    const SIGNIFICANT_DIGITS: u8 = 2;

    /// Makes an empty histogram, and allocates all memory that it will ever need.
    #[must_use]
    pub fn new() -> Self {
        let buckets = hdrhistogram::Histogram::new_with_bounds(1, Self::MAX_NS, Self::SIGNIFICANT_DIGITS)
            .expect("constant bounds that the crate accepts");
        Self { buckets, count: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }

    /// Adds one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Adds the same duration `count` times.
    #[inline]
    pub fn record_n(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.buckets.saturating_record_n(ns.min(Self::MAX_NS), count);
        self.count = self.count.saturating_add(count);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(u128::from(ns) * u128::from(count));
    }

    /// Adds all durations of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.buckets.add(&other.buckets).expect("all histograms have the same range");
        self.count = self.count.saturating_add(other.count);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Removes all durations, and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.reset();
        (self.count, self.min_ns, self.max_ns, self.sum_ns) = (0, u64::MAX, 0, 0);
    }

    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the duration in nanoseconds that a fraction `quantile` of all durations does not exceed; 0
    /// while empty.
    ///
    /// `quantile` is 0 to 1, 0.99 for the 99th percentile; a value outside is clamped.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        // Rank in ascending order, from 1. The product may be a few units in the last place above a whole
        // number (0.069 * 10_000), which would give the next rank.
        let count = self.count as f64;
        let rank = (quantile.clamp(0.0, 1.0) * count * (1.0 - 4.0 * f64::EPSILON)).ceil().max(1.0);
        // Half a rank lower, so that the crate's own rounding finds this rank.
        let ns = self.buckets.value_at_quantile((rank - 0.5) / count);
        ns.clamp(self.min_ns, self.max_ns)
    }

    /// Returns the buckets that are not empty, ascending: the longest duration of each, in nanoseconds, and
    /// its count. Within the [error bound](Self).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let recorded = self.buckets.iter_recorded();
        recorded.map(|bucket| {
            let longest_ns = bucket.value_iterated_to();
            (longest_ns.clamp(self.min_ns, self.max_ns), bucket.count_since_last_iteration())
        })
    }

    /// Maximum number of buckets of one histogram in a record.
    pub const RECORDED: usize = 240;

    /// Returns the buckets that are not empty, for the record. If there are more than
    /// [`RECORDED`](Self::RECORDED), neighbours are merged: each is then some per cent wide.
    #[must_use]
    pub fn to_record(&self) -> Buckets {
        let all: Vec<(u64, u64)> = self.buckets().collect();
        let together = all.len().div_ceil(Self::RECORDED).max(1);
        let of = |group: &[(u64, u64)]| {
            (group[group.len() - 1].0, group.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count)))
        };
        let (up_to_ns, count) = all.chunks(together).map(of).unzip();
        Buckets { up_to_ns, count }
    }

    /// Returns the durations in a few numbers; all zero while empty.
    ///
    /// Walks the buckets four times, which takes some microseconds: for the end of a run or a screen, not for
    /// the hot loop.
    #[must_use]
    pub fn summary(&self) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        Summary {
            count: self.count,
            min_ns: self.min_ns,
            mean_ns: (self.sum_ns as f64 / self.count as f64 * 1e3).round() / 1e3,
            median_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p99_ns: self.quantile_ns(0.99),
            p99_9_ns: self.quantile_ns(0.999),
            max_ns: self.max_ns,
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}
