//! Stations that are passed in order, through their public interface and with threads.
#![cfg(not(loom))]

use crate::stress::{Dice, stress_time, watched};
use onbeat_queue::TicketedPipeline;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[test]
fn who_may_not_begin_was_never_there() {
    let relay = TicketedPipeline::new([1, 2]);
    assert!(relay.begin_if(|value| *value == 7).is_none());
    assert!(!relay.is_broken());
    let mut runner = relay.begin_if(|value| *value == 1).unwrap();
    assert_eq!(relay.len(), 2);
    assert_eq!(*runner.arrive().unwrap(), 1);
    assert!(!runner.is_through());
    assert_eq!(*runner.arrive().unwrap(), 2);
    assert!(runner.is_through() && runner.arrive().is_none());
    drop(runner);
    assert!(!relay.is_broken() && relay.begin().is_some());
}

#[test]
fn a_stay_that_lasts_keeps_the_next_one_out() {
    let relay = TicketedPipeline::new([0, 0]);
    let mut first = relay.begin().unwrap();
    drop(first.arrive());
    let at_second = first.arrive().unwrap();
    let mut second = relay.begin().unwrap();
    drop(second.arrive());
    assert!(second.arrive().is_none());
    let mut third = relay.begin().unwrap();
    drop(third.arrive());
    drop(at_second);
    assert!(third.arrive().is_none(), "it is the second one's turn");
    drop(second.arrive().unwrap());
    drop(third.arrive().unwrap());
    assert!(second.is_through() && third.is_through());
}

#[test]
fn a_runner_that_is_lost_breaks_the_relay() {
    let relay = TicketedPipeline::new([0, 0]);
    let mut runner = relay.begin().unwrap();
    drop(runner.arrive());
    let mut behind = relay.begin().unwrap();
    drop(behind.arrive());
    drop(runner);
    assert!(relay.is_broken() && relay.begin().is_none());
    assert!(behind.arrive().is_none(), "the one before was not there");
}

#[test]
fn a_panic_at_a_station_leaves_it_to_the_next_one() {
    let relay = TicketedPipeline::new([5]);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut runner = relay.begin().unwrap();
        let _stay = runner.arrive().unwrap();
        panic!("in the middle of it");
    }));
    assert!(caught.is_err() && !relay.is_broken(), "it was the last station");
    assert_eq!(*relay.begin().unwrap().arrive().unwrap(), 5);
    assert!(!relay.is_broken());
    let caught = catch_unwind(AssertUnwindSafe(|| relay.begin_if(|_| panic!("before it begins"))));
    assert!(caught.is_err());
}

#[test]
#[should_panic(expected = "a pipeline without stations")]
fn a_relay_has_a_station() {
    drop(TicketedPipeline::<()>::new([]));
}

/// Threads run again and again, with stops in between; each station sees all of them in the order in which they began, alone.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
fn runs_are_in_order() {
    let time = stress_time();
    watched(time, move || {
        for (threads, stations) in [(2, 1), (2, 3), (3, 2), (4, 5)] {
            let relay = Arc::new(TicketedPipeline::new((0..stations).map(|_| 0u64)));
            let (is_over, sum) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
            let threads: Vec<_> = (0..threads)
                .map(|place| {
                    let (relay, is_over, sum) = (Arc::clone(&relay), Arc::clone(&is_over), Arc::clone(&sum));
                    std::thread::spawn(move || {
                        let mut dice = Dice(place + 7);
                        while !is_over.load(Ordering::Relaxed) {
                            dice.maybe_stop();
                            let Some(mut runner) = relay.begin_if(|_| dice.below(8) > 0) else {
                                std::thread::yield_now();
                                continue;
                            };
                            let mut number = None;
                            while !runner.is_through() {
                                let Some(mut count) = runner.arrive() else {
                                    std::thread::yield_now();
                                    continue;
                                };
                                *count += 1;
                                assert_eq!(*number.get_or_insert(*count), *count, "out of order");
                                drop(count);
                                dice.maybe_stop();
                            }
                            sum.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            std::thread::sleep(time / 4);
            is_over.store(true, Ordering::Relaxed);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let runs = sum.load(Ordering::Relaxed);
            let mut runner = relay.begin().unwrap();
            for _ in 0..stations {
                assert_eq!(*runner.arrive().unwrap(), runs, "some runs were not at all stations");
            }
            assert!(runs > 0 && !relay.is_broken());
        }
    });
}
