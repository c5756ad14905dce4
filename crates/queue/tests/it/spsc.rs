//! The ring between two workers, through its public interface: against a plain queue, and with threads.
#![cfg(not(loom))]

use crate::stress::{Dice, stress_time, watched};
use onbeat_queue::{Full, Owner, Spsc};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The ring under test, beside a plain queue that behaves the same.
struct Compared {
    ring: Spsc<u64>,
    producer: Owner,
    consumer: Owner,
    /// Items that the last poll has made visible.
    visible: VecDeque<u64>,
    sent: u64,
    published: u64,
    /// Items published as of the last poll.
    seen: u64,
    taken: u64,
    released: u64,
    deepest: u64,
    /// Items taken at which the release notifies the producer.
    wanted: Option<u64>,
    closed: bool,
    was_full: bool,
    /// Notifications that the consumer still gets; `None`: one for each item.
    notifications: Option<u32>,
}

impl Compared {
    fn new(capacity: usize) -> Self {
        let (producer, consumer) = (Owner::new(), Owner::new());
        Compared {
            ring: Spsc::new(&producer, &consumer, capacity),
            producer,
            consumer,
            visible: VecDeque::new(),
            sent: 0,
            published: 0,
            seen: 0,
            taken: 0,
            released: 0,
            deepest: 0,
            wanted: None,
            closed: false,
            was_full: false,
            notifications: None,
        }
    }

    fn inside(&self) -> usize {
        (self.sent - self.released) as usize
    }

    fn produce(&mut self, step: u8) -> Result<(), TestCaseError> {
        let Compared { ring, producer, .. } = self;
        let (capacity, inside) = (ring.capacity(), (self.sent - self.released) as usize);
        match step {
            0..=3 => {
                let is_pushed = step < 2;
                let result =
                    if is_pushed { ring.push(producer, self.sent) } else { ring.stage(producer, self.sent) };
                match result {
                    Ok(before) => {
                        prop_assert!((inside..capacity).contains(&(before as usize)));
                        self.sent += 1;
                        if is_pushed {
                            self.published = self.sent;
                        }
                    }
                    Err(Full(item)) => {
                        prop_assert_eq!((item, inside), (self.sent, capacity));
                        self.was_full = true;
                    }
                }
            }
            4 => {
                ring.publish(producer);
                self.published = self.sent;
            }
            5 => {
                let items = 1 + self.sent as usize % 3;
                let waits = ring.wait_for_room(producer, items);
                self.published = self.sent;
                prop_assert_eq!(waits, inside + items.min(capacity) > capacity);
                if waits {
                    self.wanted = Some(self.sent + items.min(capacity) as u64 - capacity as u64);
                }
            }
            6 => {
                prop_assert!(ring.room_known(producer) <= capacity - inside);
                prop_assert_eq!(ring.room(producer), capacity - inside);
                prop_assert_eq!(ring.room_known(producer), capacity - inside);
            }
            _ => {
                prop_assert_eq!(ring.must_notify(producer), self.notifications != Some(0));
                self.notifications = self.notifications.map(|_| 0);
            }
        }
        Ok(())
    }

    fn consume(&mut self, step: u8) -> Result<(), TestCaseError> {
        let Compared { ring, producer, consumer, .. } = self;
        match step {
            8 => {
                prop_assert_eq!(ring.has_come(consumer), self.seen < self.published);
                self.visible.extend(self.seen..self.published);
                self.seen = self.published;
                prop_assert_eq!(ring.poll(consumer), self.visible.len());
            }
            9..=11 => {
                prop_assert_eq!(ring.peek(consumer, |item| *item), self.visible.front().copied());
                let item = self.visible.pop_front();
                prop_assert_eq!(ring.pop(consumer), item);
                self.taken += u64::from(item.is_some());
            }
            12 => {
                let waits = ring.wait_for_item(consumer);
                prop_assert_eq!(waits, self.seen == self.published);
                self.notifications = Some(u32::from(waits));
            }
            13 => {
                ring.decline_notifications(consumer);
                self.notifications = Some(0);
            }
            _ => {
                let known = self.sent - (ring.capacity() - ring.room_known(producer)) as u64;
                prop_assert_eq!(ring.has_gone(producer), known < self.released);
                let notifies = ring.release(consumer);
                let is_wanted = self.wanted.is_some_and(|wanted| self.taken >= wanted);
                prop_assert_eq!(notifies, self.taken > self.released && is_wanted);
                self.wanted = self.wanted.filter(|_| !notifies);
                self.released = self.taken;
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        if self.sent > 100 && !self.closed {
            self.ring.close(&mut self.producer);
            (self.closed, self.published) = (true, self.sent);
        }
        self.deepest = self.deepest.max(self.inside() as u64);
        let Compared { ring, producer, consumer, .. } = self;
        prop_assert_eq!(ring.is_closed(consumer), self.closed);
        prop_assert_eq!(ring.len(consumer), self.visible.len());
        prop_assert_eq!((ring.sent(producer), ring.taken(consumer)), (self.sent, self.taken));
        // What each side reports is never above the truth, and a ring that was full is reported so.
        let reported = u64::from(ring.deepest(producer).max(ring.most_visible(consumer)));
        prop_assert!(reported <= self.deepest);
        if self.was_full {
            prop_assert_eq!(reported, ring.capacity() as u64);
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_ring_is_a_bounded_queue(capacity in 1usize..20, steps in prop::collection::vec(0u8..15, 0..600)) {
        let mut compared = Compared::new(capacity);
        for step in steps {
            if step < 8 { compared.produce(step)? } else { compared.consume(step)? }
            compared.check()?;
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

/// Sends until `end`, or until the consumer has left; sleeps when the ring is full. Returns the number of
/// items sent.
fn send(
    ring: &Spsc<Item>,
    producer: &mut Owner,
    receiver: &std::thread::Thread,
    alive: &Arc<()>,
    end: Instant,
) -> u64 {
    let notify = |producer: &Owner| {
        if ring.must_notify(producer) {
            receiver.unpark();
        }
    };
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut number = 0;
    'run: while Instant::now() < end {
        for _ in 0..=dice.below(100) {
            let mut item = Item { number, _alive: Arc::clone(alive) };
            loop {
                let staged = dice.below(3) > 0;
                let result = if staged { ring.stage(producer, item) } else { ring.push(producer, item) };
                match result {
                    Ok(before) => {
                        assert!((before as usize) < ring.capacity());
                        number += 1;
                        if !staged {
                            notify(producer);
                        }
                        break;
                    }
                    Err(Full(back)) => item = back,
                }
                let waits = ring.wait_for_room(producer, 1);
                notify(producer);
                if waits {
                    if ring.is_left(producer) {
                        break 'run;
                    }
                    std::thread::park();
                }
            }
            dice.maybe_stop();
        }
        ring.publish(producer);
        notify(producer);
    }
    ring.close(producer);
    receiver.unpark();
    assert!(ring.deepest(producer) as usize <= ring.capacity());
    assert_eq!(ring.sent(producer), number);
    number
}

/// Takes items until the ring is closed, or leaves early; sleeps when it is empty. Returns the number of
/// items taken.
fn take(ring: &Spsc<Item>, consumer: &mut Owner, sender: &std::thread::Thread, leave_early: bool) -> u64 {
    let mut dice = Dice(0xd1b5_4a32_d192_ed03);
    let mut expected = 0;
    ring.decline_notifications(consumer);
    loop {
        let closed = ring.is_closed(consumer);
        let visible = ring.poll(consumer);
        assert!(visible <= ring.capacity());
        if visible == 0 {
            if closed {
                return expected;
            }
            if dice.below(2) == 0 {
                std::thread::yield_now();
            } else if ring.wait_for_item(consumer) {
                std::thread::park();
            }
        }
        for _ in 0..dice.below(visible as u64 + 1) {
            dice.maybe_stop();
            assert_eq!(ring.peek(consumer, |item| item.number), Some(expected));
            assert_eq!(ring.pop(consumer).map(|item| item.number), Some(expected));
            expected += 1;
        }
        if ring.release(consumer) {
            sender.unpark();
        }
        if leave_early && expected > 1_000 {
            ring.leave(consumer);
            sender.unpark();
            return expected;
        }
    }
}

/// A producer that sleeps when the ring is full, and a consumer that sleeps when it is empty. Each wakes the
/// other only when the ring says so.
#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
fn send_and_take(capacity: usize, time: Duration, leave_early: bool) {
    let alive = Arc::new(());
    let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Arc::new(Spsc::new(&producer, &consumer, capacity));
    let end = Instant::now() + time;
    let receiver = std::thread::current();
    let sender = std::thread::spawn({
        let (ring, alive) = (Arc::clone(&ring), Arc::clone(&alive));
        move || send(&ring, &mut producer, &receiver, &alive, end)
    });
    let taken = take(&ring, &mut consumer, sender.thread(), leave_early);
    let sent = sender.join().unwrap();
    assert_eq!(ring.taken(&consumer), taken);
    if leave_early {
        assert!(sent - taken <= capacity as u64);
        assert_eq!(Arc::strong_count(&alive) as u64, 1 + sent - taken, "an item was lost");
    } else {
        assert_eq!((taken, Arc::strong_count(&alive)), (sent, 1));
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
