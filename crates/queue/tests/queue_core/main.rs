//! The queue against a plain reference, misuse that it refuses, and ownership of items.
#![cfg(not(loom))]

#[path = "../it/stress/mod.rs"]
mod stress;
mod threads;

use onbeat_queue::sync::atomic::{AtomicU32, Ordering};
use onbeat_queue::{Item, OnWorker, Owned, Owner, QueueCore, Shared, Sleeper, Turn};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, mpsc};

struct Nobody;

impl Sleeper for Nobody {
    fn wake(&self) {}
}

fn one_slot() -> (Owner, QueueCore<Nobody>) {
    let owner = Owner::new();
    let queue = QueueCore::new(&owner, 1, Nobody);
    (owner, queue)
}

fn drain(queue: &QueueCore<Nobody>, owner: &mut Owner) -> usize {
    queue.drain(owner, &mut |thrown| std::panic::resume_unwind(thrown))
}

const ITEMS: usize = 4;

#[derive(Debug, Clone)]
enum Step {
    Schedule(usize),
    Many(Vec<usize>),
    /// An item that exists once, with a number of its own.
    Own,
    OwnMany(usize),
    /// Number of further runs that the running items ask for, in all.
    Drain(u32),
    Close,
    Open,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..ITEMS).prop_map(Step::Schedule),
        2 => prop::collection::vec(0..ITEMS, 0..6).prop_map(Step::Many),
        2 => Just(Step::Own),
        1 => (0..4usize).prop_map(Step::OwnMany),
        3 => (0..6u32).prop_map(Step::Drain),
        1 => Just(Step::Close),
        1 => Just(Step::Open),
    ]
}

#[derive(Default)]
struct Reference {
    queue: VecDeque<usize>,
    closed: bool,
    again: u32,
}

impl Reference {
    fn schedule(&mut self, item: usize) -> bool {
        if self.closed || (item < ITEMS && self.queue.contains(&item)) {
            return false;
        }
        self.queue.push_back(item);
        true
    }

    /// Schedules all, or none if it is closed; compares with the answer of the queue.
    fn schedule_many(
        &mut self,
        numbers: &[usize],
        answer: Result<usize, Vec<usize>>,
    ) -> Result<(), TestCaseError> {
        match answer {
            Ok(queued) => {
                prop_assert_eq!(queued, numbers.len());
                prop_assert!(numbers.iter().all(|&number| self.schedule(number)));
            }
            Err(refused) => {
                prop_assert!(self.closed);
                prop_assert_eq!(refused, numbers);
            }
        }
        Ok(())
    }

    fn drain(&mut self) -> Vec<usize> {
        let taken: Vec<usize> = self.queue.drain(..).collect();
        let mut left: VecDeque<usize> = taken.iter().copied().collect();
        while let Some(item) = left.pop_front() {
            if item < ITEMS && self.again > 0 {
                self.again -= 1;
                // Not pending any more. Items that were taken and have not run still are.
                if !left.contains(&item) {
                    self.schedule(item);
                }
            }
        }
        taken
    }
}

proptest! {
    #[test]
    fn it_does_what_the_reference_does(steps in prop::collection::vec(step(), 0..60), shared in any::<bool>()) {
        let (mut owner, queue) = one_slot();
        let ran = Arc::new(Mutex::new(Vec::new()));
        let again = Arc::new(AtomicU32::new(0));
        let body = |me: usize| {
            let (ran, again) = (ran.clone(), again.clone());
            move |turn: &Turn<'_>| {
                ran.lock().unwrap().push(me);
                if again.load(Ordering::Relaxed) > 0 {
                    again.fetch_sub(1, Ordering::Relaxed);
                    turn.again();
                }
            }
        };
        let shares: Vec<_> = (0..ITEMS).map(|me| Shared::new(body(me))).collect();
        // Leaked, because the queue takes items that live for ever; a few hundred bytes per case.
        let items: Vec<&'static Item<_>> = (0..ITEMS).map(|me| &*Box::leak(Box::new(Item::new(body(me))))).collect();
        let mut reference = Reference::default();
        let mut next = ITEMS;
        let mut own = || {
            next += 1;
            (next, Owned::new((next, ran.clone()), |item, _| item.1.lock().unwrap().push(item.0)))
        };
        for step in steps {
            match step {
                Step::Schedule(item) => {
                    let queued = if shared { queue.schedule(&shares[item]) } else { queue.schedule(items[item]) };
                    prop_assert_eq!(queued, reference.schedule(item));
                }
                Step::Many(chosen) => {
                    let queued = if shared {
                        queue.schedule_many(chosen.iter().map(|&item| &shares[item]))
                    } else {
                        queue.schedule_many(chosen.iter().map(|&item| items[item]))
                    };
                    prop_assert_eq!(queued, chosen.iter().filter(|&&item| reference.schedule(item)).count());
                }
                Step::Own => {
                    let (number, item) = own();
                    prop_assert_eq!(queue.schedule_owned(item).is_ok(), reference.schedule(number));
                }
                Step::OwnMany(count) => {
                    let (numbers, items): (Vec<usize>, Vec<_>) = (0..count).map(|_| own()).unzip();
                    let refused = queue.schedule_owned_many(items);
                    let refused = refused.map_err(|items| items.iter().map(|item| item.0).collect());
                    reference.schedule_many(&numbers, refused)?;
                }
                Step::Drain(turns) => {
                    again.store(turns, Ordering::Relaxed);
                    reference.again = turns;
                    let count = drain(&queue, &mut owner);
                    let ran = std::mem::take(&mut *ran.lock().unwrap());
                    prop_assert_eq!(count, ran.len());
                    prop_assert_eq!(ran, reference.drain());
                }
                Step::Close => {
                    queue.close(&mut owner, &mut |_| ());
                    reference.closed = true;
                    reference.again = again.load(Ordering::Relaxed);
                    prop_assert_eq!(std::mem::take(&mut *ran.lock().unwrap()), reference.drain());
                }
                Step::Open => {
                    queue.open(&mut owner);
                    reference.closed = false;
                }
            }
            prop_assert_eq!(queue.is_empty(), reference.queue.is_empty());
            prop_assert_eq!(queue.is_closed(), reference.closed);
        }
    }
}

/// With a sanitizer or valgrind this also shows that the queue does not touch the item afterwards.
#[test]
fn an_item_may_be_freed_in_its_own_callback() {
    let (mut owner, queue) = one_slot();
    type Boxed = Shared<Box<dyn Fn(&Turn<'_>) + Send + Sync>>;
    let place: Arc<Mutex<Option<Boxed>>> = Arc::default();
    let freed = Arc::new(());
    let (inside, seen) = (place.clone(), Arc::downgrade(&freed));
    let run = move |_: &Turn<'_>| {
        drop(inside.lock().unwrap().take());
        assert_eq!(Arc::strong_count(&freed), 1, "it lives as long as it runs");
    };
    let item = Shared::new(Box::new(run) as Box<dyn Fn(&Turn<'_>) + Send + Sync>);
    assert!(queue.schedule(&item));
    *place.lock().unwrap() = Some(item);
    assert_eq!(drain(&queue, &mut owner), 1);
    assert!(seen.upgrade().is_none(), "it is gone with its run");

    // And an item that its callback owns.
    let (done, is_done) = mpsc::channel();
    let item = Owned::new(Some((vec![1; 1000], done)), |mut item, _| {
        let (numbers, done) = item.take().unwrap();
        drop(item);
        done.send(numbers.len()).unwrap();
    });
    queue.schedule_owned(item).unwrap();
    drain(&queue, &mut owner);
    assert_eq!(is_done.recv(), Ok(1000));
}

#[test]
fn an_item_may_be_set_up_again_in_its_own_callback() {
    #[allow(clippy::needless_pass_by_value, clippy::boxed_local, reason = "the form of a callback")]
    fn last(item: Box<Owned<Vec<u8>>>, _: &Turn<'_>) {
        assert_eq!(**item, [1]);
        RUNS.fetch_add(1, Ordering::Relaxed);
    }
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let (mut owner, queue) = one_slot();
    let first = Owned::new(Vec::new(), |mut item, turn| {
        item.push(1);
        item.set_up(last);
        assert!(!turn.again(), "the callback has it");
        turn.schedule_owned(item).unwrap();
    });
    queue.schedule_owned(first).unwrap();
    assert_eq!((drain(&queue, &mut owner), drain(&queue, &mut owner)), (1, 1));
    assert_eq!(RUNS.load(Ordering::Relaxed), 1);
}

#[test]
fn an_item_dropped_while_pending_runs() {
    let (mut owner, queue) = one_slot();
    let (done, is_done) = mpsc::channel();
    queue.schedule(&Shared::new(move |_| done.send(()).unwrap()));
    assert!(is_done.try_recv().is_err());
    drain(&queue, &mut owner);
    assert_eq!(is_done.recv(), Ok(()));
    assert!(is_done.recv().is_err(), "and is gone");
}

#[test]
fn a_queue_that_ends_runs_what_it_promised() {
    let (done, is_done) = mpsc::channel();
    let (_owner, queue) = one_slot();
    let turns = AtomicU32::new(0);
    queue.schedule(&Shared::new(move |turn| {
        turns.fetch_add(1, Ordering::Relaxed);
        assert!(!turn.again(), "it closes");
        done.send(turns.load(Ordering::Relaxed)).unwrap();
    }));
    drop(queue);
    assert_eq!(is_done.recv(), Ok(1));
}

#[test]
fn a_panic_ends_one_run_and_no_other() {
    let (mut owner, queue) = one_slot();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let items: Vec<_> = (0..4)
        .map(|me| {
            let ran = ran.clone();
            Shared::new(move |_| {
                assert!(me % 2 == 0, "item {me}");
                ran.lock().unwrap().push(me);
            })
        })
        .collect();
    queue.schedule_many(&items);
    let mut thrown = Vec::new();
    let count = queue.drain(&mut owner, &mut |panic| thrown.push(*panic.downcast::<String>().unwrap()));
    assert_eq!((count, thrown), (4, vec!["item 1".to_owned(), "item 3".to_owned()]));
    assert_eq!(*ran.lock().unwrap(), [0, 2]);
    assert!(queue.schedule(&items[1]), "it is not pending");
}

#[test]
fn an_iterator_that_panics_loses_nothing() {
    let (mut owner, queue) = one_slot();
    let runs = Arc::new(AtomicU32::new(0));
    let again = runs.clone();
    let item = Shared::new(move |_| {
        again.fetch_add(1, Ordering::Relaxed);
    });
    let broken = (0..3).map(|at| if at < 2 { &item } else { panic!("broken") });
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.schedule_many(broken)));
    assert!(caught.is_err() && !queue.schedule(&item));
    drain(&queue, &mut owner);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn waiting_for_oneself_is_an_error() {
    let (mut owner, queue) = one_slot();
    let queue = Arc::new(queue);
    let (answer, answers) = mpsc::channel();
    let on = Arc::downgrade(&queue);
    queue.schedule(&Shared::new(move |_| {
        let on = on.upgrade().unwrap();
        answer.send(on.flush(Nobody, || ())).unwrap();
        answer.send(on.scope(Nobody, || (), |_| ())).unwrap();
    }));
    drain(&queue, &mut owner);
    assert_eq!(answers.iter().take(2).collect::<Vec<_>>(), [Err(OnWorker), Err(OnWorker)]);
    assert!(OnWorker.to_string().contains("never end"), "{OnWorker}");
}

#[test]
#[should_panic(expected = "another owner")]
fn the_wrong_owner_is_refused() {
    let (_owner, queue) = one_slot();
    drain(&queue, &mut Owner::new());
}

#[test]
#[should_panic(expected = "at least one slot")]
fn a_queue_without_slots_is_refused() {
    let _ = QueueCore::new(&Owner::new(), 0, Nobody);
}
