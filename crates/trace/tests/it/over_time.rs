//! Durations over time and periods, beside plain references.

use onbeat_trace::{Course, Histogram, Regularity};

#[test]
fn a_course_of_any_length_keeps_counts_sums_and_peaks() {
    for length_ns in [1, 1 << 20, 1 << 29, (1 << 29) + 1, 3_600_000_000_000, 1 << 50] {
        let mut course = Course::new();
        let steps = 1_000u64;
        for step in 0..steps {
            course.record(length_ns / steps * step, 100 + step % 7);
        }
        course.record(length_ns, 9_999);
        let record = course.to_record().unwrap();
        assert!(record.count.len() <= Course::SLOTS, "{length_ns}");
        assert!(record.slot_ns * record.count.len() as u64 > length_ns, "{length_ns}");
        assert_eq!(record.count.iter().sum::<u64>(), steps + 1);
        assert_eq!(record.max_ns.iter().max(), Some(&9_999));
        let used = || (0..record.count.len()).filter(|&slot| record.count[slot] > 0);
        assert!(
            used().all(|slot| record.min_ns[slot] <= record.mean_ns[slot]
                && record.mean_ns[slot] <= record.max_ns[slot])
        );
        assert_eq!(used().map(|slot| record.min_ns[slot]).min(), Some(100));
    }
    assert_eq!(Course::new().to_record(), None);
}

#[test]
fn courses_of_different_length_are_put_together() {
    let (mut short, mut long) = (Course::new(), Course::new());
    short.record(5, 10);
    long.record(10_000_000_000, 30);
    long.record(5, 20);
    let mut other = long.clone();
    other.merge(&short);
    short.merge(&long);
    assert_eq!(short.to_record(), other.to_record());
    let record = short.to_record().unwrap();
    assert_eq!((record.count[0], record.min_ns[0], record.mean_ns[0], record.max_ns[0]), (2, 10, 15, 20));
}

#[test]
fn periods_are_those_of_neighbours() {
    let mut regularity = Regularity::default();
    assert_eq!(regularity.to_record(), None);
    // Due every 100; number 3 is missing, 5 comes 30 later and 6 as due, which makes a short period. 7 is due
    // after 300.
    for (sequence, due_ns, end_ns) in
        [(0, 0, 10), (1, 100, 110), (2, 200, 210), (4, 400, 410), (5, 500, 540), (6, 600, 610), (7, 900, 960)]
    {
        regularity.record(end_ns, sequence, due_ns, end_ns);
    }
    let record = regularity.to_record().unwrap();
    assert_eq!((record.period_ns, record.early.total(), record.late.total()), (100, 1, 4));
    assert_eq!((record.early.up_to_ns, record.late.up_to_ns), (vec![30], vec![0, 30, 250]));
    assert_eq!(record.course.unwrap().max_ns, [350]);
}

#[test]
fn a_record_has_no_more_buckets_than_there_is_room_for() {
    let mut histogram = Histogram::new();
    (0..100_000u64).for_each(|step| histogram.record(step * step));
    let buckets = histogram.to_record();
    assert!(
        buckets.up_to_ns.len() <= Histogram::RECORDED && buckets.up_to_ns.len() > 100,
        "{}",
        buckets.up_to_ns.len()
    );
    assert_eq!(buckets.total(), histogram.count());
    assert!(buckets.up_to_ns.is_sorted());
    assert_eq!(buckets.up_to_ns.last(), Some(&histogram.summary().max_ns));
}
