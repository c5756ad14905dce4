//! Streams with missing records: no event is invented, and each hole is counted.

use super::{OWN, RCU, TIMER, broken, enter, exit, nmi, pairs, replay, shown, switch};
use onbeat_noise::Nesting;
use onbeat_noise::decode::{Id, RecordKind, RingRecord};
use onbeat_trace::Class;
use proptest::prelude::*;

fn lost(lost: u64) -> RingRecord {
    RingRecord { time_ns: 0, pid: -1, is_going: false, kind: RecordKind::Lost(lost) }
}

#[test]
fn an_end_whose_begin_was_before_us_is_no_break() {
    let (events, nesting) = replay(vec![exit(5, OWN, TIMER), exit(6, OWN, RCU)]);
    assert!(events.is_empty() && nesting.breaks() == 0);
}

#[test]
fn an_end_without_a_begin_is_one() {
    let (events, nesting) =
        replay(vec![enter(5, OWN, TIMER, "local_timer"), exit(6, OWN, TIMER), exit(9, OWN, TIMER)]);
    assert_eq!(shown(&events), [("local_timer", 5, 1, 0)]);
    assert_eq!(nesting.breaks(), 1);
}

/// Seen on a guest: switches around the idle task are dropped.
#[test]
fn a_missing_switch_ends_a_thread_where_it_was_last_seen() {
    let records = vec![
        switch(10, OWN, 7, "a"),
        enter(20, 7, TIMER, "local_timer"),
        exit(22, 7, TIMER),
        // 7 → 0 is missing.
        switch(50, 0, OWN, "own"),
    ];
    let (events, mut nesting) = replay(records);
    assert_eq!(shown(&events), [("local_timer", 20, 2, 0), ("a", 10, 10, 0), ("swapper/1", 50, 0, 0)]);
    assert_eq!((nesting.breaks(), broken(&mut nesting)), (1, vec![(22, 50)]));
    assert!(nesting.take_broken().is_empty(), "they are given once");
}

/// A thread that ran only once, and no record of which tells how it got the core.
#[test]
fn a_thread_is_named_by_the_switch_away_from_it() {
    let away = RecordKind::Switch {
        prev: 7,
        was: Some(("short-lived".into(), 3)),
        is_prev_runnable: false,
        next: OWN,
        comm: "own".into(),
        priority: 120,
    };
    let records = vec![
        switch(10, OWN, 0, "swapper/1"),
        // 0 → 7 is missing.
        enter(20, 7, TIMER, "local_timer"),
        exit(22, 7, TIMER),
        RingRecord { time_ns: 50, pid: 7, is_going: false, kind: away },
    ];
    let (events, _) = replay(records);
    let thread = events.iter().find(|event| event.pid == 7).expect("it had the core");
    assert_eq!((thread.name.as_str(), thread.priority), ("short-lived", 3));
}

/// A core idles because the measured thread sleeps, or although it could run.
#[test]
fn a_measured_thread_that_sleeps_is_not_kept_from_running() {
    let idles = |time_ns, prev, is_prev_runnable| {
        let kind = RecordKind::Switch {
            prev,
            was: None,
            is_prev_runnable,
            next: 0,
            comm: "swapper/1".into(),
            priority: 120,
        };
        RingRecord { time_ns, pid: prev, is_going: false, kind }
    };
    let comes_back = || switch(50, 0, OWN, "own");
    for (records, slept) in [
        (vec![idles(10, OWN, false), comes_back()], Some((10, 50))),
        (vec![idles(10, OWN, true), comes_back()], None),
        // Other sleeping threads do not concern it.
        (vec![idles(10, OWN, true), switch(20, 0, 7, "a"), idles(30, 7, false), comes_back()], None),
        // The missing record may have shown that it could run.
        (vec![idles(10, OWN, false), lost(3), comes_back()], None),
    ] {
        let (_, mut nesting) = replay(records);
        assert_eq!(pairs(nesting.take_slept()), Vec::from_iter(slept));
        assert!(nesting.take_slept().is_empty(), "they are given once");
    }
    // Where the switch back is missing its own stamp tells.
    let (mut events, mut nesting) = replay(vec![idles(10, OWN, false)]);
    nesting.stamp(OWN, 40, &mut events);
    assert_eq!(pairs(nesting.take_slept()), [(10, 40)]);
}

/// Seen on the same guest: no record shows which thread got an idle core, but a switch was marked as due.
#[test]
fn whoever_is_next_has_had_a_core_since_it_stopped_being_idle() {
    let idle = |is_going| {
        vec![
            switch(10, OWN, 0, "swapper/1"),
            enter(20, 0, TIMER, "local_timer"),
            RingRecord { is_going, ..exit(22, 0, TIMER) },
            // 0 → 7 is missing.
            switch(50, 7, OWN, "own"),
        ]
    };
    for (is_going, expected) in [(true, ("pid 7", 22, 28, 0)), (false, ("pid 7", 50, 0, 0))] {
        let (events, mut nesting) = replay(idle(is_going));
        assert_eq!(shown(&events), [("local_timer", 20, 2, 0), ("swapper/1", 10, 10, 0), expected]);
        assert_eq!(broken(&mut nesting), [(22, 50)]);
    }
}

#[test]
fn a_record_of_our_own_thread_says_that_it_is_back() {
    let records =
        vec![switch(10, OWN, 0, "swapper/1"), enter(40, OWN, TIMER, "local_timer"), exit(45, OWN, TIMER)];
    let (events, nesting) = replay(records);
    assert_eq!(shown(&events), [("swapper/1", 10, 0, 0), ("local_timer", 40, 5, 0)]);
    assert_eq!(nesting.breaks(), 1);
}

#[test]
fn so_does_our_own_stamp() {
    let (mut events, mut nesting) = replay(vec![switch(10, OWN, 7, "a"), nmi(20, 7, 1)]);
    events.clear();
    nesting.stamp(OWN, 60, &mut events);
    assert_eq!(shown(&events), [("a", 10, 9, 0)]);
    // The next events interrupt the measured thread only.
    nesting.record(switch(70, OWN, 8, "b"), &mut events);
    nesting.record(switch(75, 8, OWN, "own"), &mut events);
    assert_eq!(shown(&events[1..]), [("b", 70, 5, 0)]);
    assert_eq!(nesting.breaks(), 1);
}

#[test]
fn a_thread_whose_stamp_comes_has_left_every_interrupt() {
    let (mut events, mut nesting) = replay(vec![enter(10, OWN, TIMER, "local_timer")]);
    nesting.stamp(OWN, 60, &mut events);
    nesting.record(exit(70, OWN, TIMER), &mut events);
    assert!(events.is_empty());
    assert_eq!((nesting.breaks(), broken(&mut nesting)), (2, vec![(10, 60), (70, 70)]));
}

#[test]
fn after_lost_records_nothing_is_certain() {
    let records = vec![
        switch(10, OWN, 7, "a"),
        enter(20, 7, TIMER, "local_timer"),
        lost(3),
        exit(30, 8, TIMER),
        switch(40, 8, OWN, "own"),
        enter(50, OWN, TIMER, "local_timer"),
        exit(55, OWN, TIMER),
    ];
    let (events, nesting) = replay(records);
    assert_eq!(shown(&events), [("local_timer", 50, 5, 0)]);
    assert_eq!(nesting.lost(), 3);
    assert!(nesting.breaks() >= 1);
}

#[test]
fn a_begin_without_an_end_is_a_point() {
    let point = RingRecord {
        time_ns: 10,
        pid: OWN,
        is_going: false,
        kind: RecordKind::Point(Class::Irq, "irq_work"),
    };
    let (events, nesting) = replay(vec![point]);
    assert_eq!(shown(&events), [("irq_work", 10, 0, 0)]);
    assert_eq!(nesting.breaks(), 0);
}

#[test]
fn a_switch_within_an_interrupt_is_a_break() {
    let (events, nesting) = replay(vec![
        enter(10, OWN, TIMER, "local_timer"),
        switch(20, OWN, 7, "a"),
        switch(30, 7, OWN, "own"),
    ]);
    assert_eq!(shown(&events), [("a", 20, 10, 0)]);
    assert_eq!(nesting.breaks(), 1);
}

fn record() -> impl Strategy<Value = RingRecord> {
    let id = prop_oneof![
        Just(TIMER),
        Just(RCU),
        Just(super::DISK),
        Just(Id { class: Class::Irq, number: Id::IPI })
    ];
    let pid = prop_oneof![Just(OWN), Just(0), Just(7), Just(8)];
    let kind = prop_oneof![
        4 => id.clone().prop_map(|id| RecordKind::Enter(id, "x".into())),
        4 => id.prop_map(RecordKind::Exit),
        1 => (0u64..50).prop_map(|duration_ns| RecordKind::Nmi { duration_ns }),
        3 => (pid.clone(), pid.clone()).prop_map(|(prev, next)| RecordKind::Switch {
            prev, was: None, is_prev_runnable: true, next, comm: "t".into(), priority: 120
        }),
        1 => Just(RecordKind::Lost(1)),
        1 => Just(RecordKind::PageFault { is_user: true }),
        1 => Just(RecordKind::Woken { pid: 8, comm: "t".into(), priority: 120, core: 1 }),
    ];
    (0u64..1000, pid, any::<bool>(), kind).prop_map(|(time_ns, pid, is_going, kind)| RingRecord {
        time_ns,
        pid,
        is_going,
        kind,
    })
}

proptest! {
    /// Any records in any order: no panic, and a core never runs two things at a time.
    #[test]
    fn no_stream_gives_more_time_than_there_was(mut records in prop::collection::vec(record(), 0..60), sorted: bool) {
        if sorted {
            records.sort_by_key(|record| record.time_ns);
        }
        let mut nesting = Nesting::new(1);
        nesting.measure(&[OWN]);
        let mut events = Vec::new();
        for record in records {
            nesting.record(record, &mut events);
        }
        let sum: u64 = events.iter().filter(|event| event.class != Class::Nmi).map(|event| event.duration_ns).sum();
        prop_assert!(sum <= 1000, "{sum}: {events:?}");
    }
}
