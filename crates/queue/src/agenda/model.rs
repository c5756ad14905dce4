//! The agenda, through every interleaving (`ci/loom`): what comes on top of the list, whose own models are in
//! `list/model.rs`. Each property has mistakes planted in the code itself, which loom must find.

use super::{Agenda, Item, Shared, Turn};
use crate::Owner;
use crate::list::Sleeper;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{plant, set_thread_number};
use loom::sync::{Arc, Notify};
use loom::thread;

struct Nobody;

impl Sleeper for Nobody {
    fn wake(&self) {}
}

/// Stands in for a parked thread.
struct Thread(Notify);

impl Sleeper for Thread {
    fn wake(&self) {
        self.0.notify();
    }
}

/// The numbers say who uses which of two slots: the worker the first (2), others the second (1).
fn start<R: 'static>(number: u32, act: impl FnOnce() -> R + 'static) -> thread::JoinHandle<R> {
    thread::spawn(move || {
        set_thread_number(number);
        act()
    })
}

fn agenda(slots: usize) -> (Owner, Arc<Agenda<Thread>>) {
    set_thread_number(u32::MAX - 1);
    let owner = Owner::new();
    let agenda = Agenda::new(&owner, slots, Thread(Notify::new()));
    (owner, Arc::new(agenda))
}

/// As the worker of a queue does: until somebody asks it to close.
fn work(owner: &mut Owner, agenda: &Agenda<Thread>) {
    loop {
        agenda.drain(owner, &mut |thrown| std::panic::resume_unwind(thrown));
        if agenda.is_close_asked() {
            agenda.close(owner, &mut |_| ());
            return;
        }
        if agenda.sleep(owner) {
            while !agenda.is_woken(owner) {
                agenda.sleeper().0.wait();
            }
            agenda.wake_up(owner);
        }
    }
}

/// Two threads schedule one item while the agenda closes: each true has a run, and sees what was written before it.
fn closing() {
    loom::model(|| {
        let (mut owner, agenda) = agenda(1);
        let runs = Arc::new(AtomicU32::new(0));
        let told = Arc::new(AtomicU32::new(0));
        let seen = Arc::new(AtomicU32::new(0));
        let item = {
            let (runs, told, seen) = (runs.clone(), told.clone(), seen.clone());
            // Relaxed: the agenda is to make it visible.
            Shared::new(move |_| {
                runs.fetch_add(1, Ordering::Relaxed);
                seen.store(told.load(Ordering::Relaxed), Ordering::Relaxed);
            })
        };
        let producer = start(1, {
            let (agenda, item) = (agenda.clone(), item.clone());
            move || {
                told.store(1, Ordering::Relaxed);
                agenda.schedule(&item)
            }
        });
        let mut queued = u32::from(agenda.schedule(&item));
        agenda.close(&mut owner, &mut |_| ());
        assert!(agenda.is_closed() && !agenda.schedule(&item));
        let other = producer.join().unwrap();
        queued += u32::from(other);
        assert_eq!(runs.load(Ordering::Relaxed), queued, "a run that was promised");
        assert!(!other || seen.load(Ordering::Relaxed) == 1, "an event was lost");
        agenda.open(&mut owner);
        assert!(agenda.schedule(&item), "it is not pending");
        assert_eq!(agenda.drain(&mut owner, &mut |_| ()), 1);
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

/// A thread schedules an item in a slot of its own, whose run schedules another one, and flushes: both have run. The
/// worker sleeps when it has nothing to do.
fn flushing(slots: usize) {
    loom::model(move || {
        let (mut owner, agenda) = agenda(slots);
        let worker = start(2, {
            let agenda = agenda.clone();
            move || work(&mut owner, &agenda)
        });
        set_thread_number(1);
        let ran = Arc::new(AtomicU32::new(0));
        // Relaxed: the flush is to make it visible.
        let second = Shared::new({
            let ran = ran.clone();
            move |_: &Turn| ran.store(ran.load(Ordering::Relaxed) + 1, Ordering::Relaxed)
        });
        let first = Shared::new({
            let (ran, on) = (ran.clone(), agenda.clone());
            move |_: &Turn| {
                ran.store(ran.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                on.schedule(&second);
            }
        });
        assert!(agenda.schedule(&first));
        let told = Arc::new(Notify::new());
        agenda.flush(Told(told.clone()), || told.wait()).unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), 2, "a flush that was too early");
        agenda.ask_to_close();
        worker.join().unwrap();
        drop(first);
    });
}

struct Told(Arc<Notify>);

impl Sleeper for Told {
    fn wake(&self) {
        self.0.notify();
    }
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
    plant("told before the pass is over");
    flushing(2);
}

/// An item that asks for another run again and again: when its scope is over it neither runs nor is pending.
fn ending() {
    loom::model(|| {
        let (mut owner, agenda) = agenda(1);
        // Not loom's: the item that has it stays for ever.
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let worker = start(2, {
            let agenda = agenda.clone();
            move || work(&mut owner, &agenda)
        });
        set_thread_number(1);
        let item = Item::new({
            let over = over.clone();
            let runs = AtomicU32::new(0);
            move |turn: &Turn| {
                assert!(!over.load(Ordering::Acquire), "a run after the end");
                // Not for ever: a model has to end.
                if runs.fetch_add(1, Ordering::Relaxed) < 3 {
                    turn.again();
                }
            }
        });
        // Where it is found to be wrong it must not be gone: loom goes on for a while.
        let item: &'static _ = Box::leak(Box::new(item));
        let told = Arc::new(Notify::new());
        agenda.scope(Told(told.clone()), || told.wait(), |scope| assert!(scope.schedule(item))).unwrap();
        over.store(true, Ordering::Release);
        agenda.ask_to_close();
        worker.join().unwrap();
        assert!(!agenda.schedule(item), "closed");
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

/// A thread flushes while the agenda closes: it comes back, and not before its item has run.
#[test]
fn flushes_end_when_it_closes() {
    loom::model(|| {
        let (mut owner, agenda) = agenda(1);
        let ran = Arc::new(AtomicBool::new(false));
        let item = Shared::new({
            let ran = ran.clone();
            move |_: &Turn| ran.store(true, Ordering::Relaxed)
        });
        let flusher = start(1, {
            let (agenda, ran) = (agenda.clone(), ran.clone());
            move || {
                let queued = agenda.schedule(&item);
                agenda.flush(Nobody, thread::yield_now).unwrap();
                assert!(!queued || ran.load(Ordering::Relaxed), "a flush that was too early");
            }
        });
        agenda.close(&mut owner, &mut |_| ());
        flusher.join().unwrap();
    });
}
