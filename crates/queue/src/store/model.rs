//! The store's races through every interleaving (`ci/loom`).

use super::{Meta, Seed};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{UnsafeCell, atomic::AtomicPtr, plant};
use loom::sync::{Arc, Notify};
use loom::thread;
use std::ptr::null_mut;

/// Counts how often a block was returned, where loom sees it.
#[derive(Default, Clone)]
struct Visits(Option<Arc<AtomicUsize>>);

impl Meta for Visits {
    fn reset(&mut self) {
        if let Some(visits) = self.0.take() {
            visits.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A block dropped elsewhere is returned once, whether or not the owner fetches meanwhile.
#[test]
fn blocks_come_home_from_another_thread() {
    loom::model(|| {
        let visits = Arc::new(AtomicUsize::new(0));
        let store = Seed::<Visits>::new(2, 8).unwrap().open();
        let mut a = store.get::<u64>().unwrap();
        let mut b = store.get::<u64>().unwrap();
        a.meta_mut().unwrap().0 = Some(visits.clone());
        b.meta_mut().unwrap().0 = Some(visits.clone());
        a.edit().unwrap()[0] = 1;
        let other = thread::spawn(move || {
            assert_eq!(a[0], 1);
            drop(a);
            drop(b);
        });
        let early = store.get::<u64>().map(|mut block| block.edit().unwrap()[0] = 2);
        other.join().unwrap();
        assert_eq!(visits.load(Ordering::Relaxed), 2);
        let again: Vec<_> = std::iter::from_fn(|| store.get::<u64>()).collect();
        assert_eq!(again.len(), 2, "early: {early:?}");
    });
}

/// Two threads drop the last two handles of a shared block: it is returned once, and neither reads after
/// that.
#[test]
fn the_last_of_two_handles_brings_it_home() {
    loom::model(|| {
        let visits = Arc::new(AtomicUsize::new(0));
        let store = Seed::<Visits>::new(1, 8).unwrap().open();
        let mut a = store.get::<u64>().unwrap();
        a.meta_mut().unwrap().0 = Some(visits.clone());
        a.edit().unwrap()[0] = 7;
        let b = a.clone();
        let other = thread::spawn(move || {
            assert_eq!(b[0], 7);
            drop(b);
        });
        // Unique only when the other handle is gone, and with it its reads.
        if let Some(samples) = a.edit() {
            samples[0] = 8;
        }
        drop(a);
        other.join().unwrap();
        assert_eq!(visits.load(Ordering::Relaxed), 1);
        assert!(store.get::<u64>().is_some());
    });
}

/// The store ends while another thread returns a block: the memory is freed once (loom and its allocator's
/// leak check would see a second time, `visits` a missing one).
#[test]
fn a_store_may_end_before_its_blocks() {
    loom::model(|| {
        let visits = Arc::new(AtomicUsize::new(0));
        let store = Seed::<Visits>::new(2, 8).unwrap().open();
        let mut a = store.get::<u64>().unwrap();
        let mut b = store.get::<u64>().unwrap();
        a.meta_mut().unwrap().0 = Some(visits.clone());
        b.meta_mut().unwrap().0 = Some(visits.clone());
        let other = thread::spawn(move || drop(a));
        drop(store);
        drop(b);
        other.join().unwrap();
        assert_eq!(visits.load(Ordering::Relaxed), 2);
    });
}

/// Called when a wanted block is returned: counts, and wakes the owner.
#[derive(Default)]
struct HomeNotifier {
    parker: Notify,
    notified: AtomicUsize,
}

fn open_with_notifier(blocks: usize) -> (super::Store<Visits>, std::sync::Arc<HomeNotifier>) {
    let notifier = std::sync::Arc::new(HomeNotifier::default());
    let store = Seed::new(blocks, 8).unwrap().open_with({
        let notifier = notifier.clone();
        std::sync::Arc::new(move || {
            notifier.notified.fetch_add(1, Ordering::Relaxed);
            notifier.parker.notify();
        })
    });
    (store, notifier)
}

/// A starved owner sleeps until another thread returns a block. A lost wake-up leaves both threads blocked,
/// which loom reports.
fn starved(blocks: usize) {
    loom::model(move || {
        let (store, notifier) = open_with_notifier(blocks);
        let out: Vec<_> = std::iter::from_fn(|| store.get::<u64>()).collect();
        let others: Vec<_> = out.into_iter().map(|block| thread::spawn(move || drop(block))).collect();
        let mut requests = 0;
        let block = loop {
            if let Some(block) = store.get::<u64>() {
                break block;
            }
            if store.want(1) {
                requests = 1;
                // A spurious wake-up leaves the request standing, and it is not counted again.
                notifier.parker.wait();
            }
        };
        for other in others {
            other.join().unwrap();
        }
        drop(block);
        assert!(notifier.notified.load(Ordering::Relaxed) == requests, "one call for a request");
        assert_eq!(
            std::iter::from_fn(|| store.get::<u64>()).collect::<Vec<_>>().len(),
            blocks,
            "a block was lost"
        );
    });
}

#[test]
fn a_wanted_block_announces_itself() {
    starved(1);
}

#[test]
fn only_the_first_wanted_block_announces_itself() {
    starved(2);
}

/// The same without waiting, because a dead-lock in a model ends the process: each request is answered.
fn wanted_once() {
    loom::model(|| {
        let (store, notifier) = open_with_notifier(1);
        let block = store.get::<u64>().unwrap();
        let other = thread::spawn(move || drop(block));
        let is_wanted = store.want(1);
        other.join().unwrap();
        let notified = notifier.notified.load(Ordering::Relaxed);
        assert_eq!((notified, store.free()), (usize::from(is_wanted), 1), "a wake-up was lost");
    });
}

#[test]
fn a_request_is_answered_once() {
    wanted_once();
}

#[test]
#[should_panic(expected = "a wake-up was lost")]
fn a_request_over_a_block_is_found() {
    plant("wanted by load and store");
    wanted_once();
}

/// The store ends while a block that it wants is being returned: the memory is freed once, and the notifier
/// with it.
#[test]
fn a_store_may_end_while_it_wants() {
    loom::model(|| {
        let visits = Arc::new(AtomicUsize::new(0));
        let (store, notifier) = open_with_notifier(1);
        let mut block = store.get::<u64>().unwrap();
        block.meta_mut().unwrap().0 = Some(visits.clone());
        assert!(store.want(1));
        assert!(store.free() == 0 && store.get::<u64>().is_none() && store.want(1));
        let other = thread::spawn(move || drop(block));
        drop(store);
        other.join().unwrap();
        assert_eq!(visits.load(Ordering::Relaxed), 1);
        assert!(notifier.notified.load(Ordering::Relaxed) <= 1);
        assert_eq!(
            std::sync::Arc::strong_count(&notifier),
            1,
            "the home is gone, or has forgotten the notifier"
        );
    });
}

/// The planted mistake: the remote list with a relaxed push. The owner can then see the list but not the
/// thread's writes to the block, and loom must say so.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_push_is_found() {
    struct PushedBlock {
        value: UnsafeCell<u64>,
    }
    loom::model(|| {
        let node = Arc::new(PushedBlock { value: UnsafeCell::new(0) });
        let list = Arc::new(AtomicPtr::new(null_mut::<PushedBlock>()));
        let (node2, list2) = (node.clone(), list.clone());
        let other = thread::spawn(move || {
            // SAFETY: as in the store, the block is ours until it is pushed. Loom must find that this push
            // does not publish it.
            node2.value.with_mut(|value| unsafe { *value = 1 });
            list2.store(std::ptr::from_ref(&*node2).cast_mut(), Ordering::Relaxed);
        });
        if !list.swap(null_mut(), Ordering::Acquire).is_null() {
            // SAFETY: this would be sound with a Release push.
            node.value.with(|value| unsafe { assert_eq!(*value, 1) });
        }
        other.join().unwrap();
    });
}
