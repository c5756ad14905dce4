//! The ring's races, through every interleaving (`ci/loom`).

use super::Spsc;
use crate::owner::Owner;
use crate::sync::plant;
use loom::sync::{Arc, Notify};
use loom::thread;

/// Makes a ring and its two tokens.
fn ring(capacity: usize) -> (Arc<Spsc<u32>>, Owner, Owner) {
    let (producer, consumer) = (Owner::new(), Owner::new());
    (Arc::new(Spsc::new(&producer, &consumer, capacity)), producer, consumer)
}

fn take_all(ring: &Spsc<u32>, consumer: &mut Owner, into: &mut Vec<u32>) {
    ring.poll(consumer);
    while let Some(item) = ring.pop(consumer) {
        into.push(item);
    }
    ring.release(consumer);
}

/// Both sides go on as far as they can. Each item comes out once and in order, and a slot is used again only
/// after its item is out (loom watches the cells).
fn items_pass_in_order() {
    loom::model(|| {
        let (ring, mut producer, mut consumer) = ring(2);
        let thread = thread::spawn({
            let ring = ring.clone();
            move || {
                ring.push(&mut producer, 0).unwrap();
                ring.stage(&mut producer, 1).unwrap();
                ring.publish(&mut producer);
                let sent = 2 + u32::from(ring.push(&mut producer, 2).is_ok());
                assert_eq!(ring.sent(&producer), u64::from(sent));
                assert!(ring.room(&mut producer) >= ring.room_known(&producer));
                sent
            }
        });
        let mut items = Vec::new();
        take_all(&ring, &mut consumer, &mut items);
        take_all(&ring, &mut consumer, &mut items);
        let sent = thread.join().unwrap();
        take_all(&ring, &mut consumer, &mut items);
        assert!(items.into_iter().eq(0..sent));
    });
}

/// A consumer that sees the ring closed sees all items.
fn the_end_comes_after_the_items() {
    loom::model(|| {
        let (ring, mut producer, mut consumer) = ring(2);
        let thread = thread::spawn({
            let ring = ring.clone();
            move || {
                ring.push(&mut producer, 0).unwrap();
                ring.stage(&mut producer, 1).unwrap();
                ring.close(&mut producer);
            }
        });
        if ring.is_closed(&consumer) {
            assert_eq!(ring.poll(&mut consumer), 2);
        }
        thread.join().unwrap();
        assert!(ring.is_closed(&consumer));
    });
}

/// A producer begins to wait while a consumer makes room: one of them sees the other.
fn one_of_two_sees_the_other() {
    loom::model(|| {
        let (ring, mut producer, mut consumer) = ring(1);
        ring.push(&mut producer, 0).unwrap();
        ring.poll(&mut consumer);
        let thread = thread::spawn({
            let ring = ring.clone();
            move || {
                ring.pop(&mut consumer).unwrap();
                ring.release(&mut consumer)
            }
        });
        let waits = ring.wait_for_room(&mut producer, 1);
        let said = thread.join().unwrap();
        assert!(said || !waits, "the producer would wait for ever");
    });
}

/// A consumer begins to wait while a producer sends: one of them sees the other, also if the consumer was
/// woken, or withdrew its request, before.
fn one_of_two_sees_the_item() {
    loom::model(|| {
        let (ring, mut producer, mut consumer) = ring(2);
        ring.decline_notifications(&consumer);
        let thread = thread::spawn({
            let ring = ring.clone();
            move || {
                let mut said = 0;
                for item in 0..2 {
                    ring.push(&mut producer, item).unwrap();
                    said += u32::from(ring.must_notify(&producer));
                }
                said
            }
        });
        let (mut asked, mut waits) = (0, false);
        for _ in 0..2 {
            waits = ring.wait_for_item(&mut consumer);
            asked += 1;
            if waits {
                break;
            }
            ring.poll(&mut consumer);
        }
        let visible = ring.len(&consumer);
        let said = thread.join().unwrap();
        assert!(said > 0 || !waits || visible == 2, "the consumer would wait for ever");
        assert!(said <= asked);
    });
}

/// A consumer that sleeps whenever it may, and a producer that wakes it only when it must.
fn sleeping_consumers_are_woken(items: u32) {
    loom::model(move || {
        let (ring, mut producer, mut consumer) = ring(4);
        ring.decline_notifications(&consumer);
        let data = Arc::new(Notify::new());
        let thread = thread::spawn({
            let (ring, data) = (ring.clone(), data.clone());
            move || {
                for item in 0..items {
                    ring.push(&mut producer, item).unwrap();
                    if ring.must_notify(&producer) {
                        data.notify();
                    }
                }
            }
        });
        let mut expected = 0;
        while expected < items {
            if ring.poll(&mut consumer) == 0 {
                if ring.wait_for_item(&mut consumer) {
                    data.wait();
                }
                continue;
            }
            assert_eq!(ring.pop(&mut consumer), Some(expected));
            expected += 1;
        }
        thread.join().unwrap();
    });
}

/// A producer that sleeps whenever it may, and a consumer that wakes it only when it must. A lost
/// notification is a deadlock, which loom reports.
fn sleepers_are_woken(items: u32) {
    loom::model(move || {
        let (ring, mut producer, mut consumer) = ring(1);
        let (room, data) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let thread = thread::spawn({
            let (ring, room, data) = (ring.clone(), room.clone(), data.clone());
            move || {
                for item in 0..items {
                    while ring.push(&mut producer, item).is_err() {
                        if ring.wait_for_room(&mut producer, 1) {
                            room.wait();
                        }
                    }
                    data.notify();
                }
            }
        });
        let mut expected = 0;
        while expected < items {
            if ring.poll(&mut consumer) == 0 {
                data.wait();
                continue;
            }
            assert_eq!(ring.pop(&mut consumer), Some(expected));
            expected += 1;
            if ring.release(&mut consumer) {
                room.notify();
            }
        }
        thread.join().unwrap();
    });
}

#[test]
fn nothing_is_lost_or_doubled() {
    items_pass_in_order();
}

#[test]
fn closed_is_seen_after_all_items() {
    the_end_comes_after_the_items();
}

#[test]
fn waiting_and_making_room_do_not_miss_each_other() {
    one_of_two_sees_the_other();
}

#[test]
fn a_waiting_producer_is_always_notified() {
    sleepers_are_woken(3);
}

#[test]
fn waiting_and_sending_do_not_miss_each_other() {
    one_of_two_sees_the_item();
}

#[test]
fn a_waiting_consumer_is_always_notified() {
    sleeping_consumers_are_woken(3);
}

#[test]
#[should_panic(expected = "the consumer would wait for ever")]
fn a_missing_fence_before_the_question_is_found() {
    plant("spsc ask fence");
    one_of_two_sees_the_item();
}

#[test]
#[should_panic(expected = "the consumer would wait for ever")]
fn a_missing_fence_before_the_answer_is_found() {
    plant("spsc notify fence");
    one_of_two_sees_the_item();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_publish_is_found() {
    plant("spsc publish");
    items_pass_in_order();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_release_is_found() {
    plant("spsc release");
    items_pass_in_order();
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn a_relaxed_close_is_found() {
    plant("spsc close");
    the_end_comes_after_the_items();
}

#[test]
#[should_panic(expected = "the producer would wait for ever")]
fn a_missing_fence_before_the_wait_is_found() {
    plant("spsc wait fence");
    one_of_two_sees_the_other();
}

#[test]
#[should_panic(expected = "the producer would wait for ever")]
fn a_missing_fence_in_the_release_is_found() {
    plant("spsc release fence");
    one_of_two_sees_the_other();
}
