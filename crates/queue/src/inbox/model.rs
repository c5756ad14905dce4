//! The work list and the inbox through every interleaving (`ci/loom`). Each property has mistakes planted in
//! the code itself, which loom must find.

use super::Inbox;
use crate::list::{Poller, Sleeper};
use crate::model::{LoomEvent, ParkedThread};
use crate::owner::Owner;
use crate::sync::atomic::{AtomicIsize, AtomicU32, Ordering};
use crate::sync::plant;
use loom::sync::{Arc, Notify};
use loom::thread;

/// Two producers with an item of their own each; the worker drains meanwhile. Each item runs once, and sees
/// earlier writes of its producer.
fn own_items(slots: usize) {
    loom::model(move || {
        let mut owner = Owner::new();
        let inbox = Arc::new(Inbox::new(&owner, slots, 2, Poller));
        let events = Arc::new([LoomEvent::new(), LoomEvent::new()]);
        let producers = [0, 1].map(|me| {
            let (inbox, events) = (inbox.clone(), events.clone());
            thread::spawn(move || {
                events[me].write();
                assert!(inbox.schedule(me, me as u32));
            })
        });
        let mut ran = [0, 0];
        let mut run = |_: &mut Owner, item: u32| {
            ran[item as usize] += 1;
            events[item as usize].take();
        };
        inbox.drain(&mut owner, &mut run);
        for producer in producers {
            producer.join().unwrap();
        }
        inbox.drain(&mut owner, &mut run);
        assert_eq!(ran, [1, 1]);
        assert!(inbox.is_empty());
    });
}

#[test]
fn each_item_runs_once() {
    own_items(1);
}

#[test]
fn each_item_runs_once_with_two_slots() {
    own_items(2);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_push_is_found() {
    plant("relaxed push");
    own_items(1);
}

/// Two producers schedule the same item while it drains. Each run was promised by one `true`, and a run also
/// sees what the refused producer wrote.
fn one_item() {
    loom::model(|| {
        let mut owner = Owner::new();
        let inbox = Arc::new(Inbox::new(&owner, 2, 1, Poller));
        let events = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let producers = [0, 1].map(|me| {
            let (inbox, events) = (inbox.clone(), events.clone());
            thread::spawn(move || {
                // Relaxed: the inbox must make it visible.
                events[me].store(1, Ordering::Relaxed);
                inbox.schedule(me, 0)
            })
        });
        let mut seen = [0, 0];
        let mut run = |_: &mut Owner, _: u32| {
            for (seen, event) in seen.iter_mut().zip(events.iter()) {
                *seen = event.load(Ordering::Relaxed);
            }
        };
        let mut ran = inbox.drain(&mut owner, &mut run);
        let queued = producers.map(|producer| usize::from(producer.join().unwrap()));
        ran += inbox.drain(&mut owner, &mut run);
        assert_eq!(ran, queued[0] + queued[1]);
        assert_eq!(seen, [1, 1], "an event was lost");
    });
}

#[test]
fn no_event_is_lost() {
    one_item();
}

#[test]
#[should_panic(expected = "an event was lost")]
fn pending_that_ends_by_a_store_is_found() {
    plant("pending ended by a store");
    one_item();
}

#[test]
#[should_panic(expected = "an event was lost")]
fn pending_that_is_only_looked_at_is_found() {
    plant("pending looked at by a load");
    one_item();
}

/// As soon as pending has ended, the item can be pushed again: the list must no longer use it.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_link_that_is_read_too_late_is_found() {
    plant("pending ended before next is read");
    one_item();
}

/// An item that schedules itself while it runs gets `true` and runs again.
#[test]
fn an_item_may_schedule_itself() {
    loom::model(|| {
        let mut owner = Owner::new();
        let inbox = Arc::new(Inbox::new(&owner, 1, 1, Poller));
        let other = inbox.clone();
        let producer = thread::spawn(move || usize::from(other.schedule(0, 0)));
        let mut queued = usize::from(inbox.schedule(0, 0));
        let mut ran = inbox.drain(&mut owner, |_, _| queued += usize::from(inbox.schedule(0, 0)));
        queued += producer.join().unwrap();
        ran += inbox.drain(&mut owner, |_, _| {});
        assert_eq!(ran, queued);
        assert!(inbox.is_empty());
    });
}

/// Starts `producers` threads, each of which schedules an item of its own.
fn one_item_each(inbox: &Arc<Inbox<ParkedThread>>, producers: usize) -> Vec<thread::JoinHandle<()>> {
    (0..producers)
        .map(|me| {
            let inbox = inbox.clone();
            thread::spawn(move || assert!(inbox.schedule(me, me as u32)))
        })
        .collect()
}

/// The worker sleeps when there is no work; `producers` threads schedule an item of their own each. A lost
/// wake-up leaves all threads blocked, which loom reports (and ends the process). At the end the claims equal
/// those that were reported.
fn sleeping(slots: usize, producers: usize) {
    loom::model(move || {
        let mut owner = Owner::new();
        let inbox = Arc::new(Inbox::new(&owner, slots, producers, ParkedThread::new()));
        let threads = one_item_each(&inbox, producers);
        let (mut ran, mut replaced) = (0, 0);
        while ran < producers {
            match inbox.sleep(&mut owner) {
                Ok(()) => {
                    while !inbox.is_woken(&owner) {
                        inbox.sleeper().parker.wait();
                    }
                    replaced += inbox.wake_up(&mut owner);
                }
                Err(meanwhile) => replaced += meanwhile,
            }
            ran += inbox.drain(&mut owner, |_, _| {});
        }
        for thread in threads {
            thread.join().unwrap();
        }
        finish(&inbox, replaced);
    });
}

fn finish(inbox: &Inbox<ParkedThread>, replaced: u32) {
    // Relaxed: all threads have joined.
    assert_eq!(inbox.sleeper().claims.load(Ordering::Relaxed), replaced as isize);
    assert_eq!(inbox.sleeper().wakes.load(Ordering::Relaxed), replaced as isize);
    assert!(inbox.is_empty());
}

#[test]
fn no_wake_up_is_lost() {
    sleeping(1, 2);
}

#[test]
fn no_wake_up_is_lost_with_two_slots() {
    sleeping(2, 2);
}

/// The worker ends its sleep without a wake-up (a deadline). Items that were pushed meanwhile are there, and
/// the claims balance.
fn giving_up(slots: usize, producers: usize) {
    loom::model(move || {
        let mut owner = Owner::new();
        let inbox = Arc::new(Inbox::new(&owner, slots, producers, ParkedThread::new()));
        let threads = one_item_each(&inbox, producers);
        let mut replaced = 0;
        match inbox.sleep(&mut owner) {
            Ok(()) => replaced += inbox.wake_up(&mut owner),
            Err(meanwhile) => replaced += meanwhile,
        }
        let mut ran = inbox.drain(&mut owner, |_, _| {});
        for thread in threads {
            thread.join().unwrap();
        }
        ran += inbox.drain(&mut owner, |_, _| {});
        assert_eq!(ran, producers, "an item was lost");
        finish(&inbox, replaced);
    });
}

#[test]
fn a_sleep_may_end_by_itself() {
    giving_up(1, 2);
}

#[test]
fn a_sleep_may_end_by_itself_with_two_slots() {
    giving_up(2, 2);
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn a_mark_taken_back_over_a_push_is_found() {
    plant("mark taken back by load and store");
    giving_up(1, 1);
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn a_mark_over_a_push_is_found() {
    plant("mark by load and store");
    giving_up(1, 1);
}

/// The use of claims: `awake` counts threads, and a thread that brings it to 0 concludes that no work is
/// left.
struct AwakeCount {
    parker: Notify,
    awake: AtomicIsize,
}

impl AwakeCount {
    /// Returns whether nobody is awake now.
    fn add(&self, change: isize) -> bool {
        // AcqRel, partner: itself. A thread that sees 0 has seen the effects of the others.
        self.awake.fetch_add(change, Ordering::AcqRel) + change == 0
    }
}

impl Sleeper for AwakeCount {
    fn claim(&self) {
        self.add(1);
    }

    fn unclaim(&self) {
        assert!(!self.add(-1), "the producer itself is awake");
    }

    fn wake(&self) {
        self.parker.notify();
    }
}

/// One producer and the worker: it never seems that everybody sleeps while an item is queued or still to
/// come.
fn quiet() {
    loom::model(|| {
        let mut owner = Owner::new();
        let sleeper = AwakeCount { parker: Notify::new(), awake: AtomicIsize::new(2) };
        let inbox = Arc::new(Inbox::new(&owner, 1, 2, sleeper));
        let ran = Arc::new(AtomicU32::new(0));
        let producer = thread::spawn({
            let (inbox, ran) = (inbox.clone(), ran.clone());
            move || {
                inbox.schedule(0, 0);
                inbox.schedule(0, 1);
                if inbox.sleeper().add(-1) {
                    assert_eq!(ran.load(Ordering::Relaxed), 2, "quiet too early");
                }
            }
        });
        let mut drained = 0;
        while drained < 2 {
            let replaced = match inbox.sleep(&mut owner) {
                Ok(()) => {
                    assert!(!inbox.sleeper().add(-1), "quiet too early");
                    while !inbox.is_woken(&owner) {
                        inbox.sleeper().parker.wait();
                    }
                    // Awake again. Of the counts for that, one is the producer's claim.
                    inbox.wake_up(&mut owner) as isize - 1
                }
                Err(replaced) => replaced as isize,
            };
            inbox.sleeper().add(-replaced);
            drained += inbox.drain(&mut owner, |_, _| {
                ran.fetch_add(1, Ordering::Relaxed);
            });
        }
        inbox.sleeper().add(-1);
        producer.join().unwrap();
        assert_eq!(inbox.sleeper().awake.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn claims_keep_the_count_of_those_awake() {
    quiet();
}

#[test]
#[should_panic(expected = "quiet too early")]
fn a_claim_after_the_push_is_found() {
    plant("claim after the push");
    quiet();
}
