//! The queue with threads.

use super::Nobody;
use crate::stress::{Dice, stress_time, watched};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use onbeat_queue::{Item, Owned, Owner, QueueCore, Shared, Sleeper, Turn};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

struct Parked(Thread);

impl Sleeper for Parked {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// Runs a worker that parks, on a thread of its own, while `act` runs.
fn with_worker<R: Send>(slots: usize, act: impl FnOnce(&QueueCore<Parked>) -> R + Send) -> R {
    let (send, queues) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let mut owner = Owner::new();
            let queue = Arc::new(QueueCore::new(&owner, slots, Parked(thread::current())));
            send.send(queue.clone()).unwrap();
            loop {
                queue.drain(&mut owner, &mut |thrown| std::panic::resume_unwind(thrown));
                if queue.is_close_asked() {
                    return queue.close(&mut owner, &mut |_| ());
                }
                if queue.sleep(&mut owner) {
                    while !queue.is_woken(&owner) {
                        thread::park();
                    }
                    queue.wake_up(&mut owner);
                }
            }
        });
        let queue = queues.recv().unwrap();
        let result = act(&queue);
        queue.ask_to_close();
        worker.join().unwrap();
        result
    })
}

fn flush(queue: &QueueCore<Parked>) {
    queue.flush(Parked(thread::current()), thread::park).unwrap();
}

const THREADS: usize = 4;

/// Threads schedule common items and their own while they drain; some flush, some free the items they made.
/// Each `true` is one run, and no event is lost.
#[test]
fn stress_every_true_is_one_run() {
    let time = stress_time();
    watched(time, move || {
        for slots in [1, 4] {
            with_worker(slots, |queue| rounds(queue, time / 2));
        }
    });
}

fn rounds(queue: &QueueCore<Parked>, time: Duration) {
    let end = Instant::now() + time;
    let (runs, promised, announced, read) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    // Relaxed throughout: the queue must make it visible.
    let run = |_: &Turn<'_>| {
        runs.fetch_add(1, Ordering::Relaxed);
        read.fetch_max(announced.load(Ordering::Relaxed), Ordering::Relaxed);
    };
    let common = [Item::new(run), Item::new(run)];
    let freed = Arc::new(AtomicU64::new(0));
    let made: u64 = queue
        .scope(Parked(thread::current()), thread::park, |scope| {
            let (common, promised, announced, freed) = (&common, &promised, &announced, &freed);
            thread::scope(|threads| {
                let all: Vec<_> = (0..THREADS as u64)
                    .map(|me| {
                        threads.spawn(move || {
                            let mut dice = Dice(me + 1);
                            let mut made = 0;
                            while Instant::now() < end {
                                announced.fetch_add(1, Ordering::Relaxed);
                                let chosen = &common[dice.below(2) as usize];
                                promised.fetch_add(u64::from(scope.schedule(chosen)), Ordering::Relaxed);
                                let mine = freed.clone();
                                if dice.below(2) == 0 {
                                    let item = Shared::new(move |_| {
                                        mine.fetch_add(1, Ordering::Relaxed);
                                    });
                                    assert!(queue.schedule(&item));
                                } else {
                                    let item = Owned::new(mine, |mine, _| {
                                        mine.fetch_add(1, Ordering::Relaxed);
                                    });
                                    queue.schedule_owned(item).unwrap();
                                }
                                made += 1;
                                if dice.below(64) == 0 {
                                    let before = freed.load(Ordering::Relaxed);
                                    flush(queue);
                                    assert!(freed.load(Ordering::Relaxed) >= before.max(made));
                                }
                                dice.maybe_stop();
                            }
                            made
                        })
                    })
                    .collect();
                all.into_iter().map(|thread| thread.join().unwrap()).sum()
            })
        })
        .unwrap();
    assert_eq!(freed.load(Ordering::Relaxed), made);
    assert_eq!(runs.load(Ordering::Relaxed), promised.load(Ordering::Relaxed));
    assert_eq!(read.load(Ordering::Relaxed), announced.load(Ordering::Relaxed), "an event was lost");
}

/// The items of one thread run in its order; with one slot those of all threads run in their common order.
#[test]
fn the_order_is_kept() {
    watched(Duration::ZERO, || {
        for slots in [1, 4] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            // The thread, its own count and the common count.
            let next = Arc::new(Mutex::new(0));
            with_worker(slots, |queue| {
                thread::scope(|scope| {
                    for me in 0..THREADS {
                        let (seen, next) = (seen.clone(), next.clone());
                        scope.spawn(move || {
                            for at in 0..2_000 {
                                let seen = seen.clone();
                                let mut next = next.lock().unwrap();
                                *next += 1;
                                let entry = (me, at, *next);
                                queue.schedule(&Shared::new(move |_| seen.lock().unwrap().push(entry)));
                            }
                        });
                    }
                });
                flush(queue);
            });
            let seen = seen.lock().unwrap();
            assert_eq!(seen.len(), THREADS * 2_000);
            for me in 0..THREADS {
                let mine = seen.iter().filter(|entry| entry.0 == me).map(|entry| entry.1);
                assert!(mine.eq(0..2_000), "thread {me}, {slots} slots");
            }
            if slots == 1 {
                assert!(seen.iter().map(|entry| entry.2).eq(1..=(THREADS * 2_000) as u32));
            }
        }
    });
}

/// A scope ends although its item always asks for another run, and the item does not run later.
#[test]
fn a_scope_ends_what_never_ends_by_itself() {
    watched(Duration::ZERO, || {
        with_worker(4, |queue| {
            for _ in 0..200 {
                let over = AtomicBool::new(false);
                let runs = AtomicU32::new(0);
                let item = Item::new(|turn: &Turn<'_>| {
                    assert!(!over.load(Ordering::Acquire), "a run after the end");
                    runs.fetch_add(1, Ordering::Relaxed);
                    turn.again();
                });
                let scoped = queue.scope(Nobody, thread::yield_now, |scope| {
                    assert!(scope.schedule(&item));
                    while runs.load(Ordering::Relaxed) < 3 {
                        thread::yield_now();
                    }
                });
                over.store(true, Ordering::Release);
                assert_eq!(scoped, Ok(()));
            }
        });
    });
}
