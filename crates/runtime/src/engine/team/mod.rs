//! What the parts of a run share, be they on threads of their own or in a pool: an inbox each, and the knowledge of when nothing
//! goes on any more.

mod idle;

pub(crate) use idle::{LOOKS, look};

use crate::base::quiescence::{NEVER, Quiescence, SleepState, Unpark, Wakeup, WorkerInbox};
use crate::engine::order::Asked;
use crate::operator::link::Notifier;
use onbeat_os::Unparker;
use onbeat_queue::Owner;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Most heads of an inbox: workers share them when there are more.
const SLOTS: usize = 8;

/// Wakes a part that has a thread of its own.
pub(crate) struct ThreadWaker(pub Unparker);

impl Unpark for ThreadWaker {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// How a part that sleeps is brought back to work.
pub(crate) struct PartWaker {
    pub wake: Box<dyn Unpark>,
    /// Whether it goes to whichever thread of a pool has time.
    pub is_pooled: bool,
}

/// What is scheduled in a worker's inbox, by number of the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Something came on an edge from another worker.
    Data(u32),
    /// There is room on an edge to another worker, or its consumer is done.
    Room(u32),
    /// A chunk came home from another worker.
    Chunk,
    /// The conditions of an operator are to be asked again.
    Operator(u32),
    /// Somebody wants the run to end, or has an order, or a question.
    Control,
}

/// Number of the item for [`Event::Control`], and of that for [`Event::Chunk`].
pub(crate) const CONTROL: u32 = 0;
pub(crate) const CHUNK: u32 = 1;

/// All inboxes of a run.
#[derive(Clone)]
pub(crate) struct Team {
    pub inboxes: Arc<[Arc<WorkerInbox>]>,
    quiet: Arc<Quiescence>,
}

impl Team {
    /// For the parts with these tokens; `events` has how many items each one's inbox needs, `threads` how many
    /// threads there are, and `outside` how many operators wait for somebody outside of the graph.
    pub fn new(
        owners: &[Owner],
        events: &[usize],
        wakers: Vec<PartWaker>,
        threads: usize,
        outside: u32,
        manual: bool,
    ) -> Team {
        let pooled: Vec<bool> = wakers.iter().map(|waker| waker.is_pooled).collect();
        let sleepers = wakers.into_iter().map(|waker| SleepState {
            waker: waker.wake,
            alarm_ns: AtomicU64::new(NEVER),
            called: AtomicBool::new(false),
        });
        let quiet = Arc::new(Quiescence {
            // In virtual time nobody waits for those outside: they have no part in it.
            active: CachePadded::new(AtomicU32::new(owners.len() as u32 + if manual { 0 } else { outside })),
            paused: AtomicU32::new(0),
            silent: AtomicBool::new(false),
            now_ns: AtomicU64::new(0),
            manual,
            sleepers: sleepers.collect(),
        });
        let inboxes = owners
            .iter()
            .zip(events)
            .enumerate()
            .map(|(part, (owner, &events))| {
                let wakeup = Wakeup { quiet: Arc::clone(&quiet), part };
                // What comes to one operator comes from few, and often from the thread that steps it: one head is looked at
                // faster than several.
                let slots = if pooled[part] { 1 } else { threads.min(SLOTS) };
                Arc::new(WorkerInbox::new(owner, slots, events, wakeup))
            })
            .collect();
        Team { inboxes, quiet }
    }

    /// For worker `from` to tell worker `to` something.
    pub fn bell(&self, from: usize, to: usize, item: u32) -> Notifier {
        Notifier { inbox: Arc::clone(&self.inboxes[to]), slot: from, item }
    }

    /// Lets every worker look up. From any thread.
    pub fn wake_all(&self) {
        for inbox in &*self.inboxes {
            inbox.schedule(0, CONTROL);
        }
    }

    /// As [`wake_all`](Team::wake_all), for one of them.
    pub fn wake(&self, part: usize) {
        self.inboxes[part].schedule(0, CONTROL);
    }

    /// While this is held the team does not fall silent, and virtual time stands still: for who has something to tell to several
    /// parts, of which the first may wait for the last. From any thread.
    pub fn hold(&self) -> Held<'_> {
        self.quiet.enter(1);
        Held(&self.quiet)
    }

    /// One more operator is paused. By a part that is awake.
    pub fn pause_one(&self) {
        self.quiet.paused.fetch_add(1, Ordering::Relaxed);
    }

    /// One fewer is.
    pub fn resume_one(&self) {
        self.quiet.paused.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn len(&self) -> usize {
        self.inboxes.len()
    }
}

/// See [`Team::hold`].
pub(crate) struct Held<'t>(&'t Quiescence);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.leave(1);
    }
}

/// One part's place in its team.
pub(crate) struct Seat {
    pub team: Team,
    /// Its own, of the team's.
    pub inbox: Arc<WorkerInbox>,
    pub part: usize,
    /// What it is asked to do.
    pub orders: Receiver<Asked>,
}

/// How a part lies while it sleeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lying {
    /// It has counted itself out.
    out: bool,
    /// On the real clock; [`u64::MAX`] for none.
    pub alarm_ns: u64,
}

/// Why a worker's rest is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rested {
    /// There may be something to do.
    Up,
    /// There is nothing to do for anyone, and nothing will come.
    Silence,
}

impl Seat {
    #[inline]
    pub fn inbox(&self) -> &Arc<WorkerInbox> {
        &self.inbox
    }

    /// Lets the others know that nothing is to be done here before `alarm_ns` on the run's clock. `None` when something
    /// came meanwhile: it goes on.
    pub fn lie_down(&self, owner: &mut Owner, alarm_ns: Option<u64>) -> Option<Lying> {
        let quiet = &*self.team.quiet;
        if let Err(replaced) = self.inbox.sleep(owner) {
            // Whoever replaced a mark has counted us, and we are counted already.
            quiet.leave(replaced);
            return None;
        }
        // Who has an alarm by the real clock can bring something about.
        let out = quiet.manual || alarm_ns.is_none();
        if out {
            quiet.sleepers[self.part].alarm_ns.store(alarm_ns.unwrap_or(NEVER), Ordering::Relaxed);
            quiet.leave(1);
        }
        Some(Lying { out, alarm_ns: if out { NEVER } else { alarm_ns.unwrap_or(NEVER) } })
    }

    /// While it lies: whether somebody has told it something.
    pub fn is_called(&self, owner: &Owner, lying: Lying) -> bool {
        let quiet = &*self.team.quiet;
        let called = || quiet.sleepers[self.part].called.load(Ordering::Acquire);
        self.inbox.is_woken(owner) || lying.out && (called() || quiet.silent.load(Ordering::Acquire))
    }

    /// Ends what [`lie_down`](Seat::lie_down) began, after it was called or its alarm is due.
    pub fn get_up(&self, owner: &mut Owner, lying: Lying) -> Rested {
        let quiet = &*self.team.quiet;
        let sleeper = &quiet.sleepers[self.part];
        let replaced = self.inbox.wake_up(owner);
        let called = sleeper.called.swap(false, Ordering::Acquire);
        let counted = u32::from(!lying.out) + replaced + u32::from(called);
        if counted == 0 {
            return Rested::Silence;
        }
        if lying.out {
            sleeper.alarm_ns.store(NEVER, Ordering::Relaxed);
        }
        quiet.leave(counted - 1);
        Rested::Up
    }

    /// Virtual time.
    pub fn virtual_ns(&self) -> u64 {
        self.team.quiet.now_ns.load(Ordering::Relaxed)
    }

    /// An operator is done that somebody outside of the graph could have brought to life.
    pub fn count_out(&self) {
        if !self.team.quiet.manual {
            self.team.quiet.leave(1);
        }
    }

    /// This worker is done for good. It sleeps no more, so nobody counts it again.
    pub fn retire(&self) {
        self.team.quiet.leave(1);
    }
}
