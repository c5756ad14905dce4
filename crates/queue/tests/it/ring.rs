//! Rings against a plain queue.
#![cfg(not(loom))]

use onbeat_queue::{Full, Owner, Ring};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::rc::Rc;

proptest! {
    #[test]
    fn a_ring_is_a_bounded_queue(capacity in 1usize..20, steps in prop::collection::vec(0u8..5, 0..400)) {
        let mut owner = Owner::new();
        let ring: Ring<u64, u64> = Ring::new(&owner, capacity);
        let mut plain = VecDeque::new();
        let (mut sent, mut taken, mut deepest) = (0, 0, 0);
        for step in steps {
            if step < 3 {
                let before = plain.len();
                match ring.push(&mut owner, sent, &(sent * 2)) {
                    Ok(len) => {
                        prop_assert_eq!(len as usize, before);
                        plain.push_back(sent);
                        sent += 1;
                    }
                    Err(Full(item)) => prop_assert_eq!((item, before), (sent, capacity)),
                }
            } else {
                prop_assert_eq!(ring.peek(&owner, |side| *side), plain.front().map(|item| item * 2));
                let before = plain.len() as u32;
                let expected = plain.pop_front().map(|item| (item, before));
                prop_assert_eq!(ring.pop(&mut owner), expected);
                if let Some((item, _)) = expected {
                    prop_assert_eq!(ring.side(&owner), item * 2);
                    taken += 1;
                }
            }
            deepest = deepest.max(plain.len());
            prop_assert_eq!(ring.len(&owner), plain.len());
            prop_assert_eq!(ring.is_empty(&owner), plain.is_empty());
            prop_assert_eq!((ring.sent(&owner), ring.taken(&owner)), (sent, taken));
            prop_assert_eq!(ring.deepest(&owner) as usize, deepest);
        }
    }
}

#[test]
fn items_are_dropped_once() {
    let item = Rc::new(());
    let mut owner = Owner::new();
    let ring: Ring<_> = Ring::new(&owner, 3);
    for _ in 0..5 {
        ring.push(&mut owner, Rc::clone(&item), &()).unwrap();
        drop(ring.pop(&mut owner));
    }
    for _ in 0..3 {
        ring.push(&mut owner, Rc::clone(&item), &()).unwrap();
    }
    assert_eq!(Rc::strong_count(&item), 4);
    assert!(ring.push(&mut owner, Rc::clone(&item), &()).is_err());
    drop(ring);
    assert_eq!(Rc::strong_count(&item), 1);
}

#[test]
#[should_panic(expected = "belongs to another worker")]
fn the_wrong_owner_is_refused() {
    let (owner, mut other) = (Owner::new(), Owner::new());
    let ring: Ring<u8> = Ring::new(&owner, 1);
    let _ = ring.pop(&mut other);
}

#[test]
#[should_panic(expected = "a ring holds 1 to 2^24 items, not 0")]
fn a_ring_for_nothing_is_refused() {
    let _: Ring<u8> = Ring::new(&Owner::new(), 0);
}
