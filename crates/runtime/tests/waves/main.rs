//! Threads that carry messages through the same operators, one after the other: all operators see all
//! messages in order.

#![allow(clippy::disallowed_macros, reason = "a long test says what it does")]

mod chain;
#[path = "../it/watchdog/mod.rs"]
mod watchdog;

use chain::{Case, Mishap, Seen, graph};
use onbeat_os::allocations::CountingAllocator;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_runtime::{Idle, OnHang, Options, RunError, Scheduler, Share};
use onbeat_trace::record::{FaultKind, Record};
use proptest::prelude::*;
use std::alloc::System;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

#[global_allocator]
static ALLOCATOR: CountingAllocator<System> = CountingAllocator::around(System);

/// One at a time: others help where there is a core for them.
fn watched(seconds: u64, test: impl FnOnce() + Send + 'static) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    watchdog::watched(seconds, test);
}

fn options(workers: usize, idle: Idle) -> Options {
    Options { scheduler: Scheduler::Event, workers: Some(workers), idle, ..Options::default() }
}

fn helped(record: &Record) -> u64 {
    record.threads.iter().filter_map(|thread| thread.sharing).map(|sharing| sharing.helped).sum()
}

/// All messages went all the way, and are counted.
fn is_whole(record: &Record, seen: &Seen, messages: u64) {
    assert_eq!(seen.taken.load(Ordering::Relaxed), messages);
    for edge in &record.edges {
        assert_eq!((edge.sent, edge.received, edge.dropped), (messages, messages, 0), "{}", edge.from);
    }
    for operator in record.operators.iter().filter(|operator| operator.name.starts_with("count")) {
        // One of them may be the look behind the last one.
        assert!((messages..=messages + 1).contains(&operator.steps), "{}: {}", operator.name, operator.steps);
    }
}

/// Runs until others have helped: whether they do depends on what else the machine does.
fn run_until_helped(idle: Idle, workers: usize, case: impl Fn(u64) -> Case) -> (Record, Arc<Seen>, u64) {
    let mut messages = 30_000;
    loop {
        let (graph, seen) = graph(case(messages));
        let record = graph.run(&options(workers, idle)).unwrap_or_else(|error| panic!("{error}"));
        eprintln!("{messages} messages, {} of them with others", helped(&record));
        if helped(&record) > 0 {
            return (record, seen, messages);
        }
        is_whole(&record, &seen, messages);
        messages += messages / 2;
        assert!(messages < 3_000_000, "nobody helps");
    }
}

#[test]
fn messages_stay_in_order() {
    watched(300, || {
        for (idle, workers) in
            [(Idle::SpinFor(20_000), 2), (Idle::Park, 2), (Idle::Spin, 2), (Idle::SpinFor(20_000), 4)]
        {
            let (record, seen, messages) = run_until_helped(idle, workers, |messages| Case::new(messages, 6));
            is_whole(&record, &seen, messages);
            assert_eq!(record.threads.iter().filter(|thread| thread.sharing.is_some()).count(), workers);
        }
    });
}

#[test]
fn no_memory_is_asked_for() {
    watched(100, || {
        let case = |messages| Case { keys: false, ..Case::new(messages, 4) };
        let (record, ..) = run_until_helped(Idle::SpinFor(20_000), 2, case);
        let workers = record.threads.iter().filter(|thread| thread.sharing.is_some());
        let asked: Vec<_> = workers.map(|thread| (&*thread.name, thread.allocations)).collect();
        assert!(asked.len() == 2 && asked.iter().all(|(_, asked)| *asked == Some(0)), "{asked:?}");
    });
}

/// The source steps now and then, the sink refuses what it is shown, some messages are followed: those go
/// over the edges.
#[test]
fn what_is_out_of_the_ordinary_goes_over_the_edges() {
    watched(300, || {
        let never = u64::MAX;
        for (steps, refuses, due, source_work) in [
            (31, never, never, 0),
            (never, 17, never, 0),
            (never, never, 23, 0),
            (101, 67, 41, 0),
            // The source alone in the first stage.
            (101, 67, 41, 900),
        ] {
            let case = |messages| Case { steps, refuses, due, source_work, ..Case::new(messages, 5) };
            let (record, seen, messages) = run_until_helped(Idle::SpinFor(20_000), 2, case);
            is_whole(&record, &seen, messages);
            let by_step = seen.by_step.load(Ordering::Relaxed);
            assert!(refuses == u64::MAX || by_step >= messages / refuses, "{by_step} of {messages}");
            if due < u64::MAX {
                let followed = record.paths.iter().map(|path| path.latency.count).sum::<u64>();
                assert!(followed >= messages / due, "{followed} of {messages}, each {due}th");
            }
        }
    });
}

#[test]
fn nobody_helps_a_chain_that_is_not_worth_it_to_be_slower() {
    watched(100, || {
        let case = Case { work: vec![0; 4], ..Case::new(100_000, 4) };
        let (graph, seen) = graph(case);
        let record = graph.run(&options(2, Idle::SpinFor(20_000))).unwrap();
        is_whole(&record, &seen, 100_000);
    });
}

/// One of them fails: the run ends, the failure is its own, and all are stopped.
#[test]
fn a_failure_is_told_as_everywhere() {
    watched(300, || {
        let at = 40_000;
        let panics = |operator| (Mishap::Panic { operator, message: at }, FaultKind::Panic, operator);
        for (mishap, kind, operator) in [
            panics(0),
            panics(1),
            panics(4),
            panics(6),
            panics(7),
            (Mishap::Rate { message: at }, FaultKind::Error, 1),
        ] {
            let (graph, seen) = graph(Case { mishap, ..Case::new(100_000, 6) });
            let record = match graph.run(&options(2, Idle::SpinFor(20_000))) {
                Err(RunError::Failed(record)) => record,
                other => panic!("{mishap:?}: {other:?}"),
            };
            let name = match operator {
                0 => "source".to_string(),
                7 => "sink".to_string(),
                number => format!("count{number}"),
            };
            assert!(record.result.reason.contains(&*name), "{mishap:?}: {}", record.result.reason);
            let text = if kind == FaultKind::Panic { "fell over at 40000" } else { "8000" };
            assert!(record.result.reason.contains(text), "{}", record.result.reason);
            // Earlier messages came through; the other threads may hold some more.
            let taken = seen.taken.load(Ordering::Relaxed);
            assert!((at - 32..=at + 1).contains(&taken), "{mishap:?}: {taken}");
            let mut stopped: Vec<u64> =
                seen.stopped.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|it| it.0).collect();
            stopped.sort_unstable();
            assert_eq!(stopped, [0, 7], "{mishap:?}");
        }
    });
}

/// One does not come back from a message, on whichever thread: it is found, and the run ends without that
/// thread.
#[test]
fn who_does_not_come_back_is_named() {
    watched(200, || {
        for message in 40_000..40_004 {
            let (go, wait) = mpsc::channel();
            let mishap = Mishap::Stuck { operator: 3, message };
            let (graph, _) = graph(Case { mishap, wait: Some(wait), ..Case::new(80_000, 4) });
            let options = Options {
                watchdog_ns: Some(300_000_000),
                on_hang: OnHang::Stop,
                ..options(2, Idle::SpinFor(20_000))
            };
            let record = match graph.run(&options) {
                Err(RunError::Failed(record)) => record,
                other => panic!("{other:?}"),
            };
            drop(go);
            assert!(record.result.reason.contains("count3"), "{}", record.result.reason);
        }
    });
}

#[test]
fn a_run_that_is_stopped_works_off_what_is_under_way() {
    watched(100, || {
        for _ in 0..20 {
            let (graph, seen) = graph(Case::new(u64::MAX, 5));
            let run = graph.start(&options(2, Idle::SpinFor(20_000))).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(15));
            run.handle().stop();
            let record = run.wait().unwrap_or_else(|error| panic!("{error}"));
            is_whole(&record, &seen, record.edges[0].sent);
        }
    });
}

fn cases() -> impl Strategy<Value = (u64, u64, Vec<u64>, [u64; 3])> {
    let rare = || prop_oneof![Just(u64::MAX), 2..200u64];
    let work = prop::collection::vec(0..600u64, 2..9);
    (5_000..20_000u64, 0..3_000u64, work, [rare(), rare(), rare()])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever they do, and wherever the run is cut.
    #[test]
    fn any_chain_comes_through((messages, source_work, work, [steps, refuses, due]) in cases(), always in any::<bool>()) {
        let (sender, wait) = mpsc::channel();
        watched(60, move || {
            let operators = work.len() as u64;
            let case = Case { work, source_work, steps, refuses, due, ..Case::new(messages, operators) };
            let (graph, seen) = graph(case);
            let share = if always { Share::Always } else { Share::Heavy };
            let record = graph.run(&Options { share, ..options(2, Idle::SpinFor(20_000)) }).unwrap();
            is_whole(&record, &seen, messages);
            let _ = sender.send(());
        });
        prop_assert!(wait.recv().is_ok());
    }
}
