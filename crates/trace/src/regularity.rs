//! Regularity of a path's output.

use serde::{Deserialize, Serialize};

use crate::course::{Course, CourseRecord};
use crate::histogram::{Buckets, Histogram};

/// Periods of a path's output, compared with the period of its source. A period is the time from the end of a
/// message to the end of the next one. The source's period is the shortest time between two due times so far.
/// Only consecutive messages count: a gap between them gives no period.
#[derive(Debug, Clone, Default)]
pub struct Regularity {
    early: Histogram,
    late: Histogram,
    course: Course,
    /// 0 while unknown.
    period_ns: u64,
    last: Option<Last>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    sequence: u64,
    due_ns: u64,
    end_ns: u64,
}

/// A [`Regularity`] in the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegularityRecord {
    /// Shortest time between two due times, in nanoseconds.
    pub period_ns: u64,
    /// How much shorter periods were; equal ones are in `late`.
    pub early: Buckets,
    /// How much longer periods were.
    pub late: Buckets,
    /// Periods over time.
    pub course: Option<CourseRecord>,
}

impl Regularity {
    /// Records the end of a message at `time_ns` of the run. `sequence` is its number; `due_ns` is its due
    /// time, on the same clock as `end_ns`.
    #[inline]
    pub fn record(&mut self, time_ns: u64, sequence: u64, due_ns: u64, end_ns: u64) {
        let last = self.last.replace(Last { sequence, due_ns, end_ns });
        let Some(last) = last.filter(|last| last.sequence + 1 == sequence && due_ns > last.due_ns) else {
            return;
        };
        let between_ns = due_ns - last.due_ns;
        if self.period_ns == 0 || between_ns < self.period_ns {
            self.period_ns = between_ns;
        }
        let took_ns = end_ns.saturating_sub(last.end_ns);
        if took_ns < self.period_ns {
            self.early.record(self.period_ns - took_ns);
        } else {
            self.late.record(took_ns - self.period_ns);
        }
        self.course.record(time_ns, took_ns);
    }

    /// Adds all periods of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.early.merge(&other.early);
        self.late.merge(&other.late);
        self.course.merge(&other.course);
        self.period_ns = match (self.period_ns, other.period_ns) {
            (0, one) | (one, 0) => one,
            (one, two) => one.min(two),
        };
    }

    /// Returns the record; `None` if no two consecutive messages were recorded.
    #[must_use]
    pub fn to_record(&self) -> Option<RegularityRecord> {
        let count = self.early.count() + self.late.count();
        (count > 0).then(|| RegularityRecord {
            period_ns: self.period_ns,
            early: self.early.to_record(),
            late: self.late.to_record(),
            course: self.course.to_record(),
        })
    }
}
