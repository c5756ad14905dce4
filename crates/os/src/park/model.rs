//! Parking at a poll through every interleaving (`ci/loom`): the code of `park.rs` over a kernel of loom's
//! atomics. Each property has mistakes planted in the code itself, which loom must find.
//!
//! Only a wake-up that ends a sleep orders memory here; the word must order all else. A lost wake-up is a
//! deadlock, which loom reports. The descriptors of `ModelPoll` and its bell are never read stale, since the
//! kernel changes and reads them under a lock.

use super::{Parker, Unparked, Unparker};
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::sync::atomic::{AtomicBool, AtomicU64};
use loom::sync::{Mutex, Notify};
use loom::thread;
use std::cell::Cell;
use std::io;
use std::sync::{Arc, OnceLock};

pub(super) use loom::sync::atomic::AtomicU32;

/// `crate::futex` for one sleeper. A deadline has always passed: loom tries all orders with other threads.
pub(super) mod futex {
    use super::{AtomicU32, Notify, Relaxed, io};
    use crate::futex::Wake;

    loom::lazy_static! {
        static ref SLEEPER: Notify = Notify::new();
    }

    pub fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> io::Result<Wake> {
        if word.fetch_or(0, Relaxed) != expected {
            return Ok(Wake::Changed);
        }
        if deadline_ns.is_some() {
            return Ok(Wake::TimedOut);
        }
        SLEEPER.wait();
        Ok(Wake::Woken)
    }

    pub fn wake(_word: &AtomicU32, count: u32) -> io::Result<u32> {
        SLEEPER.notify();
        Ok(count)
    }
}

/// `crate::poll::Poll` with one descriptor. The kernel's operations take turns: all are read-modify-writes.
#[derive(Debug, Default)]
pub struct ModelPoll {
    bell: AtomicU64,
    ready: AtomicU64,
    sleeper: Notify,
}

impl ModelPoll {
    pub fn ring(&self) {
        self.bell.fetch_add(1, Relaxed);
        self.sleeper.notify();
    }

    pub fn silence(&self) {
        self.bell.swap(0, Relaxed);
    }

    pub fn wait(&self, deadline_ns: Option<u64>) -> io::Result<bool> {
        loop {
            let ends = self.bell.fetch_add(0, Relaxed) > 0 || self.ready.fetch_add(0, Relaxed) > 0;
            if ends || deadline_ns.is_some() {
                return Ok(ends);
            }
            self.sleeper.wait();
        }
    }

    fn make_ready(&self) {
        self.ready.fetch_add(1, Relaxed);
        self.sleeper.notify();
    }

    /// Takes the event of the descriptor, once, as for an armed one. Returns whether the bell rings.
    fn look(&self, mut ready: impl FnMut()) -> bool {
        if self.ready.swap(0, Relaxed) > 0 {
            ready();
        }
        self.bell.fetch_add(0, Relaxed) > 0
    }
}

/// `OnceLock` whose value other threads see only if something orders them after the thread that set it.
#[derive(Debug, Default)]
pub(super) struct ModelOnce<T> {
    is_set: AtomicBool,
    value: OnceLock<T>,
}

impl<T> ModelOnce<T> {
    pub fn get_or_init(&self, value: impl FnOnce() -> T) -> &T {
        if self.value.get().is_none() {
            let _ = self.value.set(value());
            self.is_set.store(true, Release);
        }
        self.value.get().expect("set above")
    }

    pub fn get(&self) -> Option<&T> {
        self.is_set.load(Acquire).then(|| self.value.get()).flatten()
    }
}

thread_local! {
    /// Loom runs all threads of a model on the thread of its test.
    static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

pub(super) fn planted(mistake: &'static str) -> bool {
    PLANTED.get() == Some(mistake)
}

/// Runs a model with a mistake, for the rest of the test.
fn plant(mistake: &'static str, model: fn()) {
    PLANTED.set(Some(mistake));
    model();
}

/// A thread that waits at the poll until there is work, as the caller of `park_polling` does.
fn wait_at(poll: &Arc<ModelPoll>, parker: &Parker, has_work: impl Fn() -> bool, mut ready: impl FnMut()) {
    while !has_work() {
        if parker.park_polling(poll, None) == Unparked::Ready && poll.look(&mut ready) {
            poll.silence();
        }
    }
}

/// Leaves work and unparks. Relaxed: the parker must make it visible.
fn leave_work(work: &AtomicBool, unparker: &Unparker) {
    work.store(true, Relaxed);
    unparker.unpark();
}

/// Work of an unparker, and a descriptor that becomes ready. Either the waiter finds that, or a thread at
/// work that looks and unparks the waiter. The waiter sleeps through neither.
fn unparkers_and_a_look() {
    loom::model(|| {
        let (poll, parker) = (Arc::<ModelPoll>::default(), Parker::new());
        let work = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let unparking = {
            let (work, unparker) = (work.clone(), parker.unparker());
            thread::spawn(move || leave_work(&work[0], &unparker))
        };
        let looking = {
            let (work, unparker, poll) = (work.clone(), parker.unparker(), poll.clone());
            thread::spawn(move || {
                // As if by a peer: the waiter may be faster than the look.
                poll.make_ready();
                let rings = poll.look(|| leave_work(&work[1], &unparker));
                if rings && planted("silence by a thread at work") {
                    poll.silence();
                }
            })
        };
        let events = Cell::new(0);
        let has_all = || {
            let event = events.get() > 0 || work[1].load(Relaxed);
            work[0].load(Relaxed) && event
        };
        wait_at(&poll, &parker, has_all, || events.set(events.get() + 1));
        [unparking, looking].into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(events.get() + u32::from(work[1].load(Relaxed)), 1, "an event has one effect");
    });
}

#[test]
fn model_poll_unparkers_and_a_look() {
    unparkers_and_a_look();
}

#[test]
#[should_panic]
fn model_poll_finds_a_silence_by_a_thread_at_work() {
    plant("silence by a thread at work", unparkers_and_a_look);
}

#[test]
#[should_panic]
fn model_poll_finds_a_silence_after_the_announcement() {
    plant("silence after the announcement", unparkers_and_a_look);
}

#[test]
#[should_panic]
fn model_poll_finds_a_missing_announcement() {
    plant("no announcement before the wait", unparkers_and_a_look);
}

#[test]
#[should_panic]
fn model_poll_finds_a_relaxed_announcement() {
    plant("relaxed announcement", unparkers_and_a_look);
}

/// Two unparkers and a deadline that passes at any time: what comes with it is kept, or taken once. Then the
/// thread waits in its futex, as one that does not watch.
fn unparkers_and_a_deadline() {
    loom::model(|| {
        let (poll, parker) = (Arc::<ModelPoll>::default(), Parker::new());
        let work = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let unparking = [0, 1].map(|me| {
            let (work, unparker) = (work.clone(), parker.unparker());
            thread::spawn(move || leave_work(&work[me], &unparker))
        });
        let left = || work.iter().filter(|work| !work.load(Relaxed)).count();
        let mut notified = 0;
        match parker.park_polling(&poll, Some(0)) {
            Unparked::Notified => notified += 1,
            Unparked::Ready => unreachable!("the bell rings only for a notification"),
            Unparked::TimedOut => {}
        }
        assert!(notified == 0 || left() < 2, "a notification without its work");
        while left() > 0 {
            parker.park();
            notified += 1;
        }
        unparking.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(notified <= 2, "a notification was taken twice");
    });
}

#[test]
fn model_poll_unparkers_and_a_deadline() {
    unparkers_and_a_deadline();
}

#[test]
#[should_panic]
fn model_poll_finds_an_announcement_by_a_store() {
    plant("announced by a store", unparkers_and_a_deadline);
}

#[test]
#[should_panic]
fn model_poll_finds_a_state_left_by_load_and_store() {
    plant("left by load and store", unparkers_and_a_deadline);
}

#[test]
#[should_panic]
fn model_poll_finds_a_relaxed_leave() {
    plant("relaxed leave", unparkers_and_a_deadline);
}

#[test]
#[should_panic]
fn model_poll_finds_a_relaxed_unpark() {
    plant("relaxed unpark", unparkers_and_a_deadline);
}

/// Two threads share a poll, one waits at a time; a third one unparks both. No ring for one is lost on the
/// other.
fn two_that_share_a_poll() {
    loom::model(|| {
        let (poll, watch) = (Arc::<ModelPoll>::default(), Arc::new(Mutex::new(())));
        let work = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let (here, there) = (Parker::new(), Parker::new());
        let unparkers = [here.unparker(), there.unparker()];
        let member = |me: usize, parker: Parker| {
            let (poll, watch, work) = (poll.clone(), watch.clone(), work.clone());
            move || {
                let watching = watch.lock().unwrap();
                wait_at(&poll, &parker, || work[me].load(Relaxed), || ());
                drop(watching);
                if planted("silence after the watch") {
                    poll.silence();
                }
            }
        };
        let other = thread::spawn(member(1, there));
        let unparking = {
            let work = work.clone();
            let leave = move || work.iter().zip(&unparkers).for_each(|(work, to)| leave_work(work, to));
            thread::spawn(leave)
        };
        member(0, here)();
        other.join().unwrap();
        unparking.join().unwrap();
    });
}

#[test]
fn model_poll_two_that_share_it() {
    two_that_share_a_poll();
}

#[test]
#[should_panic]
fn model_poll_finds_a_silence_after_the_watch() {
    plant("silence after the watch", two_that_share_a_poll);
}
