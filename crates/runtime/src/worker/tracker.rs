//! How long messages took from their due time, on paths and to deadlines.

use crate::message::Stamp;
use onbeat_trace::Histogram;
use onbeat_trace::record::{Miss, MissKind};

/// Misses that are kept one by one; later ones are only counted.
const MISSES_KEPT: usize = 1000;

/// All paths and deadlines that one worker watches.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    pub paths: Vec<Path>,
    pub deadlines: Vec<Deadline>,
    pub misses: Vec<Miss>,
    pub misses_total: u64,
}

#[derive(Debug)]
pub(crate) struct Path {
    /// Its number in the plan.
    pub plan: usize,
    pub name: String,
    pub source: usize,
    pub end: u32,
    pub limit_ns: Option<u64>,
    pub latency: Histogram,
    pub misses: u64,
}

#[derive(Debug)]
pub(crate) struct Deadline {
    pub name: String,
    pub operator: u32,
    pub limit_ns: u64,
    pub late: u64,
}

impl Tracker {
    /// Whether nothing ends here that is measured.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.deadlines.is_empty()
    }

    pub fn reserve(&mut self) {
        self.misses.reserve_exact(MISSES_KEPT);
    }

    /// Notes that `operator` has finished a message at `now_ns`.
    pub fn finished(&mut self, operator: u32, stamp: Stamp, now_ns: u64, start_ns: u64) {
        let value_ns = now_ns.saturating_sub(stamp.due_ns);
        let time_ns = now_ns.saturating_sub(start_ns);
        let Tracker { paths, deadlines, misses, misses_total } = self;
        let mut miss = |kind, name: &str, limit_ns| {
            *misses_total += 1;
            if misses.len() < MISSES_KEPT {
                misses.push(Miss {
                    time_ns,
                    kind,
                    name: name.to_string(),
                    sequence: stamp.sequence(),
                    value_ns,
                    limit_ns,
                    late_ns: value_ns - limit_ns,
                });
            }
        };
        // A message that was made of several counts for the paths from all of their sources, by the earliest due time.
        let counts =
            |path: &&mut Path| path.end == operator && (path.source == stamp.source() || stamp.is_joined());
        for path in paths.iter_mut().filter(counts) {
            path.latency.record(value_ns);
            if let Some(limit_ns) = path.limit_ns.filter(|&limit_ns| value_ns > limit_ns) {
                path.misses += 1;
                miss(MissKind::Path, &path.name, limit_ns);
            }
        }
        for deadline in deadlines.iter_mut().filter(|deadline| deadline.operator == operator) {
            if value_ns > deadline.limit_ns {
                deadline.late += 1;
                miss(MissKind::Deadline, &deadline.name, deadline.limit_ns);
            }
        }
    }
}
