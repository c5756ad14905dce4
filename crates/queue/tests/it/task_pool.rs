//! Tasks that move between threads, through the public interface and with threads.
#![cfg(not(loom))]
#![expect(clippy::disallowed_macros, reason = "long tests say what they do")]

use crate::stress::{Dice, stress_time};
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_queue::{Identity, Meta, Seed, Store, TaskPool};
use std::time::Instant;

#[test]
fn an_item_is_in_one_hand_at_most() {
    let pool = TaskPool::new(1, 2);
    assert!(pool.take(0).is_none(), "it has not entered");
    assert!(!pool.wake(0));
    pool.enter(0, 7);
    let task = pool.take(0).unwrap();
    assert!(pool.take(0).is_none());
    assert!(pool.leave(0).is_none(), "it is held");
    task.put_back();
    assert!(pool.leave(0).is_none(), "it is ready");
    assert!(pool.take(0).unwrap().rest().is_ok());
    assert!(pool.leave(0).is_none(), "it rests");
    assert!(pool.wake(0) && !pool.wake(0), "woken once");
    pool.take(0).unwrap().finish();
    assert!(!pool.wake(0) && pool.take(0).is_none(), "it is over");
    assert_eq!(pool.leave(0), Some(7));
    assert_eq!(pool.leave(0), None);
    pool.enter(0, 8);
    assert_eq!(*pool.take(0).unwrap(), 8);
}

#[test]
#[should_panic(expected = "task 0 has entered already")]
fn a_place_is_for_one() {
    let pool = TaskPool::new(1, 1);
    pool.enter(0, ());
    pool.enter(0, ());
}

#[test]
fn a_panic_ends_an_item() {
    let pool = TaskPool::new(1, 1);
    pool.enter(0, 5);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _item = pool.take(0);
        panic!("in the middle of it");
    }));
    assert!(caught.is_err());
    assert!(!pool.wake(0));
    assert_eq!(pool.leave(0), Some(5));
}

#[test]
fn who_claims_below_the_last_one_goes_round() {
    let pool = TaskPool::<()>::new(1, 64);
    for task in [0, 5, 63] {
        let _ = pool.offer(0, task);
    }
    let mut last = u32::MAX;
    let mut next = || {
        last = pool.claim_below(0, last)?;
        // Offered again at once.
        let _ = pool.offer(0, last);
        Some(last)
    };
    assert_eq!([(); 7].map(|()| next().unwrap()), [63, 5, 0, 63, 5, 0, 63]);
}

#[test]
fn offers_rouse_one_sleeper_each() {
    let pool = TaskPool::<()>::new(3, 3);
    assert!(pool.begin_park(1) && pool.begin_park(2));
    assert_eq!(pool.offer(2, 0), Some(2), "its own, if that sleeps");
    assert_eq!(pool.offer(2, 1), Some(1));
    assert_eq!(pool.offer(2, 2), None);
    assert!(!pool.begin_park(1), "there is something to do");
    assert_eq!(
        [pool.claim(2), pool.claim(2), pool.claim(2), pool.claim(2)],
        [Some(2), Some(1), Some(0), None]
    );
    assert!(pool.claim(0).is_none());
}

#[test]
fn alarms_are_handed_out_once() {
    let pool = TaskPool::<()>::new(1, 3);
    let due = |now_ns| {
        let mut tasks = Vec::new();
        pool.take_due(now_ns, |task| tasks.push(task));
        tasks
    };
    for (task, time_ns) in [(0, 30), (1, 10), (2, 20)] {
        pool.set_alarm(task, time_ns);
    }
    assert_eq!(pool.next_alarm_ns(), 10);
    assert_eq!(due(9), []);
    assert_eq!(due(20), [1, 2]);
    assert_eq!((due(20), pool.next_alarm_ns()), (vec![], 30));
    pool.set_alarm(0, u64::MAX);
    assert_eq!((due(40), pool.next_alarm_ns()), (vec![], u64::MAX));
    pool.set_alarm(2, 50);
    assert!(pool.begin_park(0));
    assert_eq!(pool.parked_until_ns(0), 50);
    assert_eq!(pool.watch_alarms(0), None, "it is watched");
    pool.set_alarm(1, 45);
    assert_eq!(pool.watch_alarms(0), Some(0), "that one is too early for its sleep");
}

/// Four threads pass tasks around: each run adds 1 and wakes two others. Every wake-up that returned `true`
/// leads to a run, every run was woken, and at the end all tasks rest.
#[test]
fn stress_nothing_is_run_twice_or_forgotten() {
    const TASKS: u32 = 7;
    let pool = TaskPool::new(4, TASKS as usize);
    let (woken, runs) = (AtomicU64::new(0), AtomicU64::new(0));
    for task in 0..TASKS {
        pool.enter(task, 0u64);
        woken.fetch_add(1, Ordering::Relaxed);
        let _ = pool.offer(0, task);
    }
    let end = Instant::now() + stress_time();
    println!("four threads pass {TASKS} tasks around for {:?}", stress_time());
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (pool, woken, runs) = (&pool, &woken, &runs);
            scope.spawn(move || {
                let mut dice = Dice(0x9e37_79b9 * (thread as u64 + 1));
                let mut idle = 0;
                while idle < 10_000 {
                    let claimed = (0..4).find_map(|step| pool.claim((thread + step) % 4));
                    let Some(task) = claimed else {
                        idle += u32::from(Instant::now() >= end);
                        std::thread::yield_now();
                        continue;
                    };
                    idle = 0;
                    let mut taken = pool.take(task).expect("claimed by us alone");
                    loop {
                        *taken += 1;
                        runs.fetch_add(1, Ordering::Relaxed);
                        if Instant::now() < end {
                            for _ in 0..2 {
                                let other = dice.below(u64::from(TASKS)) as u32;
                                if pool.wake(other) {
                                    woken.fetch_add(1, Ordering::Relaxed);
                                    let _ = pool.offer(thread, other);
                                }
                            }
                        }
                        match taken.rest() {
                            Ok(()) => break,
                            // Woken while it ran: one more run.
                            Err(again) => {
                                taken = again;
                                woken.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                }
            });
        }
    });
    let mut sum = 0;
    for task in 0..TASKS {
        assert!(pool.wake(task), "task {task} rests");
        sum += *pool.take(task).unwrap();
    }
    let (woken, runs) = (woken.into_inner(), runs.into_inner());
    assert_eq!((sum, runs), (woken, woken));
    assert!(runs > 1000, "{runs} runs");
}

#[derive(Default, Clone)]
struct Label;

impl Meta for Label {
    fn reset(&mut self) {}
}

/// A store moves with its identity from thread to thread, while its blocks are dropped elsewhere.
#[test]
fn stress_a_store_wanders() {
    let mut identity = Identity::new();
    let seed = Seed::<Label>::new(8, 64).unwrap();
    let mut store: Option<Store<Label>> = Some(identity.wear(|| seed.open()));
    let end = Instant::now() + stress_time();
    let (send, receive) = std::sync::mpsc::sync_channel(4);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for block in receive {
                drop::<onbeat_queue::Block<u64, Label>>(block);
            }
        });
        let mut rounds = 0u64;
        while Instant::now() < end {
            let mine = store.take().unwrap();
            store = Some(std::thread::scope(|inner| {
                let (identity, send) = (&mut identity, &send);
                inner
                    .spawn(move || {
                        identity.wear(|| {
                            for round in 0..100 {
                                let Some(mut block) = mine.get::<u64>() else {
                                    std::thread::yield_now();
                                    continue;
                                };
                                block.edit().unwrap()[0] = round;
                                if round % 3 == 0 {
                                    send.send(block).unwrap();
                                }
                            }
                            mine
                        })
                    })
                    .join()
                    .unwrap()
            }));
            rounds += 1;
        }
        println!("on {rounds} threads");
        drop(send);
        assert!(rounds > 10);
    });
    let store = store.unwrap();
    identity.wear(|| {
        let all: Vec<_> = std::iter::from_fn(|| store.get::<u64>()).collect();
        assert_eq!(all.len(), 8, "a block was lost");
        drop((all, store));
    });
}

#[test]
#[should_panic(expected = "used on a thread that it does not belong to")]
fn a_store_is_not_used_by_strangers() {
    let store = Seed::<Label>::new(1, 64).unwrap().open();
    let mut identity = Identity::new();
    identity.wear(|| {
        // Not dropped here: that would be a second panic.
        let store = std::mem::ManuallyDrop::new(store);
        let _ = store.get::<u8>();
    });
}
