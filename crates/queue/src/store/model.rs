//! The store's races, through every interleaving: `RUSTFLAGS="--cfg loom" cargo test -p onbeat-queue --release model`.

use super::{Meta, Seed};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{UnsafeCell, atomic::AtomicPtr};
use loom::sync::Arc;
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

/// The seeded mistake: the remote list with a relaxed push. The owner may then see the list and not what was done to
/// the block before, and loom must say so.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_relaxed_push_is_found() {
    struct Node {
        value: UnsafeCell<u64>,
    }
    loom::model(|| {
        let node = Arc::new(Node { value: UnsafeCell::new(0) });
        let list = Arc::new(AtomicPtr::new(null_mut::<Node>()));
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
