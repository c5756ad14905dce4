//! The cost of an item from one core to another, compared with bare atomics that only signal.
//!
//! `cargo bench -p onbeat-queue --bench ring`
#![cfg(not(loom))]
#![allow(clippy::disallowed_macros, reason = "a bench prints")]

use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_queue::{Full, Lossy, Owner, Spsc};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::{black_box, spin_loop};
use std::time::Instant;

const ROUNDS: usize = 9;
const ITEMS: u64 = 4_000_000;
const PINGS: u64 = 200_000;
const BATCH: u64 = 64;
const CAPACITY: usize = 1024;

/// Pins the calling thread to the `nth` core that this process may use, if there are that many.
fn pin(nth: usize) {
    let allowed = sched_getaffinity(None).expect("the kernel says which cores there are");
    let core = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).nth(nth);
    if let Some(core) = core {
        let mut one = CpuSet::new();
        one.set(core);
        sched_setaffinity(None, &one).expect("it is one of our own cores");
    }
}

/// Runs both at once on two cores, and returns the nanoseconds until both have ended.
fn both(first: impl FnOnce() + Send, second: impl FnOnce() + Send) -> f64 {
    let ready = AtomicU64::new(0);
    let begin = |nth| {
        pin(nth);
        // AcqRel and Acquire: each other's partners. Both threads run before the clock starts.
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < 2 {
            spin_loop();
        }
        Instant::now()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            begin(1);
            second();
        });
        let here = scope.spawn(|| {
            let start = begin(0);
            first();
            other.join().expect("it does not panic");
            start.elapsed().as_nanos() as f64
        });
        here.join().expect("it does not panic")
    })
}

/// Measures nanoseconds per item through one ring, published every `publish` items. The consumer releases
/// room after all visible items, and every `release` items.
fn stream(publish: u64, release: u64) -> f64 {
    let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Spsc::new(&producer, &consumer, CAPACITY);
    let send = || {
        for item in 0..ITEMS {
            while let Err(Full(_)) = ring.stage(&mut producer, item) {
                spin_loop();
            }
            if (item + 1) % publish == 0 {
                ring.publish(&mut producer);
            }
        }
        ring.close(&mut producer);
    };
    let receive = || {
        let mut sum = 0u64;
        let mut left = ITEMS;
        while left > 0 {
            let visible = ring.poll(&mut consumer);
            if visible == 0 {
                spin_loop();
                continue;
            }
            for n in 1..=visible as u64 {
                sum = sum.wrapping_add(ring.pop(&mut consumer).expect("it was seen"));
                if n % release == 0 {
                    ring.release(&mut consumer);
                }
            }
            ring.release(&mut consumer);
            left -= visible as u64;
        }
        assert_eq!(black_box(sum), ITEMS * (ITEMS - 1) / 2);
    };
    both(send, receive) / ITEMS as f64
}

/// As [`stream`], with whole batches put in and taken out.
fn stream_batches() -> f64 {
    let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    let ring = Spsc::new(&producer, &consumer, CAPACITY);
    let send = || {
        for first in (0..ITEMS).step_by(BATCH as usize) {
            let mut next = first;
            while next < first + BATCH {
                next += ring.extend(&mut producer, next..first + BATCH) as u64;
            }
        }
    };
    let receive = || {
        let (mut sum, mut left) = (0u64, ITEMS);
        while left > 0 {
            if ring.poll(&mut consumer) == 0 {
                spin_loop();
                continue;
            }
            left -= ring.drain(&mut consumer, |item| sum = sum.wrapping_add(item)) as u64;
            ring.release(&mut consumer);
        }
        assert_eq!(black_box(sum), ITEMS * (ITEMS - 1) / 2);
    };
    both(send, receive) / ITEMS as f64
}

/// The lower bound: batches through a plain array of words and two counters, without a ring's checks.
fn stream_words() -> f64 {
    let words: Vec<AtomicU64> = (0..CAPACITY).map(|_| AtomicU64::new(0)).collect();
    let (tail, head) = (CachePadded::new(AtomicU64::new(0)), CachePadded::new(AtomicU64::new(0)));
    let batch = |number: u64| (number..number + BATCH).map(|at| (at, &words[at as usize % CAPACITY]));
    // Acquire and Release: each other's partners, as in the rings. Relaxed: ordered by the counters.
    let send = || {
        for number in (0..ITEMS).step_by(BATCH as usize) {
            while number + BATCH - head.load(Ordering::Acquire) > CAPACITY as u64 {
                spin_loop();
            }
            batch(number).for_each(|(item, word)| word.store(item, Ordering::Relaxed));
            tail.store(number + BATCH, Ordering::Release);
        }
    };
    let receive = || {
        let mut sum = 0u64;
        for number in (0..ITEMS).step_by(BATCH as usize) {
            while tail.load(Ordering::Acquire) < number + BATCH {
                spin_loop();
            }
            sum += batch(number).map(|(_, word)| word.load(Ordering::Relaxed)).sum::<u64>();
            head.store(number + BATCH, Ordering::Release);
        }
        assert_eq!(black_box(sum), ITEMS * (ITEMS - 1) / 2);
    };
    both(send, receive) / ITEMS as f64
}

/// Measures nanoseconds one way, there and back through two rings.
fn ping_rings() -> f64 {
    let (mut here, mut there) = (Owner::new(), Owner::new());
    let (to, back) = (Spsc::new(&here, &there, 4), Spsc::new(&there, &here, 4));
    let receive = |ring: &Spsc<u64>, owner: &mut Owner| {
        while ring.poll(owner) == 0 {
            spin_loop();
        }
        let item = ring.pop(owner).expect("it was seen");
        ring.release(owner);
        item
    };
    let ping = || {
        for n in 0..PINGS {
            to.push(&mut here, n).expect("there is room");
            assert_eq!(receive(&back, &mut here), n);
        }
    };
    let pong = || {
        for _ in 0..PINGS {
            let item = receive(&to, &mut there);
            back.push(&mut there, item).expect("there is room");
        }
    };
    both(ping, pong) / PINGS as f64 / 2.0
}

/// As [`ping_rings`], through two rings that overwrite.
fn ping_lossy() -> f64 {
    let (mut here, mut there) = (Owner::new(), Owner::new());
    let (to, back) = (Lossy::new(&here, &there, 1), Lossy::new(&there, &here, 1));
    let receive = |ring: &Lossy<u64>, owner: &mut Owner| {
        loop {
            if let Some(item) = ring.pop(owner) {
                return item;
            }
            spin_loop();
        }
    };
    let ping = || {
        for n in 0..PINGS {
            to.push(&mut here, n);
            assert_eq!(receive(&back, &mut here), n);
        }
    };
    let pong = || {
        for _ in 0..PINGS {
            let item = receive(&to, &mut there);
            back.push(&mut there, item);
        }
    };
    both(ping, pong) / PINGS as f64 / 2.0
}

/// As [`ping_rings`], with counters only: each side waits for the next number and answers. `to` and `back`
/// can be one word.
fn ping_words(to: &AtomicU64, back: &AtomicU64, step: u64) -> f64 {
    // Acquire and Release: each other's partners, as in the rings.
    let wait = |word: &AtomicU64, number| {
        while word.load(Ordering::Acquire) != number {
            spin_loop();
        }
    };
    let ping = || {
        for n in 0..PINGS {
            to.store(n * step + 1, Ordering::Release);
            wait(back, (n + 1) * step);
        }
    };
    let pong = || {
        for n in 0..PINGS {
            wait(to, n * step + 1);
            back.store((n + 1) * step, Ordering::Release);
        }
    };
    both(ping, pong) / PINGS as f64 / 2.0
}

fn ping_one_word() -> f64 {
    let word = CachePadded::new(AtomicU64::new(0));
    ping_words(&word, &word, 2)
}

fn ping_two_words() -> f64 {
    let (to, back) = (CachePadded::new(AtomicU64::new(0)), CachePadded::new(AtomicU64::new(0)));
    ping_words(&to, &back, 1)
}

/// A name and a measurement.
type Case = (&'static str, fn() -> f64);

fn main() {
    let cases: [Case; 9] = [
        ("per item, in batches of 64", stream_batches),
        ("per item, published by 64", || stream(BATCH, BATCH)),
        ("per item, published one by one", || stream(1, BATCH)),
        ("per item, released one by one too", || stream(1, 1)),
        ("per item, bare words by 64", stream_words),
        ("one way, two rings", ping_rings),
        ("one way, two rings that overwrite", ping_lossy),
        ("one way, one bare word", ping_one_word),
        ("one way, two bare words", ping_two_words),
    ];
    let mut times = cases.map(|_| Vec::with_capacity(ROUNDS));
    // One round of each in turn, so that disturbances hit all of them.
    for _ in 0..ROUNDS {
        for (times, (_, case)) in times.iter_mut().zip(cases) {
            times.push(case());
        }
    }
    println!("u64 between two cores, ns: median (minimum, maximum) of {ROUNDS} rounds");
    for (mut times, (name, _)) in times.into_iter().zip(cases) {
        times.sort_by(f64::total_cmp);
        println!("{name:34} {:6.1} ({:6.1}, {:6.1})", times[ROUNDS / 2], times[0], times[ROUNDS - 1]);
    }
}
