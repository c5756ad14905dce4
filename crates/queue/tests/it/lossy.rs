//! The ring that overwrites, through its public interface: against a plain queue, and with threads.
#![cfg(not(loom))]

use crate::stress::{Dice, stress_time, watched};
use onbeat_queue::{Lossy, Owner};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

proptest! {
    #[test]
    fn the_oldest_item_makes_room(capacity in 1usize..20, steps in prop::collection::vec(0u8..10, 0..600)) {
        let (mut producer, mut consumer) = (Owner::new(), Owner::new());
        let ring: Lossy<u64> = Lossy::new(&producer, &consumer, capacity);
        let mut plain = VecDeque::new();
        // An item that was peeked at is out of the ring and cannot be overwritten any more.
        let mut held = None;
        let (mut sent, mut dropped, mut taken, mut deepest) = (0, 0, 0, 0);
        for step in steps {
            match step {
                0..=4 => {
                    let oldest = if plain.len() == capacity { plain.pop_front() } else { None };
                    prop_assert_eq!(ring.push(&mut producer, sent), oldest);
                    plain.push_back(sent);
                    sent += 1;
                    dropped += u64::from(oldest.is_some());
                    deepest = deepest.max(plain.len());
                }
                5 => {
                    held = held.or_else(|| plain.pop_front());
                    prop_assert_eq!(ring.peek(&mut consumer, |item| *item), held);
                }
                6 => {
                    let there = (plain.len() + usize::from(held.is_some())).min(capacity);
                    prop_assert_eq!(ring.poll(&mut consumer), there);
                    prop_assert_eq!(ring.len(&consumer), there);
                }
                _ => {
                    let some = ring.len(&consumer) > 0;
                    let item = held.take().or_else(|| plain.pop_front());
                    prop_assert_eq!(ring.pop(&mut consumer), item);
                    prop_assert!(item.is_some() || !some, "an item was expected");
                    taken += u64::from(item.is_some());
                }
            }
            prop_assert_eq!((ring.sent(&producer), ring.dropped(&producer)), (sent, dropped));
            prop_assert_eq!(ring.taken(&consumer), taken);
            prop_assert_eq!(ring.deepest(&producer) as usize, deepest);
        }
    }
}

#[test]
fn items_are_dropped_once() {
    let item = Arc::new(());
    let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Lossy::new(&producer, &consumer, 3);
    for _ in 0..5 {
        ring.push(&mut producer, Arc::clone(&item));
    }
    drop(ring.pop(&mut consumer));
    assert_eq!(Arc::strong_count(&item), 3);
    ring.peek(&mut consumer, |_| ()).unwrap();
    for _ in 0..3 {
        ring.push(&mut producer, Arc::clone(&item));
    }
    assert_eq!(Arc::strong_count(&item), 5, "three in the ring and one in the hand");
    assert!(!ring.is_left(&producer) && !ring.is_closed(&consumer));
    ring.leave(&mut consumer);
    ring.close(&mut producer);
    assert!(ring.is_left(&producer) && ring.is_closed(&consumer));
    drop(ring);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
#[should_panic(expected = "belongs to another worker")]
fn the_producer_cannot_take() {
    let (mut producer, consumer) = (Owner::new(), Owner::new());
    let ring: Lossy<u8> = Lossy::new(&producer, &consumer, 1);
    let _ = ring.pop(&mut producer);
}

#[test]
#[should_panic(expected = "a ring holds 1 to 2^24 items, not 0")]
fn a_ring_for_nothing_is_refused() {
    let _ = Lossy::<u8>::new(&Owner::new(), &Owner::new(), 0);
}

/// An item that shows when it was torn.
struct Item {
    number: u64,
    again: [u64; 8],
    _alive: Arc<()>,
}

/// Items that one side has received: their count, the sum of their numbers, and the least next number.
#[derive(Default)]
struct Had {
    items: u64,
    sum: u64,
    next: u64,
}

impl Had {
    fn take(&mut self, item: &Item) {
        assert!(item.again.iter().all(|again| *again == item.number), "a torn item");
        assert!(item.number >= self.next, "an item came twice or late");
        self.next = item.number + 1;
        self.items += 1;
        self.sum += item.number;
    }
}

#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
fn send_and_take(capacity: usize, time: Duration) {
    let alive = Arc::new(());
    let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Arc::new(Lossy::new(&producer, &consumer, capacity));
    let end = Instant::now() + time;
    let sender = std::thread::spawn({
        let (ring, alive) = (Arc::clone(&ring), Arc::clone(&alive));
        move || {
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
            let (mut number, mut back) = (0, Had::default());
            while Instant::now() < end {
                for _ in 0..dice.below(200) {
                    let item = Item { number, again: [number; 8], _alive: Arc::clone(&alive) };
                    if let Some(oldest) = ring.push(&mut producer, item) {
                        assert!(number - oldest.number >= capacity as u64);
                        back.take(&oldest);
                    }
                    number += 1;
                    dice.maybe_stop();
                }
                // Lets the consumer catch up now and then.
                if dice.below(3) == 0 {
                    std::thread::yield_now();
                }
            }
            ring.close(&mut producer);
            assert_eq!((ring.sent(&producer), ring.dropped(&producer)), (number, back.items));
            assert!(ring.deepest(&producer) as usize <= capacity);
            (number, back)
        }
    });
    let mut dice = Dice(0xd1b5_4a32_d192_ed03);
    let mut popped = Had::default();
    loop {
        let closed = ring.is_closed(&consumer);
        let visible = ring.poll(&mut consumer);
        assert!(visible <= capacity);
        for _ in 0..dice.below(visible as u64 + 1) {
            let peeked = if dice.below(4) == 0 { ring.peek(&mut consumer, |item| item.number) } else { None };
            dice.maybe_stop();
            let item = ring.pop(&mut consumer).expect("what was seen, or a younger one");
            assert!(peeked.is_none_or(|number| number == item.number), "another item than that seen");
            dice.maybe_stop();
            popped.take(&item);
        }
        if visible == 0 {
            if closed {
                break;
            }
            std::hint::spin_loop();
        }
    }
    let (sent, back) = sender.join().unwrap();
    assert!(ring.pop(&mut consumer).is_none());
    assert_eq!(popped.next, sent, "the last item cannot go");
    assert_eq!(popped.items + back.items, sent, "items were lost or doubled");
    assert_eq!(popped.sum + back.sum, sent * (sent - 1) / 2, "items were lost or doubled");
    assert_eq!(Arc::strong_count(&alive), 1, "an item was not dropped");
}

#[test]
fn stress_each_item_is_popped_or_comes_back() {
    let time = stress_time();
    watched(time, move || {
        for capacity in [1, 2, 3, 64] {
            send_and_take(capacity, time / 4);
        }
    });
}
