//! The inbox against a plain reference, and misuse that it refuses.
#![cfg(not(loom))]

mod threads;

use onbeat_queue::sync::atomic::{AtomicIsize, Ordering};
use onbeat_queue::{Inbox, Owner, Sleeper};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Counts the calls that it gets.
#[derive(Default)]
struct Counts {
    claims: AtomicIsize,
    unclaims: AtomicIsize,
    wakes: AtomicIsize,
}

impl Counts {
    /// Returns claims that were not taken back, and wakes.
    fn now(&self) -> (isize, isize) {
        // Relaxed: read when the counting threads have joined.
        let get = |count: &AtomicIsize| count.load(Ordering::Relaxed);
        (get(&self.claims) - get(&self.unclaims), get(&self.wakes))
    }
}

impl Sleeper for Counts {
    fn claim(&self) {
        self.claims.fetch_add(1, Ordering::Relaxed);
    }

    fn unclaim(&self) {
        self.unclaims.fetch_add(1, Ordering::Relaxed);
    }

    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }
}

const ITEMS: u32 = 5;
const SLOTS: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    Schedule(usize, u32),
    /// Targets that the first, second, ... item to run schedules.
    Drain(Vec<(usize, u32)>),
    Sleep,
    WakeUp,
}

fn step() -> impl Strategy<Value = Step> {
    // More slots than the inbox has, for the modulo.
    let target = || (0..2 * SLOTS, 0..ITEMS);
    prop_oneof![
        4 => target().prop_map(|(slot, item)| Step::Schedule(slot, item)),
        2 => prop::collection::vec(target(), 0..6).prop_map(Step::Drain),
        2 => Just(Step::Sleep),
        2 => Just(Step::WakeUp),
    ]
}

#[derive(Default)]
struct Reference {
    queues: [VecDeque<u32>; SLOTS],
    pending: [bool; ITEMS as usize],
    /// Marks that are still there while asleep.
    marks: Option<[bool; SLOTS]>,
    wakes: isize,
}

impl Reference {
    fn schedule(&mut self, slot: usize, item: u32) -> bool {
        if std::mem::replace(&mut self.pending[item as usize], true) {
            return false;
        }
        self.queues[slot % SLOTS].push_back(item);
        if let Some(marks) = &mut self.marks {
            self.wakes += isize::from(std::mem::take(&mut marks[slot % SLOTS]));
        }
        true
    }

    fn drain(&mut self, reactions: &[(usize, u32)]) -> Vec<u32> {
        let mut ran = Vec::new();
        for slot in 0..SLOTS {
            for item in std::mem::take(&mut self.queues[slot]) {
                self.pending[item as usize] = false;
                if let Some(&(slot, item)) = reactions.get(ran.len()) {
                    self.schedule(slot, item);
                }
                ran.push(item);
            }
        }
        ran
    }

    fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

proptest! {
    #[test]
    fn it_does_what_the_reference_does(steps in prop::collection::vec(step(), 0..60)) {
        let mut owner = Owner::new();
        let inbox = Inbox::new(&owner, SLOTS, ITEMS as usize, Counts::default());
        let mut reference = Reference::default();
        for step in steps {
            match step {
                Step::Schedule(slot, item) => {
                    prop_assert_eq!(inbox.schedule(slot, item), reference.schedule(slot, item));
                }
                Step::Drain(reactions) => {
                    let mut ran = Vec::new();
                    let count = inbox.drain(&mut owner, |_, item| {
                        if let Some(&(slot, item)) = reactions.get(ran.len()) {
                            inbox.schedule(slot, item);
                        }
                        ran.push(item);
                    });
                    prop_assert_eq!(count, ran.len());
                    prop_assert_eq!(ran, reference.drain(&reactions));
                }
                Step::Sleep if reference.marks.is_some() => {}
                Step::Sleep => {
                    let went = inbox.sleep(&mut owner);
                    prop_assert_eq!(went, if reference.is_empty() { Ok(()) } else { Err(0) });
                    reference.marks = went.ok().map(|()| [true; SLOTS]);
                }
                Step::WakeUp => {
                    let marks = reference.marks.take().unwrap_or([true; SLOTS]);
                    let replaced = marks.iter().filter(|&&mark| !mark).count();
                    prop_assert_eq!(inbox.wake_up(&mut owner), replaced as u32);
                }
            }
            prop_assert_eq!(inbox.is_empty(), reference.is_empty());
            prop_assert_eq!(inbox.is_asleep(&owner), reference.marks.is_some());
            let woken = reference.marks.is_some_and(|marks| marks.contains(&false));
            prop_assert_eq!(inbox.is_woken(&owner), woken);
            prop_assert_eq!(inbox.sleeper().now(), (reference.wakes, reference.wakes));
        }
    }
}

#[test]
fn items_that_did_not_run_because_of_a_panic_are_still_scheduled() {
    let mut owner = Owner::new();
    let inbox = Inbox::new(&owner, 1, 4, Counts::default());
    for item in 0..4 {
        inbox.schedule(0, item);
    }
    let drained = catch_unwind(AssertUnwindSafe(|| inbox.drain(&mut owner, |_, item| assert!(item != 1))));
    assert!(drained.is_err());
    assert!(!inbox.schedule(0, 3) && inbox.schedule(0, 1));
    let mut ran = Vec::new();
    inbox.drain(&mut owner, |_, item| ran.push(item));
    assert_eq!(ran, [2, 3, 1]);
}

#[test]
fn an_inbox_may_move_and_end_with_items_in_it() {
    let mut owner = Owner::new();
    let inbox = Inbox::new(&owner, 2, 3, Counts::default());
    inbox.schedule(0, 1);
    let moved = Box::new(inbox);
    assert_eq!(moved.drain(&mut owner, |_, item| assert_eq!(item, 1)), 1);
    moved.schedule(1, 2);
}

#[test]
#[should_panic(expected = "another owner")]
fn the_wrong_owner_is_refused() {
    let inbox = Inbox::new(&Owner::new(), 1, 1, Counts::default());
    inbox.drain(&mut Owner::new(), |_, _| {});
}

#[test]
#[should_panic(expected = "there is no item 3 in this inbox: it has 3")]
fn an_item_that_is_not_there_is_refused() {
    Inbox::new(&Owner::new(), 1, 3, Counts::default()).schedule(0, 3);
}

#[test]
#[should_panic(expected = "at least one slot")]
fn an_inbox_without_slots_is_refused() {
    let _ = Inbox::new(&Owner::new(), 0, 3, Counts::default());
}

#[test]
#[should_panic(expected = "asleep already")]
fn sleeping_twice_is_refused() {
    let mut owner = Owner::new();
    let inbox = Inbox::new(&owner, 1, 1, Counts::default());
    inbox.sleep(&mut owner).unwrap();
    let _ = inbox.sleep(&mut owner);
}
