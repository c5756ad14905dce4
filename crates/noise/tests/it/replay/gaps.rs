//! Gaps and their causes.

use onbeat_noise::{Gap, GapThread, attribute};
use onbeat_trace::{Class, KernelEvent};
use proptest::prelude::*;

fn event(class: Class, name: &str, start_ns: u64, duration_ns: u64) -> KernelEvent {
    KernelEvent { cpu: 1, start_ns, duration_ns, class, name: name.into(), pid: 0, priority: 0, depth: 0 }
}

fn thread(name: &str, pid: i32, priority: i32, start_ns: u64, duration_ns: u64) -> KernelEvent {
    KernelEvent { pid, priority, ..event(Class::Thread, name, start_ns, duration_ns) }
}

const GAP: Gap = Gap { cpu: 1, start_ns: 100, end_ns: 200 };

#[test]
fn a_gap_without_events_is_not_the_kernels() {
    let verdict = attribute(GAP, &[event(Class::Irq, "local_timer", 50, 20)], GapThread::Fair);
    assert!(verdict.interferences.is_empty());
    assert_eq!((verdict.hardware_ns, verdict.unexplained_ns), (100, 0));
}

#[test]
fn what_is_left_beside_events_is_unexplained() {
    let verdict = attribute(GAP, &[event(Class::Irq, "local_timer", 120, 20)], GapThread::Fair);
    assert_eq!((verdict.hardware_ns, verdict.unexplained_ns), (0, 80));
}

#[test]
fn only_what_lies_in_the_gap_counts() {
    let events = [
        event(Class::Irq, "before", 90, 5),
        event(Class::Irq, "into", 95, 10),
        event(Class::Softirq, "out_of", 190, 50),
        event(Class::Irq, "behind", 201, 5),
    ];
    let verdict = attribute(GAP, &events, GapThread::Fair);
    let parts: Vec<_> = verdict.interferences.iter().map(|i| (i.name.as_str(), i.duration_ns)).collect();
    assert_eq!(parts, [("into", 5), ("out_of", 10)]);
}

#[test]
fn an_interrupted_thread_gets_its_own_time_on_both_sides() {
    // The thread has [90, 130) and [150, 170), the softirq [130, 140) and [145, 150), the interrupt [140,
    // 145).
    let events = [
        event(Class::Irq, "timer", 140, 5),
        event(Class::Softirq, "RCU", 130, 15),
        thread("other", 7, 120, 90, 60),
    ];
    let verdict = attribute(GAP, &events, GapThread::Fair);
    let parts: Vec<_> = verdict.interferences.iter().map(|i| (i.name.as_str(), i.duration_ns)).collect();
    assert_eq!(parts, [("other", 50), ("RCU", 15), ("timer", 5)]);
    assert_eq!(verdict.unexplained_ns, 30);
}

#[test]
fn a_point_is_named_and_has_no_time() {
    let verdict = attribute(GAP, &[event(Class::Irq, "irq_work", 150, 0)], GapThread::Fair);
    assert_eq!(
        (verdict.interferences[0].name.as_str(), verdict.interferences[0].duration_ns),
        ("irq_work", 0)
    );
    assert_eq!((verdict.hardware_ns, verdict.unexplained_ns), (0, 100));
}

#[test]
fn real_time_threads_wait_for_others_by_name() {
    let real_time = |has_fair_server| GapThread::RealTime { has_fair_server };
    for (own, event, name) in [
        (GapThread::Fair, thread("swapper/1", 0, 120, 110, 5), "throttled (cpu.max)"),
        (real_time(true), thread("swapper/1", 0, 120, 110, 5), "rt-throttle"),
        (GapThread::Sleeper, thread("swapper/1", 0, 120, 110, 5), "swapper/1"),
        (GapThread::Asleep, thread("swapper/1", 0, 120, 110, 5), "asleep (page fault, lock or signal)"),
        (GapThread::Asleep, thread("make", 9, 120, 110, 5), "make"),
        (real_time(true), thread("make", 9, 120, 110, 5), "make (fair server)"),
        (real_time(false), thread("make", 9, 139, 110, 5), "make (rt-throttle)"),
        (real_time(true), thread("audio", 9, 10, 110, 5), "audio"),
        (GapThread::Fair, thread("make", 9, 120, 110, 5), "make"),
    ] {
        assert_eq!(attribute(GAP, &[event], own).interferences[0].name, name, "{own:?}");
    }
}

proptest! {
    #[test]
    fn the_parts_sum_to_the_gap(
        (from, length) in (0u64..500, 0u64..500),
        events in prop::collection::vec((0u64..1000, 0u64..300, 0usize..4), 0..20),
    ) {
        let classes = [Class::Nmi, Class::Irq, Class::Softirq, Class::Thread];
        let events: Vec<KernelEvent> =
            events.into_iter().map(|(start, duration, class)| event(classes[class], "x", start, duration)).collect();
        let gap = Gap { cpu: 1, start_ns: from, end_ns: from + length };
        let verdict = attribute(gap, &events, GapThread::Fair);
        let named: u64 = verdict.interferences.iter().map(|i| i.duration_ns).sum();
        prop_assert_eq!(named + verdict.hardware_ns + verdict.unexplained_ns, length);
        prop_assert!(verdict.hardware_ns == 0 || verdict.unexplained_ns == 0);
    }

    /// Against a plain reference: who has each nanosecond, one after the other.
    #[test]
    fn nested_events_get_what_they_had(owners in prop::collection::vec(0usize..5, 1..80), from in 0u64..80, length in 0u64..80) {
        let stream = events_of(&owners);
        let gap = Gap { cpu: 1, start_ns: from, end_ns: from + length };
        let verdict = attribute(gap, &stream, GapThread::Sleeper);
        let classes = [None, Some(Class::Thread), Some(Class::Softirq), Some(Class::Irq), Some(Class::Nmi)];
        for class in &classes[1..] {
            let window = owners.iter().enumerate().filter(|(at, _)| (from..from + length).contains(&(*at as u64)));
            let expected = window.filter(|(_, owner)| classes[**owner] == *class).count() as u64;
            let found: u64 =
                verdict.interferences.iter().filter(|i| Some(i.class) == *class).map(|i| i.duration_ns).sum();
            prop_assert_eq!(found, expected, "{:?} of {:?}", class, stream);
        }
    }
}

/// Levels that rise and fall: an event of level n lasts for as long as the level is at least n, and has the
/// time at which it is n.
fn events_of(owners: &[usize]) -> Vec<KernelEvent> {
    let classes = [Class::Thread, Class::Softirq, Class::Irq, Class::Nmi];
    let mut events = Vec::new();
    for (level, class) in (1..).zip(classes) {
        let mut open: Option<(u64, u64)> = None;
        for (at, owner) in owners.iter().chain([&0]).enumerate() {
            match &mut open {
                _ if *owner == level => {
                    open = Some(open.map_or((at as u64, 1), |(start, time)| (start, time + 1)));
                }
                Some(_) if *owner > level => {}
                // A level that never had time of its own makes no event.
                found => {
                    if let Some((start_ns, duration_ns)) = found.take() {
                        events.push(event(class, "x", start_ns, duration_ns));
                    }
                }
            }
        }
    }
    events
}
