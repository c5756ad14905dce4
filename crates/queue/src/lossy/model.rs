//! The ring's races, through every interleaving (`ci/loom`).

use super::Lossy;
use crate::owner::Owner;
use crate::sync::plant;
use loom::sync::Arc;
use loom::thread;

/// Makes a ring and its two tokens.
fn ring(capacity: usize) -> (Arc<Lossy<u32>>, Owner, Owner) {
    let (producer, consumer) = (Owner::new(), Owner::new());
    (Arc::new(Lossy::new(&producer, &consumer, capacity)), producer, consumer)
}

/// The producer overtakes the consumer. Each item is popped or comes back, once, and both in order. (Loom
/// watches the cells: no item is read while it is overwritten.)
fn items_are_popped_or_come_back(capacity: usize, items: u32, peek: bool) {
    loom::model(move || {
        let (ring, mut producer, mut consumer) = ring(capacity);
        assert_eq!(ring.push(&mut producer, 0), None);
        let thread = thread::spawn({
            let ring = ring.clone();
            move || {
                let back: Vec<u32> = (1..items).filter_map(|item| ring.push(&mut producer, item)).collect();
                assert_eq!(ring.dropped(&producer), back.len() as u64);
                back
            }
        });
        let mut popped = Vec::new();
        for _ in 0..2 {
            let peeked = if peek { ring.peek(&mut consumer, |item| *item) } else { None };
            let item = ring.pop(&mut consumer);
            assert!(peeked.is_none() || item == peeked, "another item than the one that was seen");
            popped.extend(item);
        }
        let back = thread.join().unwrap();
        assert!(ring.poll(&mut consumer) <= capacity);
        while let Some(item) = ring.pop(&mut consumer) {
            popped.push(item);
        }
        assert!(popped.is_sorted() && back.is_sorted());
        assert_eq!(popped.last(), Some(&(items - 1)), "the last item cannot go");
        let mut all = [popped, back].concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..items), "an item was lost or doubled");
    });
}

/// A consumer that sees the ring closed finds all items.
fn the_end_comes_after_the_items() {
    loom::model(|| {
        let (ring, mut producer, mut consumer) = ring(2);
        let thread = thread::spawn({
            let ring = ring.clone();
            move || {
                ring.push(&mut producer, 0);
                ring.push(&mut producer, 1);
                ring.close(&mut producer);
            }
        });
        if ring.is_closed(&consumer) {
            assert_eq!(ring.pop(&mut consumer), Some(0));
            assert_eq!(ring.poll(&mut consumer), 1);
        }
        thread.join().unwrap();
    });
}

/// An item that a poll has counted can be popped: itself, or a younger one.
fn a_look_is_kept() {
    loom::model(|| {
        let (ring, mut producer, mut consumer) = ring(1);
        let thread = thread::spawn({
            let ring = ring.clone();
            move || {
                for item in 0..3 {
                    ring.push(&mut producer, item);
                }
            }
        });
        if ring.poll(&mut consumer) > 0 {
            assert!(ring.pop(&mut consumer).is_some());
        }
        thread.join().unwrap();
    });
}

#[test]
fn the_latest_of_one() {
    items_are_popped_or_come_back(1, 4, false);
}

#[test]
fn the_oldest_of_two_makes_room() {
    items_are_popped_or_come_back(2, 5, false);
}

#[test]
fn a_peeked_item_stays() {
    items_are_popped_or_come_back(1, 4, true);
}

#[test]
fn closed_is_seen_after_all_items() {
    the_end_comes_after_the_items();
}

#[test]
fn what_was_seen_can_be_popped() {
    a_look_is_kept();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_push_is_found() {
    plant("lossy push");
    items_are_popped_or_come_back(1, 4, false);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_claim_is_found() {
    plant("lossy claim");
    // The fourth item goes into the cell of the first, which the consumer released with its second claim.
    items_are_popped_or_come_back(1, 4, false);
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn a_relaxed_close_is_found() {
    plant("lossy close");
    the_end_comes_after_the_items();
}
