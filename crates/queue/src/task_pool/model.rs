//! The task pool through every interleaving (`ci/loom`). Each property has mistakes planted in the code
//! itself, which loom must find.

use super::{TaskLease, TaskPool};
use crate::model::LoomEvent;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::plant;
use loom::sync::Arc;
use loom::thread;

/// Two threads leave an event each and wake the task; the one that gets `true` runs it. No event is left
/// over, and no two threads touch the task at once.
fn wake_and_rest() {
    loom::model(|| {
        let pool = Arc::new(TaskPool::new(2, 1));
        pool.enter(0, 0u32);
        assert!(pool.take(0).unwrap().rest().is_ok());
        let events = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let wakers = [0, 1].map(|me| {
            let (pool, events) = (pool.clone(), events.clone());
            thread::spawn(move || {
                // Relaxed: the pool must make it visible.
                events[me].store(1, Ordering::Relaxed);
                if pool.wake(0) {
                    run(&pool, &events);
                }
            })
        });
        for waker in wakers {
            waker.join().unwrap();
        }
        assert_eq!(
            *pool.take(0).map_or_else(|| wake_again(&pool), |task| task),
            2,
            "an event was overlooked"
        );
    });
}

fn run(pool: &TaskPool<u32>, events: &[AtomicU32; 2]) {
    let mut task = pool.take(0).expect("it was woken by us, and no other thread was");
    loop {
        for event in events {
            if event.load(Ordering::Relaxed) == 1 {
                event.store(2, Ordering::Relaxed);
                *task += 1;
            }
        }
        match task.rest() {
            Ok(()) => return,
            Err(again) => task = again,
        }
    }
}

fn wake_again(pool: &TaskPool<u32>) -> TaskLease<'_, u32> {
    assert!(pool.wake(0), "it rests");
    pool.take(0).unwrap()
}

#[test]
fn model_task_pool_wake_and_rest() {
    wake_and_rest();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_rest_by_a_store() {
    plant("rest by a store");
    wake_and_rest();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_relaxed_rest() {
    plant("relaxed rest");
    wake_and_rest();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_relaxed_take() {
    plant("relaxed take");
    wake_and_rest();
}

/// A waker that gets false leaves its event to the holder.
fn event_before_a_false_wake() {
    loom::model(|| {
        let pool = Arc::new(TaskPool::new(2, 1));
        pool.enter(0, ());
        let event = Arc::new(LoomEvent::new());
        let other = {
            let (pool, event) = (pool.clone(), event.clone());
            thread::spawn(move || {
                event.write();
                pool.wake(0)
            })
        };
        // The task is ready from the start: either this run sees the wake-up, or the waker was told to queue
        // the task.
        let mut task = pool.take(0).unwrap();
        let mut seen = false;
        loop {
            match task.rest() {
                Ok(()) => break,
                Err(again) => {
                    seen = true;
                    event.take();
                    task = again;
                }
            }
        }
        let must_run = other.join().unwrap();
        // Queued before the take, or resting after the rest, or held in between.
        assert!(must_run || seen || pool.take(0).is_none());
        assert!(!(must_run && seen));
    });
}

#[test]
fn model_task_pool_event_before_a_false_wake() {
    event_before_a_false_wake();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_relaxed_wake() {
    plant("relaxed wake");
    event_before_a_false_wake();
}

/// One thread offers, the other runs out of work and parks: it never sleeps beside an offer.
fn offer_and_park() {
    loom::model(|| {
        let pool = Arc::new(TaskPool::<()>::new(2, 1));
        let sleeper = {
            let pool = pool.clone();
            thread::spawn(move || pool.claim(0).is_none() && pool.begin_park(1))
        };
        let roused = pool.offer(0, 0).is_some();
        let sleeps = sleeper.join().unwrap();
        assert!(!sleeps || roused, "it sleeps beside an offer");
    });
}

#[test]
fn model_task_pool_offer_and_park() {
    offer_and_park();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_missing_fence_after_the_offer() {
    plant("no fence after the offer");
    offer_and_park();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_missing_fence_before_the_last_check() {
    plant("no fence before the last check");
    offer_and_park();
}

/// Two threads claim from one set while it is filled: each offer is claimed once.
fn claim_once() {
    loom::model(|| {
        let pool = Arc::new(TaskPool::<()>::new(2, 2));
        assert_eq!(pool.offer(0, 0), None);
        let claims = [(), ()].map(|()| {
            let pool = pool.clone();
            thread::spawn(move || u32::from(pool.claim(0).is_some()))
        });
        assert_eq!(pool.offer(0, 1), None);
        let claimed: u32 = claims.into_iter().map(|claim| claim.join().unwrap()).sum();
        let left = u32::from(pool.claim(0).is_some()) + u32::from(pool.claim(0).is_some());
        assert_eq!(claimed + left, 2);
    });
}

#[test]
fn model_task_pool_claim_once() {
    claim_once();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_claim_by_load_and_store() {
    plant("claim by load and store");
    claim_once();
}

/// An alarm is set while another thread takes out those that are due: none is forgotten.
fn set_and_take_due() {
    loom::model(|| {
        let pool = Arc::new(TaskPool::<()>::new(2, 2));
        pool.set_alarm(0, 10);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || {
                pool.set_alarm(1, 20);
            })
        };
        let mut due = Vec::new();
        pool.take_due(15, |task| due.push(task));
        other.join().unwrap();
        assert_eq!(due, [0]);
        assert!(pool.next_alarm_ns() <= 20, "an alarm was forgotten");
    });
}

#[test]
fn model_task_pool_set_and_take_due() {
    set_and_take_due();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_late_reset() {
    plant("next reset behind the scan");
    set_and_take_due();
}

/// A thread sets an alarm and begins a long step, while the other one parks: one of them watches the alarm.
fn watch_and_park() {
    loom::model(|| {
        let pool = Arc::new(TaskPool::<()>::new(2, 1));
        // It has slept before, until a time that is over.
        pool.set_alarm(0, 5);
        assert!(pool.begin_park(1));
        pool.end_park(1);
        pool.take_due(5, |_| ());
        let sleeper = {
            let pool = pool.clone();
            thread::spawn(move || {
                assert!(pool.begin_park(1));
                pool.parked_until_ns(1)
            })
        };
        pool.set_alarm(0, 10);
        let roused = pool.watch_alarms(0);
        let until_ns = sleeper.join().unwrap();
        assert!(roused.is_some() || until_ns <= 10, "no thread watches the alarm");
    });
}

#[test]
fn model_task_pool_watch_and_park() {
    watch_and_park();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_missing_fence_after_the_alarm() {
    plant("no fence after the alarm");
    watch_and_park();
}

#[test]
#[should_panic]
fn model_task_pool_finds_an_old_time() {
    plant("an old time is left");
    watch_and_park();
}

/// The thread that watches descriptors begins a long step and leaves the watch to others, while the other one
/// parks, as it sees that one watching. Either one watches, or the one that parks is woken to watch.
fn leave_the_watch() {
    loom::model(|| {
        let pool = Arc::new(TaskPool::<()>::new(2, 1));
        let is_watched = Arc::new(AtomicBool::new(true));
        let sleeper = {
            let (pool, is_watched) = (pool.clone(), is_watched.clone());
            thread::spawn(move || {
                // Relaxed: the fence in `begin_park` makes it late enough.
                let sleeps = pool.begin_park(1) && is_watched.load(Ordering::Relaxed);
                if !sleeps {
                    pool.end_park(1);
                }
                sleeps
            })
        };
        is_watched.store(false, Ordering::Release);
        let roused = pool.take_sleeper(0);
        let sleeps = sleeper.join().unwrap();
        assert!(!sleeps || roused == Some(1), "no thread watches");
    });
}

#[test]
fn model_task_pool_leave_the_watch() {
    leave_the_watch();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_missing_fence_before_the_sleepers_are_read() {
    plant("no fence before the sleepers are read");
    leave_the_watch();
}

#[test]
#[should_panic]
fn model_task_pool_finds_a_missing_fence_before_the_watch_is_checked() {
    plant("no fence before the last check");
    leave_the_watch();
}
