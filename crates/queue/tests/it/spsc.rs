//! The ring between two workers, through its public interface: against the plainest queue there is, and with
//! threads.
#![cfg(not(loom))]

use crate::stress::{Dice, stress_time, watched};
use onbeat_queue::{Full, Owner, Spsc};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

proptest! {
    #[test]
    fn a_ring_is_a_bounded_queue(capacity in 1usize..20, steps in prop::collection::vec(0u8..15, 0..600)) {
        let (mut producer, mut consumer) = (Owner::new(), Owner::new());
        let ring: Spsc<u64> = Spsc::new(&producer, &consumer, capacity);
        let mut visible = VecDeque::new();
        let mut sent = 0u64;
        let (mut published, mut seen, mut taken, mut released, mut deepest) = (0, 0, 0, 0, 0);
        let (mut wanted, mut closed, mut was_full) = (None, false, false);
        // Of what the consumer is to be told: of each (`None`), of so many more.
        let mut tells = None;
        for step in steps {
            let inside = (sent - released) as usize;
            match step {
                0..=3 => {
                    let result = match step {
                        0 | 1 => ring.push(&mut producer, sent),
                        _ => ring.stage(&mut producer, sent),
                    };
                    match result {
                        Ok(before) => {
                            prop_assert!((inside..capacity).contains(&(before as usize)));
                            sent += 1;
                            if step < 2 {
                                published = sent;
                            }
                        }
                        Err(Full(item)) => {
                            prop_assert_eq!((item, inside), (sent, capacity));
                            was_full = true;
                        }
                    }
                }
                4 => {
                    ring.publish(&mut producer);
                    published = sent;
                }
                5 => {
                    let items = 1 + sent as usize % 3;
                    let short = ring.wait_for_room(&mut producer, items);
                    published = sent;
                    prop_assert_eq!(short, inside + items.min(capacity) > capacity);
                    if short {
                        // Told by the release that leaves so many places.
                        wanted = Some(sent + items.min(capacity) as u64 - capacity as u64);
                    }
                }
                6 => {
                    prop_assert!(ring.room_known(&producer) <= capacity - inside);
                    prop_assert_eq!(ring.room(&mut producer), capacity - inside);
                    prop_assert_eq!(ring.room_known(&producer), capacity - inside);
                }
                7 => {
                    prop_assert_eq!(ring.has_come(&consumer), seen < published);
                    visible.extend(seen..published);
                    seen = published;
                    prop_assert_eq!(ring.poll(&mut consumer), visible.len());
                }
                8..=10 => {
                    prop_assert_eq!(ring.peek(&consumer, |item| *item), visible.front().copied());
                    let item = visible.pop_front();
                    prop_assert_eq!(ring.pop(&mut consumer), item);
                    taken += u64::from(item.is_some());
                }
                12 => {
                    let waits = ring.wait_for_item(&mut consumer);
                    prop_assert_eq!(waits, seen == published);
                    tells = Some(u32::from(waits));
                }
                13 => {
                    ring.decline_notifications(&consumer);
                    tells = Some(0);
                }
                14 => {
                    prop_assert_eq!(ring.must_notify(&producer), tells != Some(0));
                    tells = tells.map(|_| 0);
                }
                _ => {
                    let known = sent - (capacity - ring.room_known(&producer)) as u64;
                    prop_assert_eq!(ring.has_gone(&producer), known < released);
                    let told = ring.release(&mut consumer);
                    prop_assert_eq!(told, taken > released && wanted.is_some_and(|wanted| taken >= wanted));
                    wanted = wanted.filter(|_| !told);
                    released = taken;
                }
            }
            if sent > 100 && !closed {
                ring.close(&mut producer);
                (closed, published) = (true, sent);
            }
            deepest = deepest.max(sent - released);
            prop_assert_eq!(ring.is_closed(&consumer), closed);
            prop_assert_eq!(ring.len(&consumer), visible.len());
            prop_assert_eq!((ring.sent(&producer), ring.taken(&consumer)), (sent, taken));
            // What either side saw is never above the truth, and a ring that was full was seen so.
            let reported = u64::from(ring.deepest(&producer).max(ring.most_visible(&consumer)));
            prop_assert!(reported <= deepest);
            if was_full {
                prop_assert_eq!(reported, capacity as u64);
            }
        }
    }
}

#[test]
fn the_deepest_is_no_guess() {
    let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Spsc::new(&producer, &consumer, 8);
    for item in 0..100 {
        ring.push(&mut producer, item).unwrap();
        ring.poll(&mut consumer);
        assert_eq!(ring.pop(&mut consumer), Some(item));
        ring.release(&mut consumer);
    }
    assert_eq!((ring.deepest(&producer), ring.most_visible(&consumer)), (0, 1));
}

#[test]
fn items_are_dropped_once() {
    let item = Arc::new(());
    let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Spsc::new(&producer, &consumer, 3);
    for _ in 0..5 {
        ring.push(&mut producer, Arc::clone(&item)).unwrap();
        ring.poll(&mut consumer);
        drop(ring.pop(&mut consumer));
        ring.release(&mut consumer);
    }
    for _ in 0..3 {
        ring.stage(&mut producer, Arc::clone(&item)).unwrap();
    }
    assert_eq!(Arc::strong_count(&item), 4);
    assert!(ring.push(&mut producer, Arc::clone(&item)).is_err());
    assert!(!ring.is_left(&producer));
    ring.leave(&mut consumer);
    assert!(ring.is_left(&producer));
    drop(ring);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
#[should_panic(expected = "belongs to another worker")]
fn the_producer_cannot_take() {
    let (mut producer, consumer) = (Owner::new(), Owner::new());
    let ring: Spsc<u8> = Spsc::new(&producer, &consumer, 1);
    let _ = ring.pop(&mut producer);
}

#[test]
#[should_panic(expected = "belongs to another worker")]
fn the_consumer_cannot_put_in() {
    let (producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Spsc::new(&producer, &consumer, 1);
    let _ = ring.push(&mut consumer, 0);
}

#[test]
#[should_panic(expected = "a ring holds 1 to 2^24 items, not 0")]
fn a_ring_for_nothing_is_refused() {
    let _ = Spsc::<u8>::new(&Owner::new(), &Owner::new(), 0);
}

struct Item {
    number: u64,
    _alive: Arc<()>,
}

/// A producer that sleeps when the ring is full, and a consumer that sleeps when it is empty: each wakes the other only when it is told
/// to.
#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
fn send_and_take(capacity: usize, time: Duration, leave_early: bool) {
    let alive = Arc::new(());
    let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Arc::new(Spsc::new(&producer, &consumer, capacity));
    let end = Instant::now() + time;
    let receiver = std::thread::current();
    let sender = std::thread::spawn({
        let (ring, alive) = (Arc::clone(&ring), Arc::clone(&alive));
        move || {
            let tell = |producer: &Owner| {
                if ring.must_notify(producer) {
                    receiver.unpark();
                }
            };
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
            let mut number = 0;
            'run: while Instant::now() < end {
                for _ in 0..=dice.below(100) {
                    let mut item = Item { number, _alive: Arc::clone(&alive) };
                    loop {
                        let staged = dice.below(3) > 0;
                        let result = if staged {
                            ring.stage(&mut producer, item)
                        } else {
                            ring.push(&mut producer, item)
                        };
                        match result {
                            Ok(before) => {
                                assert!((before as usize) < capacity);
                                number += 1;
                                if !staged {
                                    tell(&producer);
                                }
                                break;
                            }
                            Err(Full(back)) => item = back,
                        }
                        let waits = ring.wait_for_room(&mut producer, 1);
                        tell(&producer);
                        if waits {
                            if ring.is_left(&producer) {
                                break 'run;
                            }
                            std::thread::park();
                        }
                    }
                    dice.maybe_stop();
                }
                ring.publish(&mut producer);
                tell(&producer);
            }
            ring.close(&mut producer);
            receiver.unpark();
            assert!(ring.deepest(&producer) as usize <= capacity);
            assert_eq!(ring.sent(&producer), number);
            number
        }
    });
    let mut dice = Dice(0xd1b5_4a32_d192_ed03);
    let mut expected = 0;
    ring.decline_notifications(&consumer);
    loop {
        let closed = ring.is_closed(&consumer);
        let visible = ring.poll(&mut consumer);
        assert!(visible <= capacity);
        if visible == 0 {
            if closed {
                break;
            }
            if dice.below(2) == 0 {
                std::thread::yield_now();
            } else if ring.wait_for_item(&mut consumer) {
                std::thread::park();
            }
        }
        for _ in 0..dice.below(visible as u64 + 1) {
            dice.maybe_stop();
            assert_eq!(ring.peek(&consumer, |item| item.number), Some(expected));
            assert_eq!(ring.pop(&mut consumer).map(|item| item.number), Some(expected));
            expected += 1;
        }
        if ring.release(&mut consumer) {
            sender.thread().unpark();
        }
        if leave_early && expected > 1_000 {
            ring.leave(&mut consumer);
            sender.thread().unpark();
            break;
        }
    }
    let sent = sender.join().unwrap();
    assert_eq!(ring.taken(&consumer), expected);
    if leave_early {
        assert!(sent - expected <= capacity as u64);
        assert_eq!(Arc::strong_count(&alive) as u64, 1 + sent - expected, "an item was lost");
    } else {
        assert_eq!((expected, Arc::strong_count(&alive)), (sent, 1));
    }
    drop(ring);
    assert_eq!(Arc::strong_count(&alive), 1, "an item was not dropped");
}

#[test]
fn stress_nothing_is_lost_between_two_threads() {
    let time = stress_time();
    watched(time, move || {
        for capacity in [1, 2, 3, 64, 1000] {
            send_and_take(capacity, time / 5, false);
        }
    });
}

#[test]
fn stress_a_consumer_that_leaves() {
    let time = stress_time();
    watched(time, move || {
        let end = Instant::now() + time;
        let mut round = 0;
        while round < 30 || Instant::now() < end {
            send_and_take(1 + round % 7, Duration::from_secs(60), true);
            round += 1;
        }
    });
}

#[test]
fn what_is_made_in_place_is_made_only_where_there_is_room() {
    let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Spsc::new(&producer, &consumer, 2);
    let mut made = 0;
    let mut push = |producer: &mut Owner| {
        ring.push_with(producer, || {
            made += 1;
            format!("item {made}")
        })
    };
    assert_eq!([push(&mut producer), push(&mut producer), push(&mut producer)], [true, true, false]);
    assert_eq!(ring.poll(&mut consumer), 2, "each is published at once");
    assert_eq!(ring.pop(&mut consumer).as_deref(), Some("item 1"));
    ring.release(&mut consumer);
    assert!(push(&mut producer));
    ring.poll(&mut consumer);
    let rest: Vec<String> = std::iter::from_fn(|| ring.pop(&mut consumer)).collect();
    assert_eq!(rest, ["item 2", "item 3"], "none was made for nothing");
}
