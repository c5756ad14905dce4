//! Replicas added up: operators, edges and paths with the same name have one row in the record.

use crate::engine::worker::PathStatistics;
use onbeat_trace::Histogram;
use onbeat_trace::record::{EdgeRecord, LossRecord, OperatorRecord, OperatorState, PathRecord};
use std::collections::HashMap;
use std::hash::Hash;

/// Adds up items with the same key. The sum has the position of the first one.
pub(crate) fn join<T, K: Eq + Hash>(
    all: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
    mut add: impl FnMut(&mut T, T),
) -> Vec<T> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut joined: Vec<T> = Vec::new();
    for one in all {
        let place = *places.entry(key(&one)).or_insert(joined.len());
        match joined.get_mut(place) {
            Some(sum) => add(sum, one),
            None => joined.push(one),
        }
    }
    joined
}

/// Adds up operators with the durations of their steps. `worker` is that of the replica with most steps.
pub(super) fn operators(all: impl Iterator<Item = (OperatorRecord, Histogram)>) -> Vec<OperatorRecord> {
    let with_most = all.map(|(record, steps)| (record.steps, steps, record));
    let joined = join(
        with_most,
        |(.., record)| record.name.clone(),
        |(most, histogram, sum), (_, steps, record)| {
            if *most < record.steps {
                *most = record.steps;
                sum.worker = record.worker;
            }
            sum.steps += record.steps;
            sum.timed_steps += record.timed_steps;
            histogram.merge(&steps);
            sum.busy_ns += record.busy_ns;
            sum.share += record.share;
            sum.late += record.late;
            sum.copies += record.copies;
            sum.restarts += record.restarts;
            sum.workers += record.workers;
            add_losses(&mut sum.losses, record.losses);
            sum.measured.extend(record.measured);
            if sum.state == OperatorState::Done {
                sum.state = record.state;
            }
        },
    );
    joined.into_iter().map(|(_, steps, record)| whole_operator(record, &steps)).collect()
}

fn add_losses(sums: &mut Vec<LossRecord>, losses: Vec<LossRecord>) {
    for loss in losses {
        match sums.iter_mut().find(|sum| (&sum.unit, &sum.reason) == (&loss.unit, &loss.reason)) {
            Some(sum) => sum.count = sum.count.saturating_add(loss.count),
            None => sums.push(loss),
        }
    }
}

/// Adds up edges.
pub(super) fn edges(all: Vec<EdgeRecord>) -> Vec<EdgeRecord> {
    let key = |edge: &EdgeRecord| (edge.from.clone(), edge.to.clone());
    join(all, key, |sum, edge| {
        sum.capacity += edge.capacity;
        sum.sent += edge.sent;
        sum.received += edge.received;
        sum.dropped += edge.dropped;
        sum.unread += edge.unread;
        sum.depth_max = sum.depth_max.max(edge.depth_max);
    })
}

/// Adds up paths with their measurements.
pub(super) fn paths(all: impl Iterator<Item = (PathRecord, PathStatistics)>) -> Vec<PathRecord> {
    let key =
        |(path, _): &(PathRecord, PathStatistics)| (path.from.clone(), path.to.clone(), path.max_latency_ns);
    let joined = join(all, key, |(sum, measured), (path, other)| {
        measured.merge(&other);
        sum.misses += path.misses;
        sum.in_flight_mean = sum.in_flight_mean.zip(path.in_flight_mean).map(|(a, b)| a + b);
    });
    joined.into_iter().map(|(record, measured)| whole_path(record, &measured)).collect()
}

/// Completes a record with the durations of its steps.
pub(super) fn whole_operator(mut record: OperatorRecord, steps: &Histogram) -> OperatorRecord {
    record.step = steps.summary();
    record.steps_by_time = (steps.count() > 0).then(|| steps.to_record());
    record
}

/// Completes a record with the measurements of the path.
pub(super) fn whole_path(mut record: PathRecord, measured: &PathStatistics) -> PathRecord {
    record.latency = measured.latency.summary();
    record.latencies_by_time = (record.latency.count > 0).then(|| measured.latency.to_record());
    record.course = measured.course.to_record();
    record.regularity = measured.regularity.to_record();
    record
}
