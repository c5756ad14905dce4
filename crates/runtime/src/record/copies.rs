//! Operators, edges and paths that are there several times are told as one: those with the same name are copies.

use onbeat_trace::Histogram;
use onbeat_trace::record::{EdgeRecord, OperatorRecord, OperatorState, PathRecord};

/// Adds up those with the same key, which stay where the first of them is.
fn join<T, K: PartialEq>(
    all: impl Iterator<Item = T>,
    key: impl Fn(&T) -> K,
    mut add: impl FnMut(&mut T, T),
) -> Vec<T> {
    let mut joined: Vec<T> = Vec::new();
    for one in all {
        match joined.iter_mut().find(|other| key(other) == key(&one)) {
            Some(other) => add(other, one),
            None => joined.push(one),
        }
    }
    joined
}

pub(super) fn operators(all: impl Iterator<Item = (OperatorRecord, Histogram)>) -> Vec<OperatorRecord> {
    let mut most = std::collections::HashMap::new();
    let mut places = std::collections::HashMap::new();
    let mut joined: Vec<(OperatorRecord, Histogram)> = Vec::new();
    for (record, steps) in all {
        let Some(&place) = places.get(&record.name) else {
            places.insert(record.name.clone(), joined.len());
            most.insert(record.name.clone(), record.steps);
            joined.push((record, steps));
            continue;
        };
        let (sum, histogram) = &mut joined[place];
        if let Some(most) = most.get_mut(&record.name).filter(|most| **most < record.steps) {
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
    }
    joined.into_iter().map(|(record, _)| record).collect()
}

pub(super) fn edges(all: Vec<EdgeRecord>) -> Vec<EdgeRecord> {
    let mut places = std::collections::HashMap::new();
    let mut joined: Vec<EdgeRecord> = Vec::with_capacity(all.len());
    for edge in all {
        let Some(&place) = places.get(&(edge.from.clone(), edge.to.clone())) else {
            places.insert((edge.from.clone(), edge.to.clone()), joined.len());
            joined.push(edge);
            continue;
        };
        let sum: &mut EdgeRecord = &mut joined[place];
        sum.capacity += edge.capacity;
        sum.sent += edge.sent;
        sum.received += edge.received;
        sum.dropped += edge.dropped;
        sum.unread += edge.unread;
        sum.depth_max = sum.depth_max.max(edge.depth_max);
    }
    joined
}

pub(super) fn paths(all: impl Iterator<Item = (PathRecord, Histogram)>) -> Vec<PathRecord> {
    let key = |(path, _): &(PathRecord, Histogram)| (path.from.clone(), path.to.clone(), path.max_latency_ns);
    let joined = join(all, key, |(sum, histogram), (path, latency)| {
        histogram.merge(&latency);
        sum.latency = histogram.summary();
        sum.misses += path.misses;
    });
    joined.into_iter().map(|(path, _)| path).collect()
}
