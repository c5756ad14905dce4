//! Chunk stores through their public interface, with threads.
#![cfg(not(loom))]

use crate::stress::{stress_time, watched};
use onbeat_queue::{Block, Meta, Seed, Store, StoreError};
use std::sync::mpsc;
use std::time::Instant;

#[derive(Default, Clone, Debug, PartialEq)]
struct Label(u64);

impl Meta for Label {
    fn reset(&mut self) {
        self.0 = 0;
    }
}

fn store(blocks: usize, bytes: usize) -> Store<Label> {
    Seed::new(blocks, bytes).unwrap().open()
}

#[test]
fn blocks_are_aligned_and_as_large_as_asked() {
    for bytes in [1, 63, 64, 100, 4096, 65536] {
        let store = store(3, bytes);
        let blocks: Vec<Block<u8, Label>> = std::iter::from_fn(|| store.get()).collect();
        assert_eq!(blocks.len(), 3);
        for block in &blocks {
            assert_eq!(block.as_ptr() as usize % 64, 0, "{bytes} bytes");
            assert_eq!(block.len(), bytes);
        }
        assert_eq!((store.refused(), store.in_use_max()), (1, 3));
    }
    let odd = store(1, 15).get::<u32>().unwrap();
    assert_eq!(odd.len(), 3);
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let refused = |blocks, bytes| Seed::<Label>::new(blocks, bytes).err().unwrap();
    assert_eq!(refused(0, 64), StoreError::Empty);
    assert_eq!(refused(1, 0), StoreError::Empty);
    assert!(matches!(refused(1, usize::MAX), StoreError::TooLarge { .. }));
    assert!(matches!(refused(usize::MAX / 64, 4096), StoreError::TooLarge { .. }));
    assert!(refused(1 << 40, 1 << 20).to_string().contains("memory"));
}

#[test]
fn the_last_block_home_is_the_first_out() {
    let store = store(4, 64);
    let (a, b) = (store.get::<u8>().unwrap(), store.get::<u8>().unwrap());
    let (at_a, at_b) = (a.as_ptr(), b.as_ptr());
    drop(a);
    drop(b);
    assert_eq!(store.get::<u8>().unwrap().as_ptr(), at_b);
    let again = (store.get::<u8>().unwrap(), store.get::<u8>().unwrap());
    assert_eq!((again.0.as_ptr(), again.1.as_ptr()), (at_b, at_a));
}

#[test]
fn a_shared_block_is_copied_before_it_is_changed() {
    let store = store(2, 16);
    let mut a = store.get::<u32>().unwrap();
    a.edit().unwrap().copy_from_slice(&[1, 2, 3, 4]);
    a.meta_mut().unwrap().0 = 9;
    a.truncate(3);
    let b = a.clone();
    assert!(a.edit().is_none() && a.meta_mut().is_none());
    store.make_unique(&mut a).unwrap()[0] = 7;
    assert_eq!((&a[..], &b[..]), (&[7, 2, 3][..], &[1, 2, 3][..]));
    assert_eq!((a.meta(), b.meta(), store.copies()), (&Label(9), &Label(9), 1));
    let mut c = a.clone();
    assert!(store.make_unique(&mut c).is_none(), "no block is left for a copy");
    drop((a, b));
    assert!(store.make_unique(&mut c).is_some(), "c is alone now");
    drop(c);
    let fresh = store.get::<u32>().unwrap();
    assert_eq!((fresh.len(), fresh.meta()), (4, &Label(0)));
}

#[test]
fn the_parts_of_a_block_are_for_who_has_it_alone() {
    let store = store(2, 64);
    let mut block = store.get::<u32>().unwrap();
    let (samples, label) = block.parts().unwrap();
    samples.fill(7);
    *label = Label(5);
    block.truncate(3);
    let shared = block.clone();
    assert!(block.parts().is_none());
    drop(shared);
    let (samples, label) = block.parts().unwrap();
    assert_eq!((&*samples, label.0), (&[7; 3][..], 5));
}

#[test]
fn a_block_is_as_new_for_who_has_it_alone() {
    let store = store(1, 64);
    let mut block = store.get::<u32>().unwrap();
    block.truncate(3);
    block.meta_mut().unwrap().0 = 5;
    let shared = block.clone();
    assert!(!block.renew());
    assert_eq!((shared.len(), shared.meta()), (3, &Label(5)), "a shared block is left as it was");
    drop(shared);
    assert!(block.renew());
    assert_eq!((block.len(), block.meta()), (16, &Label(0)));
    assert_eq!(block.edit().unwrap().len(), 16);
}

/// Blocks circulate through other threads: none is lost, none is handed out twice.
#[test]
fn stress_blocks_return_from_other_threads() {
    const BLOCKS: usize = 16;
    const LEAST: u64 = 200_000;
    let time = stress_time();
    watched(time, move || {
        let end = Instant::now() + time;
        let store = store(BLOCKS, 64);
        let (to, from) = mpsc::sync_channel::<Block<u64, Label>>(BLOCKS);
        let (to2, from2) = mpsc::sync_channel::<Block<u64, Label>>(BLOCKS);
        let receive = |from: mpsc::Receiver<Block<u64, Label>>| {
            move || {
                let mut sum = 0u64;
                for block in from {
                    assert!(block.iter().all(|&x| x == block.meta().0), "somebody else wrote");
                    sum += block[0];
                }
                sum
            }
        };
        #[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
        let threads = [std::thread::spawn(receive(from)), std::thread::spawn(receive(from2))];
        let mut sum = 0;
        let mut round = 0;
        while round < LEAST || Instant::now() < end {
            let Some(mut block) = store.get::<u64>() else {
                std::thread::yield_now();
                continue;
            };
            block.edit().expect("it is new").fill(round);
            block.meta_mut().expect("it is new").0 = round;
            match round % 3 {
                0 => to.send(block).unwrap(),
                1 => to2.send(block).unwrap(),
                _ => {
                    to.send(block.clone()).unwrap();
                    to2.send(block).unwrap();
                    sum += round;
                }
            }
            sum += round;
            round += 1;
        }
        drop((to, to2));
        let received: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(received, sum);
        let home: Vec<_> = std::iter::from_fn(|| store.get::<u64>()).collect();
        assert_eq!(home.len(), BLOCKS, "blocks were lost");
        let mut places: Vec<_> = home.iter().map(|block| block.as_ptr()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), BLOCKS, "a block was handed out twice");
    });
}

/// Stores end while their blocks are still out.
#[test]
fn stress_stores_end_before_their_blocks() {
    let time = stress_time();
    watched(time, move || {
        let end = Instant::now() + time;
        let mut round = 0;
        while round < 2_000 || Instant::now() < end {
            round += 1;
            let store = store(8, 64);
            let blocks: Vec<_> = std::iter::from_fn(|| store.get::<u8>()).collect();
            let shared = blocks.clone();
            #[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
            let thread = std::thread::spawn(move || drop(blocks));
            if round % 2 == 0 {
                drop(store);
                drop(shared);
            } else {
                drop(shared);
                drop(store);
            }
            thread.join().unwrap();
        }
    });
}
