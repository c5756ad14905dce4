//! Durations over the time of a run, in bounded memory.

use serde::{Deserialize, Serialize};

/// Durations over time, in slots of equal length. When a run outlasts the last slot, neighbouring slots are
/// merged, and each one stands for twice the time. So any length fits, and no peak is lost.
///
/// - **Cost:** 16 KiB, allocated by [`new`](Self::new). Recording allocates nothing: it finds a slot by a
///   shift and changes it. Merging takes some hundred nanoseconds, once for each doubling of the run's
///   length.
#[derive(Debug, Clone)]
pub struct Course {
    slots: Box<[CourseSlot]>,
    /// Logarithm of a slot's length in nanoseconds, to base 2.
    shift: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct CourseSlot {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
}

/// A [`Course`] in the record: each list has one number per slot, from the start of the run on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CourseRecord {
    /// Length of a slot, in nanoseconds.
    pub slot_ns: u64,
    /// Number of durations in each slot; for an empty slot, the other lists have 0.
    pub count: Vec<u64>,
    /// Minimum, in nanoseconds.
    pub min_ns: Vec<u64>,
    /// Arithmetic mean, in nanoseconds.
    pub mean_ns: Vec<u64>,
    /// Maximum, in nanoseconds.
    pub max_ns: Vec<u64>,
}

impl Course {
    /// Maximum number of slots.
    pub const SLOTS: usize = 512;

    /// About a millisecond.
    const SHIFT: u32 = 20;

    /// Makes an empty course, and allocates all memory that it will ever need.
    #[must_use]
    pub fn new() -> Self {
        Course { slots: vec![CourseSlot::default(); Self::SLOTS].into(), shift: Self::SHIFT }
    }

    /// Records a duration at a time of the run, both in nanoseconds.
    #[inline]
    pub fn record(&mut self, time_ns: u64, value_ns: u64) {
        let mut place = time_ns >> self.shift;
        while place >= Self::SLOTS as u64 {
            self.fold();
            place = time_ns >> self.shift;
        }
        let one = CourseSlot { count: 1, min_ns: value_ns, max_ns: value_ns, sum_ns: value_ns };
        self.slots[place as usize].add(&one);
    }

    /// Adds all durations of `other`.
    pub fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.shift < other.shift {
            self.fold();
        }
        while other.shift < self.shift {
            other.fold();
        }
        self.slots.iter_mut().zip(&other.slots).for_each(|(slot, other)| slot.add(other));
    }

    /// Returns the slots up to the last one with a duration; `None` if it is empty.
    #[must_use]
    pub fn to_record(&self) -> Option<CourseRecord> {
        let used = self.slots.iter().rposition(|slot| slot.count > 0)? + 1;
        let list = |of: fn(&CourseSlot) -> u64| self.slots[..used].iter().map(of).collect();
        Some(CourseRecord {
            slot_ns: 1 << self.shift,
            count: list(|slot| slot.count),
            min_ns: list(|slot| slot.min_ns),
            mean_ns: list(|slot| slot.sum_ns.checked_div(slot.count).unwrap_or(0)),
            max_ns: list(|slot| slot.max_ns),
        })
    }

    #[cold]
    fn fold(&mut self) {
        for place in 0..Self::SLOTS {
            let from = 2 * place;
            let mut sum = self.slots.get(from).copied().unwrap_or_default();
            if let Some(other) = self.slots.get(from + 1) {
                sum.add(other);
            }
            self.slots[place] = sum;
        }
        self.shift += 1;
    }
}

impl CourseSlot {
    fn add(&mut self, other: &CourseSlot) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
}

impl Default for Course {
    fn default() -> Self {
        Self::new()
    }
}
