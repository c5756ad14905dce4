//! How long messages took from their due time, on paths and to deadlines.

use crate::explain::Late;
use crate::kept::Kept;
use crate::message::Stamp;
use onbeat_trace::Histogram;
use onbeat_trace::record::{Miss, MissKind};

/// All paths and deadlines that one worker watches.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    pub paths: Vec<Path>,
    pub deadlines: Vec<Deadline>,
    misses: Kept<Lateness>,
    /// The last ones, where somebody is to look into them.
    fresh: Vec<Late>,
    pub explains: bool,
}

/// A message that came too late, before names are looked up for it.
#[derive(Debug, Clone, Copy)]
struct Lateness {
    time_ns: u64,
    kind: MissKind,
    /// Of the path or the deadline, in the list of its kind.
    place: usize,
    sequence: u64,
    value_ns: u64,
    limit_ns: u64,
}

#[derive(Debug)]
pub(crate) struct Path {
    /// Its number in the plan.
    pub plan: usize,
    pub name: String,
    pub source: usize,
    pub end: u32,
    /// The same operator's number in the plan.
    pub at: usize,
    pub limit_ns: Option<u64>,
    pub latency: Histogram,
    pub misses: u64,
}

#[derive(Debug)]
pub(crate) struct Deadline {
    /// The operator's number in the plan.
    pub plan: usize,
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
        self.misses.reserve();
        if self.explains {
            self.fresh.reserve_exact(self.paths.len() + self.deadlines.len());
        }
    }

    /// Those of the message that was finished last.
    pub fn take_fresh(&mut self) -> impl Iterator<Item = Late> {
        self.fresh.drain(..)
    }

    /// Notes that `operator` has finished a message at `now_ns`.
    pub fn finished(&mut self, operator: u32, stamp: Stamp, now_ns: u64, start_ns: u64) {
        let value_ns = now_ns.saturating_sub(stamp.due_ns);
        let time_ns = now_ns.saturating_sub(start_ns);
        let Tracker { paths, deadlines, misses, fresh, explains } = self;
        let sequence = stamp.sequence();
        let mut miss = |kind, place, of, end, limit_ns| {
            misses.note(|| Lateness { time_ns, kind, place, sequence, value_ns, limit_ns });
            if *explains {
                let (source, due_ns) = (stamp.source() as u32, stamp.due_ns);
                fresh.push(Late { kind, of, end, source, sequence, due_ns, end_ns: now_ns, limit_ns });
            }
        };
        // A message that was made of several counts for the paths from all of their sources, by the earliest due time.
        let counts =
            |path: &Path| path.end == operator && (path.source == stamp.source() || stamp.is_joined());
        for (place, path) in paths.iter_mut().enumerate().filter(|(_, path)| counts(path)) {
            path.latency.record(value_ns);
            if let Some(limit_ns) = path.limit_ns.filter(|&limit_ns| value_ns > limit_ns) {
                path.misses += 1;
                miss(MissKind::Path, place, path.plan, path.at, limit_ns);
            }
        }
        for (place, deadline) in deadlines.iter_mut().enumerate() {
            if deadline.operator == operator && value_ns > deadline.limit_ns {
                deadline.late += 1;
                miss(MissKind::Deadline, place, deadline.plan, deadline.plan, deadline.limit_ns);
            }
        }
    }

    /// What came too late, for the record.
    pub fn misses(&self) -> Kept<Miss> {
        self.misses.map(|&Lateness { time_ns, kind, place, sequence, value_ns, limit_ns }| Miss {
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
