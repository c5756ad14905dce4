//! What the kernel's self test does not check: the same item from several threads while it drains, flush from
//! many threads, lost events, an item freed in its callback, a producer that is stopped in the middle, calls
//! from the worker itself.

use super::{queues, watched};
use onbeat::WorkQueue;
use onbeat::work_queue::{Item, Owned, Shared, Turn, WorkQueueError};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;

/// Four threads schedule the same two items while they drain: as many runs as trues, and what each has
/// written before is seen, also by who got false.
#[test]
fn the_same_item_from_several_threads() {
    const ROUNDS: u64 = 30_000;
    watched(|| {
        for queue in queues() {
            // Relaxed throughout: the queue is to make it visible.
            let (told, read): ([AtomicU64; 4], [AtomicU64; 4]) = Default::default();
            let (runs, queued) = (AtomicU64::new(0), AtomicU64::new(0));
            let run = |_: &Turn| {
                runs.fetch_add(1, Ordering::Relaxed);
                for (told, read) in told.iter().zip(&read) {
                    read.store(told.load(Ordering::Relaxed), Ordering::Relaxed);
                }
            };
            let item = Item::new(run);
            queue
                .scope(|scope| {
                    thread::scope(|threads| {
                        for told in &told {
                            let (queued, item) = (&queued, &item);
                            threads.spawn(move || {
                                for round in 1..=ROUNDS {
                                    told.store(round, Ordering::Relaxed);
                                    queued.fetch_add(u64::from(scope.schedule(item)), Ordering::Relaxed);
                                }
                            });
                        }
                    });
                    queue.flush().unwrap();
                    assert!(
                        read.iter().all(|read| read.load(Ordering::Relaxed) == ROUNDS),
                        "an event was lost"
                    );
                })
                .unwrap();
            assert_eq!(runs.into_inner(), queued.into_inner());
        }
    });
}

/// Each of eight threads schedules an item that schedules another one, flushes, and finds that both have run.
#[test]
fn flush_from_many_threads() {
    watched(|| {
        for queue in queues() {
            let queue = Arc::new(queue);
            thread::scope(|threads| {
                for _ in 0..8 {
                    threads.spawn(|| {
                        let runs = Arc::new(AtomicU64::new(0));
                        let counts = runs.clone();
                        let second = Shared::new(move |_: &Turn| {
                            counts.fetch_add(1, Ordering::Relaxed);
                        });
                        let (counts, on, then) = (runs.clone(), Arc::downgrade(&queue), second.clone());
                        let first = Shared::new(move |_: &Turn| {
                            counts.fetch_add(1, Ordering::Relaxed);
                            assert!(on.upgrade().unwrap().schedule(&then));
                        });
                        for round in 1..=200 {
                            assert!(queue.schedule(&first));
                            queue.flush().unwrap();
                            assert_eq!(runs.load(Ordering::Relaxed), 2 * round);
                        }
                    });
                }
            });
        }
    });
}

/// Thousands of items are freed in their own callbacks, by all the ways there are. Under valgrind or a
/// sanitizer this also shows that the queue is done with an item before it calls it.
#[test]
fn items_freed_in_their_own_callbacks() {
    type Place = OnceLock<Mutex<Option<Shared<Box<dyn Fn(&Turn<'_>) + Send + Sync>>>>>;
    const EACH: u64 = 2_000;
    watched(|| {
        for queue in queues() {
            let freed = Arc::new(AtomicU64::new(0));
            for _ in 0..EACH {
                let counts = freed.clone();
                let owned = Owned::new(vec![counts; 3], |item, _| {
                    let counts = item[0].clone();
                    drop(item);
                    counts.fetch_add(1, Ordering::Relaxed);
                });
                assert!(queue.schedule_owned(owned).is_ok());
                let (place, counts): (Arc<Place>, _) = (Arc::default(), freed.clone());
                let inside = place.clone();
                let item = Shared::new(Box::new(move |_: &Turn<'_>| {
                    let me = inside.get().and_then(|place| place.lock().unwrap().take());
                    drop(me);
                    counts.fetch_add(1, Ordering::Relaxed);
                }) as Box<dyn Fn(&Turn<'_>) + Send + Sync>);
                place.set(Mutex::new(Some(item.clone()))).unwrap_or_else(|_| unreachable!());
                assert!(queue.schedule(&item));
            }
            queue.flush().unwrap();
            assert_eq!(freed.load(Ordering::Relaxed), 2 * EACH);
            queue.stop().unwrap();
            assert_eq!(Arc::strong_count(&freed), 1, "all of them are gone");
        }
    });
}

/// A producer stands still for as long as it likes in the middle of what it does for the queue: here in an
/// iterator that `schedule_many` asks. Nobody waits for it: other items run, and a flush ends.
#[test]
fn a_producer_that_is_stopped_holds_up_nobody() {
    watched(|| {
        let (stopped, until_stopped) = mpsc::channel();
        let (go_on, until_go_on) = mpsc::channel::<()>();
        let queue = WorkQueue::named("stopped").fifo().start().unwrap();
        let counts = Arc::new(AtomicU64::new(0));
        let item = |counts: &Arc<AtomicU64>| {
            let counts = counts.clone();
            Shared::new(move |_: &Turn| {
                counts.fetch_add(1, Ordering::Relaxed);
            })
        };
        let held = [item(&counts), item(&counts)];
        thread::scope(|threads| {
            threads.spawn({
                let (held, queue) = (&held, &queue);
                move || {
                    let slowly = held.iter().inspect(|_| {
                        stopped.send(()).unwrap();
                        until_go_on.recv().unwrap();
                    });
                    assert_eq!(queue.schedule_many(slowly), 2);
                }
            });
            until_stopped.recv().unwrap();
            go_on.send(()).unwrap();
            // Now one of its items is pending, and not on the list.
            until_stopped.recv().unwrap();
            assert!(!queue.schedule(&held[0]), "pending already");
            let others = Arc::new(AtomicU64::new(0));
            for _ in 0..1_000 {
                assert!(queue.schedule(&item(&others)));
            }
            queue.flush().unwrap();
            assert_eq!((others.load(Ordering::Relaxed), counts.load(Ordering::Relaxed)), (1_000, 0));
            go_on.send(()).unwrap();
        });
        queue.flush().unwrap();
        assert_eq!(counts.load(Ordering::Relaxed), 2);
    });
}

/// Waiting for oneself is an error, at once; the queue goes on.
#[test]
fn calls_from_the_worker_itself() {
    watched(|| {
        let queue = Arc::new(WorkQueue::named("itself").start().unwrap());
        let (answer, answers) = mpsc::channel();
        let on = Arc::downgrade(&queue);
        let item = Shared::new(move |_: &Turn| {
            let on = on.upgrade().unwrap();
            for result in [on.flush(), on.stop(), on.scope(|_| ())] {
                answer.send(result.unwrap_err().to_string()).unwrap();
            }
            assert!(on.is_running() && on.start().is_ok());
        });
        queue.schedule(&item);
        for what in ["flush", "stop", "scope"] {
            let error = answers.recv().unwrap();
            let begin =
                format!("{what} of the work queue `itself` in one of its own callbacks would never end");
            assert!(error.starts_with(&begin), "{error}");
        }
        queue.flush().unwrap();
        assert!(matches!(queue.stop(), Ok(())));
    });
}

/// The last owner of a queue may be one of its callbacks.
#[test]
fn a_queue_dropped_by_its_own_callback() {
    watched(|| {
        let queue = WorkQueue::named("dropped").start().unwrap();
        let (done, is_done) = mpsc::channel();
        let (give, take) = mpsc::channel::<WorkQueue>();
        let take = Mutex::new(take);
        let later = done.clone();
        queue.schedule(&Shared::new(move |_| {
            drop(take.lock().unwrap().recv().unwrap());
            done.send("dropped").unwrap();
        }));
        queue.schedule(&Shared::new(move |_| later.send("and ran what it had promised").unwrap()));
        give.send(queue).unwrap();
        assert_eq!(is_done.iter().collect::<Vec<_>>(), ["dropped", "and ran what it had promised"]);
    });
}

/// Stops, starts and flushes go on while threads schedule: each true has its run.
#[test]
fn stopped_and_started_under_load() {
    watched(|| {
        let queue = WorkQueue::named("on-and-off").start().unwrap();
        let (runs, queued) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
        let over = AtomicBool::new(false);
        thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    let counts = runs.clone();
                    let item = Shared::new(move |_: &Turn| {
                        counts.fetch_add(1, Ordering::Relaxed);
                    });
                    while !over.load(Ordering::Relaxed) {
                        queued.fetch_add(u64::from(queue.schedule(&item)), Ordering::Relaxed);
                        let counts = runs.clone();
                        let owned = Owned::new(counts, |counts, _| {
                            counts.fetch_add(1, Ordering::Relaxed);
                        });
                        queued.fetch_add(u64::from(queue.schedule_owned(owned).is_ok()), Ordering::Relaxed);
                        queue.flush().unwrap();
                    }
                });
            }
            for _ in 0..200 {
                queue.stop().unwrap();
                queue.start().unwrap();
            }
            over.store(true, Ordering::Relaxed);
        });
        queue.stop().unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), queued.load(Ordering::Relaxed));
    });
}

/// An error value says which queue.
#[test]
fn errors_have_the_name() {
    let error = WorkQueueError::OnWorker { queue: "radio".to_owned(), what: "flush" };
    assert!(error.to_string().contains("`radio`"), "{error}");
}
