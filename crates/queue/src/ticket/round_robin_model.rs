//! The rota, through every interleaving (`ci/loom`). Each property has mistakes planted in the code itself, which loom must
//! find.

use super::{MemberEntry, TurnMember};
use crate::sync::plant;
use loom::thread;

/// The first has its turn, the second wants it. It has it, and sees what the first wrote; or it sleeps, and was told.
fn turns() {
    loom::model(|| {
        let mut seats = TurnMember::round_robin(2, 0);
        let mut second = seats.pop().unwrap();
        let mut first = seats.pop().unwrap();
        let other = thread::spawn(move || {
            let mut sleeps = false;
            if let Some(value) = try_turn(&mut second) {
                assert_eq!(value, 1, "out of order");
            } else if !second.wait() {
                assert_eq!(try_turn(&mut second), Some(1), "it was said to be its turn");
            } else {
                sleeps = true;
            }
            sleeps
        });
        let MemberEntry::Turn(mut value) = first.enter() else { panic!("it begins") };
        *value = 1;
        let told = value.pass();
        let sleeps = other.join().unwrap();
        assert!(!sleeps || told == Some(1), "it sleeps for ever");
    });
}

fn try_turn(seat: &mut TurnMember<u32>) -> Option<u32> {
    match seat.enter() {
        MemberEntry::Turn(turn) => Some(*turn),
        _ => None,
    }
}

#[test]
fn model_rota_turns() {
    turns();
}

#[test]
#[should_panic]
fn model_rota_finds_no_fence_in_wait() {
    plant("no fence in wait");
    turns();
}

#[test]
#[should_panic]
fn model_rota_finds_no_fence_in_pass() {
    plant("no fence in pass");
    turns();
}

#[test]
#[should_panic]
fn model_rota_finds_no_second_look() {
    plant("no second look");
    turns();
}

#[test]
#[should_panic]
fn model_rota_finds_a_relaxed_pass() {
    plant("relaxed pass");
    turns();
}

#[test]
#[should_panic]
fn model_rota_finds_a_relaxed_enter() {
    plant("relaxed enter");
    turns();
}

/// The first closes it in its turn; the second sees that, or sleeps and was told.
#[test]
fn model_rota_close() {
    loom::model(|| {
        let mut seats = TurnMember::round_robin(2, ());
        let mut second = seats.pop().unwrap();
        let mut first = seats.pop().unwrap();
        let other = thread::spawn(move || {
            let sleeps = !matches!(second.enter(), MemberEntry::Closed) && second.wait();
            assert!(sleeps || matches!(second.enter(), MemberEntry::Closed));
            sleeps
        });
        let MemberEntry::Turn(turn) = first.enter() else { panic!("it begins") };
        let told = turn.close().next();
        let sleeps = other.join().unwrap();
        assert!(!sleeps || told == Some(1), "it sleeps for ever");
    });
}

/// The first keeps its turn from one step to the next, while somebody tries to take the value over: not between the two.
#[test]
fn model_rota_keep() {
    loom::model(|| {
        let mut seats = TurnMember::round_robin(2, (0, 0));
        let mut second = seats.pop().unwrap();
        let mut first = seats.pop().unwrap();
        let other = thread::spawn(move || {
            let Some(mut value) = second.take_over() else { return };
            assert_eq!(value.0, value.1, "in the middle of a turn");
            *value = (9, 9);
        });
        let step = |seat: &mut TurnMember<(u32, u32)>, act: fn(&mut (u32, u32))| match seat.enter() {
            MemberEntry::Turn(mut value) => {
                act(&mut value);
                value.keep();
                true
            }
            _ => false,
        };
        if step(&mut first, |value| value.0 = 1) {
            let is_in_it = step(&mut first, |value| {
                assert_eq!(value.0, 1, "somebody else was there");
                value.1 = 1;
            });
            assert!(is_in_it);
            first.release();
        }
        other.join().unwrap();
        let value = *first.take_over().unwrap();
        assert_eq!(value.0, value.1);
    });
}

/// Somebody takes the value over while its member comes for a turn: one of them has it, or both, one after the other.
fn the_end_and_a_late_turn() {
    loom::model(|| {
        let mut seats = TurnMember::round_robin(2, 0);
        let mut second = seats.pop().unwrap();
        let other = thread::spawn(move || match second.take_over() {
            Some(mut value) => {
                *value += 1;
                1
            }
            None => 0,
        });
        let mut first = seats.pop().unwrap();
        let own = match first.enter() {
            MemberEntry::Turn(mut value) => {
                *value += 1;
                1
            }
            _ => 0,
        };
        let touched = own + other.join().unwrap();
        assert!(touched > 0);
        assert_eq!(*first.take_over().unwrap(), touched);
    });
}

#[test]
fn model_rota_take_over() {
    the_end_and_a_late_turn();
}

#[test]
#[should_panic]
fn model_rota_finds_an_enter_by_load_and_store() {
    plant("enter by load and store");
    the_end_and_a_late_turn();
}
