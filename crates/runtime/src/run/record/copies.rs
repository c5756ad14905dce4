//! Operators, edges and paths that a recipe has made several times are told as one: those with the same name are copies.

use crate::engine::worker::PathStatistics;
use onbeat_trace::Histogram;
use onbeat_trace::record::{EdgeRecord, OperatorRecord, OperatorState, PathRecord};
use std::collections::HashMap;
use std::hash::Hash;

/// Adds up those with the same key, which stay where the first of them is.
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

/// With the durations of their steps, and the most steps that one copy made.
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
            if sum.state == OperatorState::Done {
                sum.state = record.state;
            }
        },
    );
    joined.into_iter().map(|(_, steps, record)| whole_operator(record, &steps)).collect()
}

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

/// With what was measured on them.
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

/// With what its steps took.
pub(super) fn whole_operator(mut record: OperatorRecord, steps: &Histogram) -> OperatorRecord {
    record.step = steps.summary();
    record.steps_by_time = (steps.count() > 0).then(|| steps.to_record());
    record
}

/// With what was measured on it.
pub(super) fn whole_path(mut record: PathRecord, measured: &PathStatistics) -> PathRecord {
    record.latency = measured.latency.summary();
    record.latencies_by_time = (record.latency.count > 0).then(|| measured.latency.to_record());
    record.course = measured.course.to_record();
    record.regularity = measured.regularity.to_record();
    record
}
