//! The store's races, through every interleaving: `RUSTFLAGS="--cfg loom" cargo test -p onbeat-queue --release model`.

use super::{Meta, Seed};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{UnsafeCell, atomic::AtomicPtr, plant};
use loom::sync::{Arc, Notify};
use loom::thread;
use std::ptr::null_mut;

/// Counts how often a block came home, where loom sees it.
#[derive(Default, Clone)]
struct Visits(Option<Arc<AtomicUsize>>);

impl Meta for Visits {
    fn reset(&mut self) {
        if let Some(visits) = self.0.take() {
            visits.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A block dropped elsewhere comes home once, whether the owner fetches meanwhile or not.
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

/// Two threads drop the last two handles of a shared block: it comes home once, and neither reads after that.
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
        // Unique only once the other handle is gone, and then its reads are over.
        if let Some(samples) = a.edit() {
            samples[0] = 8;
        }
        drop(a);
        other.join().unwrap();
        assert_eq!(visits.load(Ordering::Relaxed), 1);
        assert!(store.get::<u64>().is_some());
    });
}

/// The store goes while a block is on its way home from another thread: the memory is freed once (loom and the leak
/// check of its allocator stand-in would see a second time, `visits` a missing one).
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

/// What a store calls when a wanted block comes home: counts, and wakes who waits.
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

/// A starved owner sleeps until a block comes home from another thread. A wake-up that is lost leaves both threads
/// blocked, which loom reports.
fn starved(blocks: usize) {
    loom::model(move || {
        let (store, notifier) = open_with_notifier(blocks);
        let out: Vec<_> = std::iter::from_fn(|| store.get::<u64>()).collect();
        let others: Vec<_> = out.into_iter().map(|block| thread::spawn(move || drop(block))).collect();
        let mut wishes = 0;
        let block = loop {
            if let Some(block) = store.get::<u64>() {
                break block;
            }
            if store.want(1) {
                wishes = 1;
                // It may wake for no reason; the wish stands then, and is not counted again.
                notifier.parker.wait();
            }
        };
        for other in others {
            other.join().unwrap();
        }
        drop(block);
        assert!(notifier.notified.load(Ordering::Relaxed) == wishes, "one call for a wish");
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

/// The same without waiting, because a dead-lock in a model ends the process: whatever was wanted was announced.
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
fn a_wish_is_fulfilled_once() {
    wanted_once();
}

#[test]
#[should_panic(expected = "a wake-up was lost")]
fn a_wish_over_a_block_is_found() {
    plant("wanted by load and store");
    wanted_once();
}

/// The store goes while a block that it wants is on its way home: the memory is freed once, and the notifier with it.
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

/// The seeded mistake: the remote list with a relaxed push. The owner may then see the list and not what was done to
/// the block before, and loom must say so.
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
            // SAFETY: as in the store, the block is ours until it is pushed; that the push does not publish it is
            // what the model is to find.
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
