//! Operators, edges and paths that a recipe has made several times are told as one: those with the same name are copies.

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
            sum.step = histogram.summary();
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
    joined.into_iter().map(|(.., record)| record).collect()
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

/// With the latencies of their messages.
pub(super) fn paths(all: impl Iterator<Item = (PathRecord, Histogram)>) -> Vec<PathRecord> {
    let key = |(path, _): &(PathRecord, Histogram)| (path.from.clone(), path.to.clone(), path.max_latency_ns);
    let joined = join(all, key, |(sum, histogram), (path, latency)| {
        histogram.merge(&latency);
        sum.latency = histogram.summary();
        sum.misses += path.misses;
        sum.in_flight_mean = sum.in_flight_mean.zip(path.in_flight_mean).map(|(a, b)| a + b);
    });
    joined.into_iter().map(|(path, _)| path).collect()
}
