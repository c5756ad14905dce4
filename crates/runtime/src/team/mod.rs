//! What the parts of a run share, be they on threads of their own or in a pool: an inbox each, and the knowledge of when nothing
//! goes on any more.

mod idle;

pub use idle::Idle;
pub(crate) use idle::{LOOKS, look};

use crate::link::Bell;
use crate::pool::Pool;
use crate::run::Asked;
use onbeat_os::Unparker;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use onbeat_queue::{Owner, Sleeper};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// How one worker hears of what others did.
pub(crate) type Inbox = onbeat_queue::Inbox<Wakeup>;

/// Most heads of an inbox: workers share them when there are more.
const SLOTS: usize = 8;

/// No alarm.
const NEVER: u64 = u64::MAX;

/// Counts the workers that can still bring something about. A worker that sleeps without an alarm cannot; whoever wakes it
/// counts it *before* it may be awake, and is itself counted meanwhile, so the count reaches 0 only when nothing is under
/// way anywhere: then all is done, or a dead-lock is (or virtual time moves on to the next alarm).
pub(crate) struct Quiet {
    active: CachePadded<AtomicU32>,
    /// Operators that are paused. While there are any, nothing is silent: somebody will let them go on. Relaxed: it is
    /// changed by those who are active.
    paused: AtomicU32,
    /// The count has reached 0 and no alarm was left. It never goes back.
    silent: AtomicBool,
    /// Virtual time in nanoseconds, under the manual clock.
    now_ns: AtomicU64,
    manual: bool,
    sleepers: Box<[Sleeping]>,
}

/// How an engine that sleeps is brought back to work.
pub(crate) enum Waker {
    /// It has a thread of its own.
    Thread(Unparker),
    /// It goes to a thread of its pool.
    Pool(Arc<Pool>, u32),
}

impl Waker {
    fn wake(&self) {
        match self {
            Waker::Thread(unparker) => unparker.unpark(),
            Waker::Pool(pool, item) => pool.wake(*item),
        }
    }
}

/// One engine, as others see it while it sleeps.
struct Sleeping {
    waker: Waker,
    /// Under the manual clock: its next alarm, or [`NEVER`].
    alarm_ns: AtomicU64,
    /// Under the manual clock: virtual time has come to its alarm, and it was counted as active again.
    called: AtomicBool,
}

impl Quiet {
    // All orderings of `active` are AcqRel: who brings it to 0 has seen what all others did before they counted
    // themselves out. `alarm_ns` is written before the owner counts itself out and read by who reaches 0, so Relaxed is
    // enough there; `called` and `silent` are Release with the Acquire of the woken worker.

    /// One more that is awake.
    fn enter(&self, count: u32) {
        self.active.fetch_add(count, Ordering::AcqRel);
    }

    /// `count` fewer. Whoever is the last says what that means.
    fn leave(&self, count: u32) {
        if count > 0 && self.active.fetch_sub(count, Ordering::AcqRel) == count {
            self.all_quiet();
        }
    }

    #[cold]
    fn all_quiet(&self) {
        let alarms = || self.sleepers.iter().map(|sleeper| sleeper.alarm_ns.load(Ordering::Relaxed));
        let next_ns = if self.manual { alarms().min().unwrap_or(NEVER) } else { NEVER };
        if next_ns == NEVER && self.paused.load(Ordering::Relaxed) > 0 {
            return;
        }
        if next_ns == NEVER {
            self.silent.store(true, Ordering::Release);
            self.sleepers.iter().for_each(|sleeper| sleeper.waker.wake());
            return;
        }
        // Counted in meanwhile, so that nobody else finds the count at 0 before all that are due are awake.
        self.enter(1);
        self.now_ns.fetch_max(next_ns, Ordering::Relaxed);
        for sleeper in &self.sleepers {
            let alarm_ns = sleeper.alarm_ns.load(Ordering::Relaxed);
            let taken = || {
                let (done, lost) = (Ordering::Relaxed, Ordering::Relaxed);
                sleeper.alarm_ns.compare_exchange(alarm_ns, NEVER, done, lost).is_ok()
            };
            if alarm_ns <= next_ns && taken() {
                self.enter(1);
                sleeper.called.store(true, Ordering::Release);
                sleeper.waker.wake();
            }
        }
        self.leave(1);
    }
}

/// The sleeper of one inbox.
pub(crate) struct Wakeup {
    quiet: Arc<Quiet>,
    part: usize,
}

impl Sleeper for Wakeup {
    fn claim(&self) {
        self.quiet.enter(1);
    }

    fn unclaim(&self) {
        self.quiet.leave(1);
    }

    fn wake(&self) {
        self.quiet.sleepers[self.part].waker.wake();
    }
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
    pub inboxes: Arc<[Arc<Inbox>]>,
    quiet: Arc<Quiet>,
}

impl Team {
    /// For the parts with these tokens; `events` has how many items each one's inbox needs, `threads` how many
    /// threads there are, and `outside` how many operators wait for somebody outside of the graph.
    pub fn new(
        owners: &[Owner],
        events: &[usize],
        wakers: Vec<Waker>,
        threads: usize,
        outside: u32,
        manual: bool,
    ) -> Team {
        let pooled: Vec<bool> = wakers.iter().map(|waker| matches!(waker, Waker::Pool(..))).collect();
        let sleepers = wakers.into_iter().map(|waker| Sleeping {
            waker,
            alarm_ns: AtomicU64::new(NEVER),
            called: AtomicBool::new(false),
        });
        let quiet = Arc::new(Quiet {
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
                Arc::new(Inbox::new(owner, slots, events, wakeup))
            })
            .collect();
        Team { inboxes, quiet }
    }

    /// For worker `from` to tell worker `to` something.
    pub fn bell(&self, from: usize, to: usize, item: u32) -> Bell {
        Bell { inbox: Arc::clone(&self.inboxes[to]), slot: from, item }
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
pub(crate) struct Held<'t>(&'t Quiet);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.leave(1);
    }
}

/// One part's place in its team.
pub(crate) struct Seat {
    pub team: Team,
    /// Its own, of the team's.
    pub inbox: Arc<Inbox>,
    pub part: usize,
    /// Where it goes from thread to thread.
    pub pool: Option<Arc<Pool>>,
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
    pub fn inbox(&self) -> &Arc<Inbox> {
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
