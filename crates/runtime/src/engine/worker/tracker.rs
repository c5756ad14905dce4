//! Latencies of messages from their due time, on paths and to deadlines.

use crate::base::bounded_list::BoundedList;
use crate::engine::control::recent::Recent;
use crate::engine::flight::{About, Late, SLOWEST};
use crate::engine::limits::InFlightBound;
use crate::graph::limits::OnMiss;
use crate::operator::message::Stamp;
use onbeat_trace::record::{Miss, MissKind};
use onbeat_trace::{Course, Histogram, Regularity};
use std::sync::Arc;

/// All paths and deadlines that end on one worker.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    pub paths: Vec<Path>,
    pub deadlines: Vec<Deadline>,
    misses: BoundedList<TrackedMiss>,
    /// Messages to explain or act on, from the last call of [`record`](Tracker::record).
    fresh: Vec<Late>,
    /// Whether `fresh` is filled.
    pub reports: bool,
}

/// A message that came too late, without names.
#[derive(Debug, Clone, Copy)]
struct TrackedMiss {
    time_ns: u64,
    kind: MissKind,
    /// Place of the path or the deadline in the list of its kind.
    place: usize,
    sequence: u64,
    value_ns: u64,
    limit_ns: u64,
}

/// A path that ends here, with its measurements.
#[derive(Debug)]
pub(crate) struct Path {
    /// Number in the plan.
    pub plan: usize,
    pub name: String,
    /// Number of the source.
    pub source: usize,
    /// Operator at the end.
    pub end: u32,
    /// Number of that operator in the plan.
    pub at: usize,
    pub limit_ns: Option<u64>,
    pub on_miss: OnMiss,
    pub bound: Option<Arc<InFlightBound>>,
    pub statistics: PathStatistics,
    pub misses: u64,
    /// Latencies of the slowest messages, in rising order.
    pub slowest_ns: [u64; SLOWEST],
}

/// Measurements of a path, in memory of a fixed size.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathStatistics {
    pub latency: Histogram,
    pub course: Course,
    pub regularity: Regularity,
    pub recent: Recent,
}

impl PathStatistics {
    fn record(&mut self, time_ns: u64, value_ns: u64, stamp: Stamp, now_ns: u64) {
        self.latency.record(value_ns);
        self.course.record(time_ns, value_ns);
        self.recent.record(value_ns);
        // A message made of several has no number of its own.
        if !stamp.is_joined() {
            self.regularity.record(time_ns, stamp.sequence(), stamp.due_ns, now_ns);
        }
    }

    pub fn merge(&mut self, other: &PathStatistics) {
        self.latency.merge(&other.latency);
        self.course.merge(&other.course);
        self.regularity.merge(&other.regularity);
    }
}

/// A deadline of an operator.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// Number of the operator in the plan.
    pub plan: usize,
    pub name: String,
    pub operator: u32,
    pub limit_ns: u64,
    pub on_miss: OnMiss,
    pub late: u64,
}

impl Path {
    /// Notes a latency if it is one of the longest so far, and returns whether it is.
    fn is_slow(&mut self, value_ns: u64) -> bool {
        if value_ns <= self.slowest_ns[0] {
            return false;
        }
        self.slowest_ns[0] = value_ns;
        self.slowest_ns.sort_unstable();
        true
    }
}

impl Tracker {
    /// Whether no path or deadline ends here.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.deadlines.is_empty()
    }

    /// Takes the memory that notes will need.
    pub fn reserve(&mut self) {
        self.misses.reserve();
        if self.reports {
            self.fresh.reserve_exact(2 * self.paths.len() + self.deadlines.len());
        }
    }

    /// Takes one message to explain or act on.
    pub fn take_fresh(&mut self) -> Option<Late> {
        self.fresh.pop()
    }

    /// Name of the path or operator whose limit a message missed.
    pub fn name(&self, late: &Late) -> &str {
        let path = || self.paths.iter().find(|path| path.plan == late.of).map(|path| &*path.name);
        let deadline = || self.deadlines.iter().find(|it| it.plan == late.of).map(|it| &*it.name);
        let name = if late.about == About::Miss(MissKind::Deadline) { deadline() } else { path() };
        name.unwrap_or("")
    }

    /// Records that `operator` has finished a message at `now_ns`, for paths and deadlines that end there.
    pub fn record(&mut self, operator: u32, stamp: Stamp, now_ns: u64, start_ns: u64) {
        let value_ns = now_ns.saturating_sub(stamp.due_ns);
        let time_ns = now_ns.saturating_sub(start_ns);
        let Tracker { paths, deadlines, misses, fresh, reports } = self;
        let sequence = stamp.sequence();
        let message = Late {
            about: About::Slow,
            of: 0,
            end: 0,
            source: stamp.source() as u32,
            sequence,
            due_ns: stamp.due_ns,
            end_ns: now_ns,
            limit_ns: 0,
            on_miss: OnMiss::Record,
        };
        let mut report = |late: Late| {
            if *reports {
                fresh.push(late);
            }
        };
        // A message made of several counts for the paths from all of their sources, with the earliest due
        // time.
        let counts =
            |path: &Path| path.end == operator && (path.source == stamp.source() || stamp.is_joined());
        for (place, path) in paths.iter_mut().enumerate().filter(|(_, path)| counts(path)) {
            path.statistics.record(time_ns, value_ns, stamp, now_ns);
            if let Some(bound) = path.bound.as_ref().filter(|_| path.source == stamp.source()) {
                bound.arrived(sequence, stamp.due_ns, time_ns);
            }
            let late = Late { of: path.plan, end: path.at, on_miss: path.on_miss, ..message };
            if path.is_slow(value_ns) {
                report(late);
            }
            if let Some(limit_ns) = path.limit_ns.filter(|&limit_ns| value_ns > limit_ns) {
                path.misses += 1;
                let kind = MissKind::Path;
                misses.note(|| TrackedMiss { time_ns, kind, place, sequence, value_ns, limit_ns });
                report(Late { about: About::Miss(kind), limit_ns, ..late });
            }
        }
        for (place, deadline) in deadlines.iter_mut().enumerate() {
            let Deadline { plan, limit_ns, on_miss, .. } = *deadline;
            if deadline.operator == operator && value_ns > limit_ns {
                deadline.late += 1;
                let kind = MissKind::Deadline;
                misses.note(|| TrackedMiss { time_ns, kind, place, sequence, value_ns, limit_ns });
                report(Late { about: About::Miss(kind), of: plan, end: plan, limit_ns, on_miss, ..message });
            }
        }
    }

    /// Misses, for the record.
    pub fn misses(&self) -> BoundedList<Miss> {
        self.misses.map(|&TrackedMiss { time_ns, kind, place, sequence, value_ns, limit_ns }| Miss {
            time_ns,
            kind,
            name: match kind {
                MissKind::Path => self.paths[place].name.clone(),
                MissKind::Deadline => self.deadlines[place].name.clone(),
            },
            sequence,
            value_ns,
            limit_ns,
            late_ns: value_ns - limit_ns,
            verdict: None,
        })
    }
}
