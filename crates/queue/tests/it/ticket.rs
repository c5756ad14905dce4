//! The ticket lock through its public interface and with threads: members in a round robin, tickets in a
//! pipeline.
#![cfg(not(loom))]

use crate::stress::{Dice, stress_time, watched};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onbeat_queue::{MemberEntry, TicketedPipeline, TurnMember};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

#[test]
fn a_turn_that_is_not_passed_stays() {
    let mut members = TurnMember::round_robin(2, 0);
    let mut second = members.pop().unwrap();
    let mut first = members.pop().unwrap();
    let MemberEntry::Turn(mut turn) = first.enter() else { panic!("it begins") };
    *turn += 1;
    assert!(matches!(second.enter(), MemberEntry::NotYet) && second.take_over().is_none());
    drop(turn);
    assert!(matches!(second.enter(), MemberEntry::NotYet));
    assert_eq!(*second.take_over().unwrap(), 1);
    let MemberEntry::Turn(turn) = first.enter() else { panic!("it is still its turn") };
    assert_eq!(turn.pass(), None, "no member waits");
    assert!(!second.wait(), "it is its turn already");
    assert!(first.wait());
    let MemberEntry::Turn(turn) = second.enter() else { panic!("it is its turn") };
    assert_eq!(turn.close().collect::<Vec<_>>(), [0]);
    assert!(matches!(first.enter(), MemberEntry::Closed) && matches!(second.enter(), MemberEntry::Closed));
    assert!(!first.wait());
    assert_eq!(*first.take_over().unwrap(), 1);
}

#[test]
fn a_turn_that_is_kept_is_nobody_elses() {
    let mut members = TurnMember::round_robin(2, 0);
    let mut second = members.pop().unwrap();
    let mut first = members.pop().unwrap();
    let keep = |member: &mut TurnMember<i32>| match member.enter() {
        MemberEntry::Turn(mut turn) => {
            *turn += 1;
            turn.keep();
            true
        }
        _ => false,
    };
    assert!(keep(&mut first) && keep(&mut first) && !keep(&mut second));
    assert!(second.take_over().is_none());
    first.release();
    first.release();
    assert_eq!(*second.take_over().unwrap(), 2);
    // A turn that another member took over cannot be kept.
    second.take_over().unwrap().keep();
    assert!(keep(&mut first) && !keep(&mut second));
    assert_eq!(*first.take_over().unwrap(), 3, "it has the turn that it kept");
    assert_eq!(*second.take_over().unwrap(), 3);
    assert!(keep(&mut first));
    let MemberEntry::Turn(turn) = first.enter() else { panic!("it kept its turn") };
    assert_eq!(turn.pass(), None);
    assert!(!keep(&mut first) && keep(&mut second));
    drop(second);
    assert_eq!(*first.take_over().unwrap(), 5, "the member is gone, and with it the turn that it kept");
}

#[test]
fn a_panic_in_a_turn_leaves_it_where_it_is() {
    let mut members = TurnMember::round_robin(1, 5);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _turn = members[0].enter();
        panic!("in the middle of it");
    }));
    assert!(caught.is_err());
    assert!(matches!(members[0].enter(), MemberEntry::Turn(turn) if *turn == 5));
}

#[test]
#[should_panic(expected = "a round robin of 65")]
fn a_round_robin_has_a_limit() {
    drop(TurnMember::round_robin(65, ()));
}

/// Members take turns, wait between two of them and pause now and then in the middle. All turns are in order.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
fn turns_are_in_order() {
    let time = stress_time();
    watched(time, move || {
        for count in [2, 3, 5] {
            let end = Instant::now() + time / 3;
            let is_over = Arc::new(AtomicBool::new(false));
            let members = TurnMember::round_robin(count, 0u64);
            let threads: Vec<_> = members
                .into_iter()
                .map(|mut member| {
                    let is_over = Arc::clone(&is_over);
                    std::thread::spawn(move || {
                        let (place, mut dice) = (member.place(), Dice(member.place() as u64 + 7));
                        loop {
                            dice.maybe_stop();
                            // Now and then it asks for a notification, and comes again without it.
                            if dice.below(4) == 0 && member.wait() {
                                std::thread::yield_now();
                            }
                            match member.enter() {
                                MemberEntry::Closed => return,
                                MemberEntry::NotYet => std::thread::yield_now(),
                                MemberEntry::Turn(mut turns) => {
                                    assert_eq!(*turns % count as u64, place as u64);
                                    *turns += 1;
                                    if place == 0 && Instant::now() > end {
                                        is_over.store(true, Ordering::Relaxed);
                                        assert!(turns.close().all(|next| next < count));
                                    } else if let Some(next) = turns.pass() {
                                        assert_eq!(next, (place + 1) % count);
                                    }
                                }
                            }
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert!(is_over.load(Ordering::Relaxed));
        }
    });
}

#[test]
fn a_ticket_that_may_not_begin_changes_nothing() {
    let pipeline = TicketedPipeline::new([1, 2]);
    assert!(pipeline.begin_if(|value| *value == 7).is_none());
    assert!(!pipeline.is_broken());
    let mut ticket = pipeline.begin_if(|value| *value == 1).unwrap();
    assert_eq!(pipeline.len(), 2);
    assert_eq!(*ticket.arrive().unwrap(), 1);
    assert!(!ticket.is_through());
    assert_eq!(*ticket.arrive().unwrap(), 2);
    assert!(ticket.is_through() && ticket.arrive().is_none());
    drop(ticket);
    assert!(!pipeline.is_broken() && pipeline.begin().is_some());
}

#[test]
fn a_long_turn_at_a_station_keeps_the_next_ticket_out() {
    let pipeline = TicketedPipeline::new([0, 0]);
    let mut first = pipeline.begin().unwrap();
    drop(first.arrive());
    let at_second = first.arrive().unwrap();
    let mut second = pipeline.begin().unwrap();
    drop(second.arrive());
    assert!(second.arrive().is_none());
    let mut third = pipeline.begin().unwrap();
    drop(third.arrive());
    drop(at_second);
    assert!(third.arrive().is_none(), "it is the second one's turn");
    drop(second.arrive().unwrap());
    drop(third.arrive().unwrap());
    assert!(second.is_through() && third.is_through());
}

#[test]
fn a_ticket_dropped_half_way_breaks_the_pipeline() {
    let pipeline = TicketedPipeline::new([0, 0]);
    let mut ticket = pipeline.begin().unwrap();
    drop(ticket.arrive());
    let mut behind = pipeline.begin().unwrap();
    drop(behind.arrive());
    drop(ticket);
    assert!(pipeline.is_broken() && pipeline.begin().is_none());
    assert!(behind.arrive().is_none(), "the ticket before has not been there");
}

#[test]
fn a_panic_at_a_station_leaves_it_to_the_next_ticket() {
    let pipeline = TicketedPipeline::new([5]);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut ticket = pipeline.begin().unwrap();
        let _turn = ticket.arrive().unwrap();
        panic!("in the middle of it");
    }));
    assert!(caught.is_err() && !pipeline.is_broken(), "it was the last station");
    assert_eq!(*pipeline.begin().unwrap().arrive().unwrap(), 5);
    assert!(!pipeline.is_broken());
    for (stations, breaks) in [(1, false), (2, true)] {
        let pipeline = TicketedPipeline::new(vec![0; stations]);
        let caught = catch_unwind(AssertUnwindSafe(|| pipeline.begin_if(|_| panic!("before it begins"))));
        assert!(caught.is_err());
        assert_eq!(pipeline.is_broken(), breaks, "{stations} stations");
    }
}

#[test]
#[should_panic(expected = "a pipeline without stations")]
fn a_pipeline_has_a_station() {
    drop(TicketedPipeline::<()>::new([]));
}

/// Threads take tickets through all stations, with pauses in between. Each station sees the tickets one at a
/// time, in the order in which they began.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
fn tickets_are_in_order() {
    let time = stress_time();
    watched(time, move || {
        for (threads, stations) in [(2, 1), (2, 3), (3, 2), (4, 5)] {
            let pipeline = Arc::new(TicketedPipeline::new((0..stations).map(|_| 0u64)));
            let (is_over, sum) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
            let threads: Vec<_> = (0..threads)
                .map(|place| {
                    let (pipeline, is_over, sum) =
                        (Arc::clone(&pipeline), Arc::clone(&is_over), Arc::clone(&sum));
                    std::thread::spawn(move || {
                        let mut dice = Dice(place + 7);
                        while !is_over.load(Ordering::Relaxed) {
                            dice.maybe_stop();
                            let Some(mut ticket) = pipeline.begin_if(|_| dice.below(8) > 0) else {
                                std::thread::yield_now();
                                continue;
                            };
                            let mut number = None;
                            while !ticket.is_through() {
                                let Some(mut count) = ticket.arrive() else {
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
            let mut ticket = pipeline.begin().unwrap();
            for _ in 0..stations {
                assert_eq!(*ticket.arrive().unwrap(), runs, "some tickets were not at all stations");
            }
            assert!(runs > 0 && !pipeline.is_broken());
        }
    });
}
