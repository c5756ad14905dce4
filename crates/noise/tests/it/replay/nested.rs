//! Interruptions, pair by pair; time is counted once, for the innermost event.

use super::{DISK, IPI, OWN, RCU, TIMER, broken, enter, exit, nmi, replay, shown, switch};
use onbeat_noise::decode::RingRecord;
use onbeat_trace::{Class, KernelEvent};

/// Title; records; events as they end.
type Case = (&'static str, Vec<RingRecord>, Vec<(&'static str, u64, u64, u32)>);

/// One event within another.
fn pairs() -> Vec<Case> {
    let timer = |from, to, pid| [enter(from, pid, TIMER, "local_timer"), exit(to, pid, TIMER)];
    let softirq = |from, to, pid| [enter(from, pid, RCU, "RCU"), exit(to, pid, RCU)];
    let [begin_timer, end_timer] = timer(10, 30, OWN);
    let [begin_rcu, end_rcu] = softirq(10, 30, OWN);
    vec![
        ("an NMI in the thread", vec![nmi(20, OWN, 5)], vec![("nmi", 15, 5, 0)]),
        (
            "an NMI in an interrupt",
            vec![begin_timer.clone(), nmi(20, OWN, 5), end_timer.clone()],
            vec![("nmi", 15, 5, 1), ("local_timer", 10, 15, 0)],
        ),
        (
            "an NMI in a softirq",
            vec![begin_rcu.clone(), nmi(20, OWN, 5), end_rcu.clone()],
            vec![("nmi", 15, 5, 1), ("RCU", 10, 15, 0)],
        ),
        (
            "an NMI in another thread",
            vec![switch(10, OWN, 7, "other"), nmi(20, 7, 5), switch(30, 7, OWN, "own")],
            vec![("nmi", 15, 5, 0), ("other", 10, 15, 0)],
        ),
        ("an interrupt in the thread", vec![begin_timer, end_timer], vec![("local_timer", 10, 20, 0)]),
        (
            "an interrupt in a softirq",
            [begin_rcu.clone()].into_iter().chain(timer(15, 18, OWN)).chain([end_rcu.clone()]).collect(),
            vec![("local_timer", 15, 3, 1), ("RCU", 10, 17, 0)],
        ),
        (
            "an interrupt in another thread",
            [switch(10, OWN, 7, "other")]
                .into_iter()
                .chain(timer(15, 18, 7))
                .chain([switch(30, 7, OWN, "own")])
                .collect(),
            vec![("local_timer", 15, 3, 0), ("other", 10, 17, 0)],
        ),
        ("a softirq in the thread", vec![begin_rcu, end_rcu], vec![("RCU", 10, 20, 0)]),
        (
            "a softirq in another thread",
            [switch(10, OWN, 7, "other")]
                .into_iter()
                .chain(softirq(15, 18, 7))
                .chain([switch(30, 7, OWN, "own")])
                .collect(),
            vec![("RCU", 15, 3, 0), ("other", 10, 17, 0)],
        ),
    ]
}

/// Sequences of several events.
fn sequences() -> Vec<Case> {
    let timer = [enter(10, OWN, TIMER, "local_timer"), exit(15, OWN, TIMER)];
    let softirq = [enter(15, OWN, RCU, "RCU"), exit(30, OWN, RCU)];
    vec![
        (
            "a softirq after its interrupt",
            timer.into_iter().chain(softirq).collect(),
            vec![("local_timer", 10, 5, 0), ("RCU", 15, 15, 0)],
        ),
        (
            "all of them nested",
            vec![
                switch(10, OWN, 7, "other"),
                enter(20, 7, RCU, "RCU"),
                enter(30, 7, TIMER, "local_timer"),
                nmi(40, 7, 4),
                exit(50, 7, TIMER),
                exit(70, 7, RCU),
                switch(100, 7, OWN, "own"),
            ],
            vec![("nmi", 36, 4, 2), ("local_timer", 30, 16, 1), ("RCU", 20, 30, 0), ("other", 10, 40, 0)],
        ),
        (
            "a thread after a thread",
            vec![switch(10, OWN, 7, "a"), switch(14, 7, 0, "swapper/1"), switch(30, 0, OWN, "own")],
            vec![("a", 10, 4, 0), ("swapper/1", 14, 16, 0)],
        ),
        (
            "an interrupt from another core, reported within its handler",
            vec![
                enter(10, OWN, DISK, "IPI"),
                enter(11, OWN, IPI, "ipi"),
                exit(15, OWN, IPI),
                exit(16, OWN, DISK),
            ],
            vec![("ipi", 11, 4, 1), ("IPI", 10, 2, 0)],
        ),
        (
            "a softirq that is preempted, with PREEMPT_RT, in two pieces",
            vec![
                switch(10, OWN, 7, "ksoftirqd/1"),
                enter(12, 7, RCU, "RCU"),
                switch(20, 7, 8, "fifo"),
                switch(25, 8, 7, "ksoftirqd/1"),
                exit(30, 7, RCU),
                switch(33, 7, OWN, "own"),
            ],
            vec![
                ("RCU", 12, 8, 0),
                ("ksoftirqd/1", 10, 2, 0),
                ("fifo", 20, 5, 0),
                ("RCU", 25, 5, 0),
                ("ksoftirqd/1", 25, 3, 0),
            ],
        ),
    ]
}

#[test]
fn each_pair_is_counted_once() {
    for (title, records, expected) in pairs().into_iter().chain(sequences()) {
        let (events, nesting) = replay(records);
        assert_eq!(shown(&events), expected, "{title}");
        assert_eq!((nesting.breaks(), nesting.lost()), (0, 0), "{title}");
    }
}

/// The other way round nothing interrupts: such a begin says that an end was lost.
#[test]
fn what_cannot_interrupt_closes_what_it_would_have() {
    for (title, first, second) in [
        ("a softirq in an interrupt", (TIMER, "local_timer"), (RCU, "RCU")),
        ("an interrupt in an interrupt", (TIMER, "local_timer"), (DISK, "disk")),
        ("a softirq in a softirq", (RCU, "RCU"), (RCU, "RCU")),
    ] {
        let records = vec![
            enter(10, OWN, first.0, first.1),
            enter(20, OWN, second.0, second.1),
            exit(25, OWN, second.0),
        ];
        let (events, mut nesting) = replay(records);
        assert_eq!(shown(&events), [(second.1, 20, 5, 0)], "{title}");
        assert_eq!((nesting.breaks(), broken(&mut nesting)), (1, vec![(10, 20)]), "{title}");
    }
}

#[test]
fn threads_keep_their_names() {
    let (events, _) = replay(vec![switch(10, OWN, 7, "kworker/1:2"), switch(14, 7, OWN, "own")]);
    let expected = KernelEvent {
        cpu: 1,
        start_ns: 10,
        duration_ns: 4,
        class: Class::Thread,
        name: "kworker/1:2".into(),
        pid: 7,
        priority: 120,
        depth: 0,
    };
    assert_eq!(events, [expected]);
}
