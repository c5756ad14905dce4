//! The inbox with threads.

use super::Counts;
use crate::stress::{Dice, stress_time, watched};
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onbeat_queue::{Inbox, Owner, Sleeper};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Unparks the worker, and counts.
struct Parked {
    worker: Thread,
    counts: Counts,
}

impl Sleeper for Parked {
    fn claim(&self) {
        self.counts.claim();
    }

    fn unclaim(&self) {
        self.counts.unclaim();
    }

    fn wake(&self) {
        self.counts.wake();
        self.worker.unpark();
    }
}

/// Sleeps until there is work; returns the claims that were found.
fn wait<S: Sleeper>(inbox: &Inbox<S>, owner: &mut Owner) -> u32 {
    match inbox.sleep(owner) {
        Ok(()) => {
            while !inbox.is_woken(owner) {
                thread::park();
            }
            inbox.wake_up(owner)
        }
        Err(replaced) => replaced,
    }
}

const PRODUCERS: usize = 4;
/// Items that every producer schedules. Each producer also has one of its own, and the last item ends the
/// worker.
const SHARED: usize = 2;
const STOP: usize = SHARED + PRODUCERS;

/// For each item and producer: the last round that the producer announced, and the last one that a run of the
/// item has read.
type Rounds = [[AtomicU64; PRODUCERS]; STOP];

fn produce(me: usize, inbox: &Inbox<Parked>, announced: &Rounds, read: &Rounds, end: Instant) -> [u64; STOP] {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (me as u64 + 1));
    let mut queued = [0; STOP];
    let mut round = 0;
    while Instant::now() < end {
        let item = if dice.below(2) == 0 { SHARED + me } else { dice.below(SHARED as u64) as usize };
        for _ in 0..=dice.below(6) {
            round += 1;
            // Relaxed: the inbox must make it visible.
            announced[item][me].store(round, Ordering::Relaxed);
            if dice.below(512) == 0 {
                // As if the kernel had preempted the thread.
                thread::sleep(Duration::from_micros(200));
            }
            // Now and then through another producer's slot.
            let slot = if dice.below(4) == 0 { dice.below(PRODUCERS as u64) as usize } else { me };
            queued[item] += u64::from(inbox.schedule(slot, item as u32));
        }
        let patience = Instant::now() + Duration::from_secs(20);
        // Relaxed: only the number counts.
        while read[item][me].load(Ordering::Relaxed) < round {
            assert!(Instant::now() < patience, "round {round} of producer {me} was lost");
            thread::yield_now();
        }
    }
    queued
}

/// Producers schedule items of their own and common ones, and wait until a run has read what they wrote
/// before. Each run was promised by one `true`, and the claims balance.
#[test]
fn stress_no_event_is_lost() {
    let time = stress_time();
    watched(time, move || {
        let mut owner = Owner::new();
        let sleeper = Parked { worker: thread::current(), counts: Counts::default() };
        let inbox = Inbox::new(&owner, PRODUCERS, STOP + 1, sleeper);
        let (announced, read) = (Rounds::default(), Rounds::default());
        let end = Instant::now() + time;
        let mut ran = [0; STOP];
        let mut replaced = 0;
        let queued = thread::scope(|scope| {
            let (inbox, announced, read) = (&inbox, &announced, &read);
            let all = scope.spawn(move || {
                let producers: [_; PRODUCERS] =
                    std::array::from_fn(|me| scope.spawn(move || produce(me, inbox, announced, read, end)));
                let queued = producers.map(thread::ScopedJoinHandle::join);
                inbox.schedule(0, STOP as u32);
                queued
            });
            let mut running = true;
            while running {
                replaced += wait(inbox, &mut owner);
                inbox.drain(&mut owner, |_, item| {
                    let item = item as usize;
                    running &= item != STOP;
                    if item < STOP {
                        ran[item] += 1;
                        for (announced, read) in announced[item].iter().zip(&read[item]) {
                            // Relaxed: whether the inbox has made it visible is the question.
                            read.store(announced.load(Ordering::Relaxed), Ordering::Relaxed);
                        }
                    }
                });
            }
            all.join().unwrap()
        });
        let mut promised = [0; STOP];
        for queued in queued {
            for (promised, queued) in promised.iter_mut().zip(queued.expect("a producer has panicked")) {
                *promised += queued;
            }
        }
        assert_eq!(ran, promised, "runs, and the times that schedule said true");
        assert!(ran.iter().all(|&runs| runs > 0), "{ran:?}");
        assert_eq!(inbox.sleeper().counts.now(), (replaced as isize, replaced as isize));
        assert!(inbox.is_empty());
    });
}

/// A few items, one producer and a worker that never sleeps, so that the two meet as often as possible.
/// Checks the event of a call that comes just as the item's pending ends. (If the end of pending is a plain
/// store, the write of one run delays that of the next item in the processor.)
#[test]
fn stress_no_event_of_a_refused_call_is_lost() {
    const ITEMS: usize = 4;
    type Rounds = [CachePadded<AtomicU64>; ITEMS];
    let time = stress_time();
    watched(time, move || {
        let mut owner = Owner::new();
        let inbox = Inbox::new(&owner, 1, ITEMS, Counts::default());
        let (announced, read) = (Rounds::default(), Rounds::default());
        let done = AtomicBool::new(false);
        let end = Instant::now() + time;
        // Relaxed throughout: only the inbox may make the numbers visible.
        thread::scope(|scope| {
            let producer = scope.spawn(|| {
                let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
                let mut last = [0; ITEMS];
                let mut lost = false;
                while Instant::now() < end && !lost {
                    for _ in 0..12 {
                        let item = dice.below(ITEMS as u64) as usize;
                        last[item] += 1;
                        announced[item].store(last[item], Ordering::Relaxed);
                        inbox.schedule(0, item as u32);
                    }
                    let patience = Instant::now() + Duration::from_secs(20);
                    let unread = || (0..ITEMS).any(|item| read[item].load(Ordering::Relaxed) < last[item]);
                    while unread() && !lost {
                        lost = Instant::now() > patience;
                    }
                }
                done.store(true, Ordering::Relaxed);
                assert!(!lost, "an event was lost: {last:?} {read:?}");
            });
            while !done.load(Ordering::Relaxed) {
                inbox.drain(&mut owner, |_, item| {
                    let item = item as usize;
                    read[item].store(announced[item].load(Ordering::Relaxed), Ordering::Relaxed);
                });
            }
            producer.join().unwrap();
        });
    });
}

/// Stops one producer in the middle of its push.
struct Stopping {
    parked: Parked,
    /// The next claim waits here.
    stop: AtomicBool,
    stopped: Mutex<mpsc::Sender<()>>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl Sleeper for Stopping {
    fn claim(&self) {
        self.parked.claim();
        if self.stop.swap(false, Ordering::Relaxed) {
            self.stopped.lock().unwrap().send(()).unwrap();
            self.go_on.lock().unwrap().recv().unwrap();
        }
    }

    fn unclaim(&self) {
        self.parked.unclaim();
    }

    fn wake(&self) {
        self.parked.wake();
    }
}

/// A producer that the kernel stops between its check of the head and its exchange blocks no other thread.
#[test]
fn a_producer_that_stops_in_the_middle_blocks_nobody() {
    watched(Duration::ZERO, || {
        let mut owner = Owner::new();
        let (stopped, until_stopped) = mpsc::channel();
        let (go_on, until_go_on) = mpsc::channel();
        let sleeper = Stopping {
            parked: Parked { worker: thread::current(), counts: Counts::default() },
            stop: AtomicBool::new(true),
            stopped: Mutex::new(stopped),
            go_on: Mutex::new(until_go_on),
        };
        let inbox = Arc::new(Inbox::new(&owner, 1, 2, sleeper));
        inbox.sleep(&mut owner).unwrap();
        thread::scope(|scope| {
            let first = scope.spawn(|| inbox.schedule(0, 0));
            until_stopped.recv().unwrap();
            assert!(!inbox.is_woken(&owner), "nothing was pushed yet");
            scope.spawn(|| {
                for _ in 0..1_000 {
                    while !inbox.schedule(0, 1) {
                        thread::yield_now();
                    }
                }
            });
            let mut replaced = 0;
            let mut ran = 0;
            while ran < 1_000 {
                while inbox.is_asleep(&owner) && !inbox.is_woken(&owner) {
                    thread::park();
                }
                replaced += inbox.wake_up(&mut owner);
                ran += inbox.drain(&mut owner, |_, item| assert_eq!(item, 1));
                replaced += inbox.sleep(&mut owner).err().unwrap_or(0);
            }
            replaced += inbox.wake_up(&mut owner);
            go_on.send(()).unwrap();
            assert!(first.join().unwrap());
            assert_eq!(inbox.drain(&mut owner, |_, item| assert_eq!(item, 0)), 1);
            assert_eq!(inbox.sleeper().parked.counts.now(), (replaced as isize, replaced as isize));
        });
    });
}
