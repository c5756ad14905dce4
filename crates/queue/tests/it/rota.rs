//! Turns and ranges, through their public interface and with threads.
#![cfg(not(loom))]

use crate::stress::{Dice, stress_time, watched};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onbeat_queue::{MemberEntry, Ranges, TurnMember};
use std::sync::Arc;
use std::time::Instant;

#[test]
fn a_turn_that_is_not_passed_stays() {
    let mut seats = TurnMember::round_robin(2, 0);
    let mut second = seats.pop().unwrap();
    let mut first = seats.pop().unwrap();
    let MemberEntry::Turn(mut turn) = first.enter() else { panic!("it begins") };
    *turn += 1;
    assert!(matches!(second.enter(), MemberEntry::NotYet) && second.take_over().is_none());
    drop(turn);
    assert!(matches!(second.enter(), MemberEntry::NotYet));
    assert_eq!(*second.take_over().unwrap(), 1);
    let MemberEntry::Turn(turn) = first.enter() else { panic!("it is still its turn") };
    assert_eq!(turn.pass(), None, "nobody has asked");
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
    let mut seats = TurnMember::round_robin(2, 0);
    let mut second = seats.pop().unwrap();
    let mut first = seats.pop().unwrap();
    let keep = |seat: &mut TurnMember<i32>| match seat.enter() {
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
    // Taken over by another one, it cannot be kept.
    second.take_over().unwrap().keep();
    assert!(keep(&mut first) && !keep(&mut second));
    assert_eq!(*first.take_over().unwrap(), 3, "what it has kept it has");
    assert_eq!(*second.take_over().unwrap(), 3);
    assert!(keep(&mut first));
    let MemberEntry::Turn(turn) = first.enter() else { panic!("it is in it") };
    assert_eq!(turn.pass(), None);
    assert!(!keep(&mut first) && keep(&mut second));
    drop(second);
    assert_eq!(*first.take_over().unwrap(), 5, "the seat is gone, and with it what was kept");
}

#[test]
fn a_panic_in_a_turn_leaves_it_where_it_is() {
    let mut seats = TurnMember::round_robin(1, 5);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _turn = seats[0].enter();
        panic!("in the middle of it");
    }));
    assert!(caught.is_err());
    assert!(matches!(seats[0].enter(), MemberEntry::Turn(turn) if *turn == 5));
}

#[test]
#[should_panic(expected = "a round robin of 65")]
fn a_rota_has_a_limit() {
    drop(TurnMember::round_robin(65, ()));
}

/// Members take turns for a while, asleep between two of them, and stop now and then in the middle; all turns are in order.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
fn turns_are_in_order() {
    let time = stress_time();
    watched(time, move || {
        for members in [2, 3, 5] {
            let end = Instant::now() + time / 3;
            let is_over = Arc::new(AtomicBool::new(false));
            let seats = TurnMember::round_robin(members, 0u64);
            let threads: Vec<_> = seats
                .into_iter()
                .map(|mut seat| {
                    let is_over = Arc::clone(&is_over);
                    std::thread::spawn(move || {
                        let (place, mut dice) = (seat.place(), Dice(seat.place() as u64 + 7));
                        loop {
                            dice.maybe_stop();
                            // Now and then it asks to be told, and comes again all the same.
                            let asks = dice.below(4) == 0 && seat.wait();
                            if asks {
                                std::thread::yield_now();
                            }
                            match seat.enter() {
                                MemberEntry::Closed => return,
                                MemberEntry::NotYet => std::thread::yield_now(),
                                MemberEntry::Turn(mut count) => {
                                    assert_eq!(*count % members as u64, place as u64);
                                    *count += 1;
                                    if place == 0 && Instant::now() > end {
                                        is_over.store(true, Ordering::Relaxed);
                                        assert!(count.close().all(|told| told < members));
                                    } else if let Some(told) = count.pass() {
                                        assert_eq!(told, (place + 1) % members);
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
#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
fn every_number_is_claimed_once() {
    for (limit, width) in [(0, 1), (1, 64), (10_007, 1), (10_007, 64)] {
        let ranges = Arc::new(Ranges::new(limit, width));
        let (sum, count) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (ranges, sum, count) = (Arc::clone(&ranges), Arc::clone(&sum), Arc::clone(&count));
                std::thread::spawn(move || {
                    loop {
                        let range = ranges.claim();
                        if range.is_empty() {
                            return;
                        }
                        count.fetch_add(range.end - range.start, Ordering::Relaxed);
                        sum.fetch_add(range.sum::<u64>(), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(count.load(Ordering::Relaxed), limit);
        assert_eq!(sum.load(Ordering::Relaxed), (0..limit).sum::<u64>());
    }
}
