//! The relay, through every interleaving (`ci/loom`). Each property has mistakes planted in the code itself, which loom must
//! find.

use super::TicketedPipeline;
use crate::sync::plant;
use loom::sync::Arc;
use loom::thread;

/// Writes its number down at both stations, if it comes to begin; says what it found at the first one.
fn run(relay: &TicketedPipeline<(u32, u32)>) -> Option<u32> {
    let mut runner = relay.begin()?;
    let number = {
        let mut first = runner.arrive().expect("it is there");
        first.0 += 1;
        first.0
    };
    loop {
        let Some(mut second) = runner.arrive() else {
            thread::yield_now();
            continue;
        };
        assert_eq!(second.0 + 1, number, "out of order");
        // Two words that are one: somebody else in between would see them differ.
        assert_eq!(second.0, second.1);
        second.0 = number;
        second.1 = number;
        return Some(number);
    }
}

/// Two threads begin when they can: what the first station saw in some order, the second sees in the same.
fn two_runners() {
    loom::model(|| {
        let relay = Arc::new(TicketedPipeline::new([(0, 0), (0, 0)]));
        let other = {
            let relay = Arc::clone(&relay);
            thread::spawn(move || run(&relay))
        };
        let own = run(&relay);
        let other = other.join().unwrap();
        assert!(own.is_some() || other.is_some(), "one of them finds it free");
        assert_ne!(own, other, "both were the same runner");
    });
}

#[test]
fn model_relay_two_runners() {
    two_runners();
}

#[test]
#[should_panic]
fn model_relay_finds_a_relaxed_leave() {
    plant("relaxed leave");
    two_runners();
}

#[test]
#[should_panic]
fn model_relay_finds_a_relaxed_arrive() {
    plant("relaxed arrive");
    two_runners();
}

#[test]
#[should_panic]
fn model_relay_finds_a_relaxed_begin() {
    plant("relaxed begin");
    two_runners();
}

#[test]
#[should_panic]
fn model_relay_finds_a_begin_by_load_and_store() {
    plant("begin by load and store");
    two_runners();
}

#[test]
#[should_panic]
fn model_relay_finds_no_look_at_the_number() {
    plant("no look at the number");
    two_runners();
}

/// One closes the relay by what it leaves at the first station; who comes later does not begin, and the relay is as it was.
#[test]
fn model_relay_closed() {
    loom::model(|| {
        let relay = Arc::new(TicketedPipeline::new([(true, 0)]));
        let other = {
            let relay = Arc::clone(&relay);
            thread::spawn(move || {
                let Some(mut runner) = relay.begin_if(|value| value.0) else { return 0 };
                runner.arrive().expect("it is there").1 += 1;
                1
            })
        };
        let mut runner = loop {
            if let Some(runner) = relay.begin() {
                break runner;
            }
            thread::yield_now();
        };
        let before = {
            let mut first = runner.arrive().expect("it is there");
            first.0 = false;
            first.1
        };
        assert_eq!(other.join().unwrap(), before, "it came behind the end");
        let mut runner = relay.begin().expect("nobody is there");
        assert_eq!(*runner.arrive().expect("it is there"), (false, before));
    });
}
