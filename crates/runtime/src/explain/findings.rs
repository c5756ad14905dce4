//! Findings of the recorder, and their entry into the record.

use super::case::{Scheduling, ThreadFacts};
use crate::engine::flight::{About, Late};
use crate::plan::Plan;
use onbeat_trace::cause::{Cause, Explained, Part, Verdict};
use onbeat_trace::record::{Miss, MissKind, PathRecord, SlowMessage};
use onbeat_trace::{CauseClass, Record};
use std::collections::{BTreeMap, HashMap};

/// Findings of the recorder.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(super) verdicts: HashMap<Key, Verdict>,
    pub(super) slowest: Vec<Vec<SlowMessage>>,
    /// Notes for the record.
    pub(super) notes: Vec<String>,
    pub(super) causes: Vec<Cause>,
    pub(super) explained: Option<Explained>,
    /// By operator of the plan: whether its steps were recorded.
    pub(super) recorded: Vec<bool>,
}

/// Identity of a miss: whether it is of a path, number of the path or operator, end time, sequence of the
/// message.
pub(super) type Key = (bool, usize, u64, u64);

pub(super) fn key(late: &Late, start_ns: u64) -> Key {
    (late.about == About::Miss(MissKind::Path), late.of, late.end_ns.saturating_sub(start_ns), late.sequence)
}

impl Findings {
    /// Enters the findings into a record.
    pub fn enter(mut self, record: &mut Record, plan: &Plan) {
        for miss in &mut record.misses {
            miss.verdict = self.verdict(miss, plan);
        }
        if let Some(explained) = &mut self.explained {
            for (operator, _) in
                record.operators.iter().zip(&self.recorded).filter(|(_, recorded)| **recorded)
            {
                let is_exact = operator.timed_steps == operator.steps;
                let list = if is_exact { &mut explained.exact } else { &mut explained.sampled };
                list.push(operator.name.clone());
            }
        }
        for (path, slowest) in plan.paths.iter().zip(self.slowest) {
            let is_it = |it: &&mut PathRecord| it.from == path.from && it.to == path.to;
            if let Some(record) = record.paths.iter_mut().find(is_it) {
                record.slowest.extend(slowest);
            }
        }
        record.notes.extend(self.notes);
        record.causes = self.causes;
        record.explained = self.explained;
    }

    fn verdict(&mut self, miss: &Miss, plan: &Plan) -> Option<Verdict> {
        let is_path = miss.kind == MissKind::Path;
        let of = match miss.kind {
            MissKind::Path => {
                plan.paths.iter().position(|path| format!("{} → {}", path.from, path.to) == miss.name)
            }
            MissKind::Deadline => plan.operators.iter().position(|operator| operator.name == miss.name),
        };
        self.verdicts.remove(&(is_path, of?, miss.time_ns, miss.sequence))
    }
}

/// What one cause did.
#[derive(Debug, Default)]
struct CauseSum {
    misses: u64,
    lost_ns: u64,
    /// The finding that explains how to fix it.
    finding: Option<&'static str>,
}

/// What the causes of all misses did, by class and name.
#[derive(Debug, Default)]
pub(super) struct CauseSums(BTreeMap<(CauseClass, String), CauseSum>);

impl CauseSums {
    /// Adds the parts of a miss. The one with the largest sum is its main cause.
    pub fn add(&mut self, parts: &[Part], threads: &[ThreadFacts]) {
        let mut sums: BTreeMap<(CauseClass, &str), (u64, &Part)> = BTreeMap::new();
        for part in parts {
            sums.entry((part.class, &part.name)).or_insert((0, part)).0 += part.late_ns;
        }
        let main = sums.iter().max_by_key(|(_, (ns, _))| *ns).map(|(cause, _)| *cause);
        for ((class, name), (ns, part)) in sums {
            let sum = self.0.entry((class, name.to_owned())).or_default();
            sum.misses += u64::from(main == Some((class, name)));
            sum.lost_ns += ns;
            sum.finding = sum.finding.or_else(|| finding(part, threads));
        }
    }

    /// The causes by falling cost.
    pub fn table(&self) -> Vec<Cause> {
        let cause = |((class, name), sum): (&(CauseClass, String), &CauseSum)| Cause {
            finding: sum.finding.map(str::to_owned),
            class: *class,
            name: name.clone(),
            misses: sum.misses,
            lost_ns: sum.lost_ns,
        };
        let mut table: Vec<Cause> = self.0.iter().map(cause).collect();
        table.retain(|cause| cause.misses > 0 || cause.lost_ns > 0);
        table.sort_by_key(|cause| std::cmp::Reverse((cause.lost_ns, cause.misses)));
        table
    }
}

/// The finding that explains how to fix the cause of a part.
fn finding(part: &Part, threads: &[ThreadFacts]) -> Option<&'static str> {
    let had_it =
        |thread: &&ThreadFacts| thread.core.is_none() || part.core.is_none() || thread.core == part.core;
    let is_real_time = threads.iter().filter(had_it).any(|thread| thread.scheduling != Scheduling::Fair);
    part.class.finding_of_thread(&part.name, part.detail.as_deref(), is_real_time)
}
