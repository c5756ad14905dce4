//! The ticket lock through every interleaving (`ci/loom`): members in a round robin, tickets in a pipeline.
//! Each property has mistakes planted in the code itself, which loom must find.

use super::{MemberEntry, MemberGuard, TicketedPipeline, TurnMember};
use crate::sync::plant;
use loom::sync::Arc;
use loom::thread;

fn two_members<T>(value: T) -> [TurnMember<T>; 2] {
    TurnMember::round_robin(2, value).try_into().expect("two members")
}

fn turn<T>(member: &mut TurnMember<T>) -> Option<MemberGuard<'_, T>> {
    match member.enter() {
        MemberEntry::Turn(turn) => Some(turn),
        _ => None,
    }
}

/// The first member has its turn, the second wants one. The second has it and sees what the first wrote, or
/// it sleeps and was notified.
fn turns() {
    loom::model(|| {
        let [mut first, mut second] = two_members(0);
        let other = thread::spawn(move || {
            if let Some(value) = turn(&mut second) {
                assert_eq!(*value, 1, "out of order");
                return false;
            }
            let sleeps = second.wait();
            if !sleeps {
                assert_eq!(turn(&mut second).map(|value| *value), Some(1), "`wait` said that it is its turn");
            }
            sleeps
        });
        let mut value = turn(&mut first).expect("it begins");
        *value = 1;
        let notified = value.pass();
        let sleeps = other.join().unwrap();
        assert!(!sleeps || notified == Some(1), "it sleeps for ever");
    });
}

#[test]
fn model_members_take_turns() {
    turns();
}

#[test]
#[should_panic]
fn model_members_find_no_fence_in_wait() {
    plant("no fence in wait");
    turns();
}

#[test]
#[should_panic]
fn model_members_find_no_fence_in_pass() {
    plant("no fence in pass");
    turns();
}

#[test]
#[should_panic]
fn model_members_find_no_second_check() {
    plant("no second check");
    turns();
}

#[test]
#[should_panic]
fn model_members_find_a_relaxed_leave() {
    plant("relaxed leave");
    turns();
}

#[test]
#[should_panic]
fn model_members_find_a_relaxed_enter() {
    plant("relaxed enter");
    turns();
}

/// The first member closes in its turn; the second sees that, or sleeps and was notified.
#[test]
fn model_members_close() {
    loom::model(|| {
        let [mut first, mut second] = two_members(());
        let other = thread::spawn(move || {
            let sleeps = !matches!(second.enter(), MemberEntry::Closed) && second.wait();
            assert!(sleeps || matches!(second.enter(), MemberEntry::Closed));
            sleeps
        });
        let notified = turn(&mut first).expect("it begins").close().next();
        let sleeps = other.join().unwrap();
        assert!(!sleeps || notified == Some(1), "it sleeps for ever");
    });
}

/// The first member keeps its turn from one step to the next, while the second tries to take the value over:
/// not between the two.
#[test]
fn model_members_keep() {
    loom::model(|| {
        let [mut first, mut second] = two_members((0, 0));
        let other = thread::spawn(move || {
            let Some(mut value) = second.take_over() else { return };
            assert_eq!(value.0, value.1, "in the middle of a turn");
            *value = (9, 9);
        });
        let begin = |mut value: MemberGuard<'_, (u32, u32)>| {
            value.0 = 1;
            value.keep();
        };
        if turn(&mut first).map(begin).is_some() {
            let mut value = turn(&mut first).expect("it was kept");
            assert_eq!(value.0, 1, "the other member was there");
            value.1 = 1;
            value.keep();
            first.release();
        }
        other.join().unwrap();
        let value = *first.take_over().unwrap();
        assert_eq!(value.0, value.1);
    });
}

/// The second member takes the value over while the first comes for its turn: one of them has it, or both,
/// one after the other.
fn the_end_and_a_late_turn() {
    loom::model(|| {
        let [mut first, mut second] = two_members(0);
        let other = thread::spawn(move || {
            second.take_over().map_or(0, |mut value| {
                *value += 1;
                1
            })
        });
        let own = turn(&mut first).map_or(0, |mut value| {
            *value += 1;
            1
        });
        let touched = own + other.join().unwrap();
        assert!(touched > 0);
        assert_eq!(*first.take_over().unwrap(), touched);
    });
}

#[test]
fn model_members_take_over() {
    the_end_and_a_late_turn();
}

#[test]
#[should_panic]
fn model_members_find_an_enter_by_load_and_store() {
    plant("enter by load and store");
    the_end_and_a_late_turn();
}

/// Takes a ticket through two stations, if it can begin; returns the number that it found at the first one.
fn pass_both(pipeline: &TicketedPipeline<(u32, u32)>) -> Option<u32> {
    let mut ticket = pipeline.begin()?;
    let number = {
        let mut first = ticket.arrive().expect("it has begun there");
        first.0 += 1;
        first.0
    };
    loop {
        let Some(mut second) = ticket.arrive() else {
            thread::yield_now();
            continue;
        };
        assert_eq!(second.0 + 1, number, "out of order");
        // Two words written as one: another ticket in between would see them differ.
        assert_eq!(second.0, second.1);
        second.0 = number;
        second.1 = number;
        return Some(number);
    }
}

/// Two threads begin when they can: the second station sees their tickets in the order of the first.
fn two_tickets() {
    loom::model(|| {
        let pipeline = Arc::new(TicketedPipeline::new([(0, 0), (0, 0)]));
        let other = {
            let pipeline = Arc::clone(&pipeline);
            thread::spawn(move || pass_both(&pipeline))
        };
        let own = pass_both(&pipeline);
        let other = other.join().unwrap();
        assert!(own.is_some() || other.is_some(), "one of them finds it free");
        assert_ne!(own, other, "both had the same ticket");
    });
}

#[test]
fn model_pipeline_two_tickets() {
    two_tickets();
}

#[test]
#[should_panic]
fn model_pipeline_finds_a_relaxed_leave() {
    plant("relaxed leave");
    two_tickets();
}

#[test]
#[should_panic]
fn model_pipeline_finds_a_relaxed_arrive() {
    plant("relaxed arrive");
    two_tickets();
}

#[test]
#[should_panic]
fn model_pipeline_finds_a_relaxed_enter() {
    plant("relaxed enter");
    two_tickets();
}

#[test]
#[should_panic]
fn model_pipeline_finds_an_enter_by_load_and_store() {
    plant("enter by load and store");
    two_tickets();
}

#[test]
#[should_panic]
fn model_pipeline_finds_no_check_of_the_ticket() {
    plant("no check of the ticket");
    two_tickets();
}

/// A ticket closes the pipeline by what it leaves at the first station; later ones do not begin, and change
/// nothing.
#[test]
fn model_pipeline_closed() {
    loom::model(|| {
        let pipeline = Arc::new(TicketedPipeline::new([(true, 0)]));
        let other = {
            let pipeline = Arc::clone(&pipeline);
            thread::spawn(move || {
                let Some(mut ticket) = pipeline.begin_if(|value| value.0) else { return 0 };
                ticket.arrive().expect("it has begun there").1 += 1;
                1
            })
        };
        let mut ticket = loop {
            if let Some(ticket) = pipeline.begin() {
                break ticket;
            }
            thread::yield_now();
        };
        let before = {
            let mut first = ticket.arrive().expect("it has begun there");
            first.0 = false;
            first.1
        };
        assert_eq!(other.join().unwrap(), before, "it came after the end");
        let mut ticket = pipeline.begin().expect("the station is free");
        assert_eq!(*ticket.arrive().expect("it has begun there"), (false, before));
    });
}
