//! The work queue through every interleaving (`ci/loom`): the parts above the list, whose own models are in
//! `inbox/model.rs`. Each property has mistakes planted in the code itself, which loom must find.

use super::{Item, QueueCore, Shared, Turn};
use crate::list::Poller;
use crate::model::ParkedThread;
use crate::owner::Owner;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{plant, set_thread_number};
use loom::sync::Arc;
use loom::thread;

/// Starts a thread with this number, which selects one of two slots: the worker's first (2) or the others'
/// second (1).
fn start<R: 'static>(number: u32, act: impl FnOnce() -> R + 'static) -> thread::JoinHandle<R> {
    thread::spawn(move || {
        set_thread_number(number);
        act()
    })
}

fn queue(slots: usize) -> (Owner, Arc<QueueCore<ParkedThread>>) {
    set_thread_number(u32::MAX - 1);
    let owner = Owner::new();
    let queue = QueueCore::new(&owner, slots, ParkedThread::new());
    (owner, Arc::new(queue))
}

/// Works as the thread of a queue does, until another thread asks it to close.
fn work(owner: &mut Owner, queue: &QueueCore<ParkedThread>) {
    loop {
        queue.drain(owner, &mut |thrown| std::panic::resume_unwind(thrown));
        if queue.is_close_asked() {
            queue.close(owner, &mut |_| ());
            return;
        }
        if queue.sleep(owner) {
            while !queue.is_woken(owner) {
                queue.sleeper().parker.wait();
            }
            queue.wake_up(owner);
        }
    }
}

/// Two threads schedule one item while the queue closes: each `true` has a run, which sees earlier writes.
fn closing() {
    loom::model(|| {
        let (mut owner, queue) = queue(1);
        let runs = Arc::new(AtomicU32::new(0));
        let announced = Arc::new(AtomicU32::new(0));
        let seen = Arc::new(AtomicU32::new(0));
        let item = {
            let (runs, announced, seen) = (runs.clone(), announced.clone(), seen.clone());
            // Relaxed: the queue must make it visible.
            Shared::new(move |_| {
                runs.fetch_add(1, Ordering::Relaxed);
                seen.store(announced.load(Ordering::Relaxed), Ordering::Relaxed);
            })
        };
        let producer = start(1, {
            let (queue, item) = (queue.clone(), item.clone());
            move || {
                announced.store(1, Ordering::Relaxed);
                queue.schedule(&item)
            }
        });
        let mut queued = u32::from(queue.schedule(&item));
        queue.close(&mut owner, &mut |_| ());
        assert!(queue.is_closed() && !queue.schedule(&item));
        let other = producer.join().unwrap();
        queued += u32::from(other);
        assert_eq!(runs.load(Ordering::Relaxed), queued, "a run that was promised");
        assert!(!other || seen.load(Ordering::Relaxed) == 1, "an event was lost");
        queue.open(&mut owner);
        assert!(queue.schedule(&item), "it is not pending");
        assert_eq!(queue.drain(&mut owner, &mut |_| ()), 1);
    });
}

#[test]
fn what_was_promised_runs_though_it_closes() {
    closing();
}

#[test]
#[should_panic(expected = "a run that was promised")]
fn a_head_closed_over_a_push_is_found() {
    plant("closed by load and store");
    closing();
}

/// A thread schedules an item in its own slot, whose run schedules another one, and flushes: both have run.
/// The worker sleeps when it has nothing to do.
fn flushing(slots: usize) {
    loom::model(move || {
        let (mut owner, queue) = queue(slots);
        let worker = start(2, {
            let queue = queue.clone();
            move || work(&mut owner, &queue)
        });
        set_thread_number(1);
        let ran = Arc::new(AtomicU32::new(0));
        // Relaxed: the flush must make it visible.
        let second = Shared::new({
            let ran = ran.clone();
            move |_: &Turn| ran.store(ran.load(Ordering::Relaxed) + 1, Ordering::Relaxed)
        });
        let first = Shared::new({
            let (ran, on) = (ran.clone(), queue.clone());
            move |_: &Turn| {
                ran.store(ran.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                on.schedule(&second);
            }
        });
        assert!(queue.schedule(&first));
        let flusher = std::sync::Arc::new(ParkedThread::new());
        queue.flush(flusher.clone(), || flusher.parker.wait()).unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), 2, "a flush that was too early");
        queue.ask_to_close();
        worker.join().unwrap();
        drop(first);
    });
}

#[test]
fn a_flush_waits_for_what_runs_schedule() {
    flushing(1);
}

#[test]
fn a_flush_waits_for_all_slots() {
    flushing(2);
}

#[test]
#[should_panic(expected = "a flush that was too early")]
fn a_flush_with_one_sentinel_is_found() {
    plant("one sentinel");
    flushing(1);
}

#[test]
#[should_panic(expected = "a flush that was too early")]
fn a_flush_that_ends_within_a_pass_is_found() {
    plant("notified before the pass is over");
    flushing(2);
}

/// An item asks for another run repeatedly. When its scope is over it neither runs nor is pending.
fn ending() {
    loom::model(|| {
        let (mut owner, queue) = queue(1);
        // Not loom's type: the leaked item keeps it for ever.
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let worker = start(2, {
            let queue = queue.clone();
            move || work(&mut owner, &queue)
        });
        set_thread_number(1);
        let item = Item::new({
            let over = over.clone();
            let runs = AtomicU32::new(0);
            move |turn: &Turn| {
                assert!(!over.load(Ordering::Acquire), "a run after the end");
                // Limited: a model must end.
                if runs.fetch_add(1, Ordering::Relaxed) < 3 {
                    turn.again();
                }
            }
        });
        // Leaked, because loom goes on for a while after an assertion has failed.
        let item: &'static _ = Box::leak(Box::new(item));
        let ender = std::sync::Arc::new(ParkedThread::new());
        queue.scope(ender.clone(), || ender.parker.wait(), |scope| assert!(scope.schedule(item))).unwrap();
        over.store(true, Ordering::Release);
        queue.ask_to_close();
        worker.join().unwrap();
        assert!(!queue.schedule(item), "closed");
    });
}

#[test]
fn a_scope_ends_with_nothing_pending() {
    ending();
}

#[test]
#[should_panic(expected = "a run after the end")]
fn a_scope_that_stays_open_is_found() {
    plant("a scope that stays open");
    ending();
}

/// A thread flushes while the queue closes. The flush returns, but not before the thread's item has run.
#[test]
fn flushes_end_when_it_closes() {
    loom::model(|| {
        let (mut owner, queue) = queue(1);
        let ran = Arc::new(AtomicBool::new(false));
        let item = Shared::new({
            let ran = ran.clone();
            move |_: &Turn| ran.store(true, Ordering::Relaxed)
        });
        let flusher = start(1, {
            let (queue, ran) = (queue.clone(), ran.clone());
            move || {
                let queued = queue.schedule(&item);
                queue.flush(Poller, thread::yield_now).unwrap();
                assert!(!queued || ran.load(Ordering::Relaxed), "a flush that was too early");
            }
        });
        queue.close(&mut owner, &mut |_| ());
        flusher.join().unwrap();
    });
}
