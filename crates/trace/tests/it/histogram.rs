//! The histogram against plain sorted lists.

use onbeat_trace::{Histogram, Summary};

/// Durations from nanoseconds to minutes, spread evenly over the orders of magnitude; always the same.
fn durations_ns(count: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count)
        .map(|_| {
            // xorshift64, Marsaglia 2003.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> (27 + state % 30)
        })
        .collect()
}

fn counted(durations_ns: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    durations_ns.iter().for_each(|&ns| histogram.record(ns));
    histogram
}

#[test]
fn an_empty_one_is_all_zero() {
    assert_eq!(Histogram::new().summary(), Summary::default());
    assert_eq!(Histogram::new().quantile_ns(0.5), 0);
}

#[test]
fn quantiles_keep_the_error_bound() {
    let mut sorted = durations_ns(10_000);
    let histogram = counted(&sorted);
    sorted.sort_unstable();
    for permille in 1..=1_000 {
        let exact = sorted[(permille * sorted.len()).div_ceil(1_000) - 1];
        let read = histogram.quantile_ns(permille as f64 / 1_000.0);
        assert!(read >= exact, "{permille} permille: {read} < {exact}");
        assert!((read - exact) as f64 <= exact as f64 / 128.0, "{permille} permille: {read} against {exact}");
    }
}

#[test]
fn a_quantile_outside_its_range_is_the_nearer_end() {
    let histogram = counted(&[10, 20, 30]);
    assert_eq!(histogram.quantile_ns(-1.0), 10);
    assert_eq!(histogram.quantile_ns(0.0), 10);
    assert_eq!(histogram.quantile_ns(2.0), 30);
}

#[test]
fn short_durations_are_exact() {
    let histogram = counted(&(0..=255).collect::<Vec<_>>());
    for ns in 0..=255 {
        assert_eq!(histogram.quantile_ns((ns + 1) as f64 / 256.0), ns);
    }
}

#[test]
fn count_smallest_mean_and_largest_are_exact() {
    let durations = [1_000_003, 7, 123_456_789, 7, 999_999_999_999];
    let summary = counted(&durations).summary();
    assert_eq!(summary.count, 5);
    assert_eq!(summary.min_ns, 7);
    assert_eq!(summary.max_ns, 999_999_999_999);
    assert_eq!(summary.mean_ns, durations.iter().sum::<u64>() as f64 / 5.0);
    assert_eq!(summary.p99_9_ns, summary.max_ns);
}

#[test]
fn one_duration_is_every_number() {
    let summary = counted(&[1_000_001]).summary();
    for ns in [summary.min_ns, summary.median_ns, summary.p90_ns, summary.p99_ns, summary.max_ns] {
        assert_eq!(ns, 1_000_001);
    }
}

#[test]
fn what_is_longer_than_the_range_is_counted_and_stays_the_largest() {
    let mut histogram = counted(&[10, Histogram::MAX_NS, Histogram::MAX_NS + 1, u64::MAX]);
    assert_eq!(histogram.summary().count, 4);
    assert_eq!(histogram.summary().max_ns, u64::MAX);
    let late = histogram.quantile_ns(0.75);
    assert!(late >= Histogram::MAX_NS && late as f64 <= Histogram::MAX_NS as f64 * 1.01);
    histogram.merge(&histogram.clone());
    assert_eq!(histogram.count(), 8);
}

#[test]
fn merging_is_recording_in_one() {
    let durations = durations_ns(2_000);
    let (front, back) = durations.split_at(700);
    let mut merged = counted(front);
    merged.merge(&counted(back));
    merged.merge(&Histogram::new());
    assert_eq!(merged.summary(), counted(&durations).summary());

    let mut from_empty = Histogram::new();
    from_empty.merge(&merged);
    assert_eq!(from_empty.summary(), merged.summary());
}

#[test]
fn many_at_once_are_as_one_by_one() {
    let mut at_once = Histogram::new();
    at_once.record_n(500, 3);
    at_once.record_n(9_000, 0);
    assert_eq!(at_once.summary(), counted(&[500, 500, 500]).summary());
}

#[test]
fn clearing_forgets() {
    let mut histogram = counted(&[1, 2, 3]);
    histogram.clear();
    assert_eq!(histogram.summary(), Summary::default());
    histogram.record(9);
    assert_eq!(histogram.summary().min_ns, 9);
}

#[test]
fn buckets_hold_all_durations_within_the_bound() {
    let mut histogram = Histogram::new();
    let durations = [3, 3, 255, 10_000, 9_000_000, 2 * Histogram::MAX_NS];
    durations.iter().for_each(|ns| histogram.record(*ns));
    let buckets: Vec<(u64, u64)> = histogram.buckets().collect();
    assert!(buckets.is_sorted() && buckets[0] == (3, 2) && buckets[1] == (255, 1), "{buckets:?}");
    assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 6);
    assert!((10_000..=10_100).contains(&buckets[2].0), "{buckets:?}");
    assert_eq!(Histogram::new().buckets().count(), 0);
}
