//! Parts of a run, as they see each other: an inbox each, and quiescence. A part has a thread of its own or
//! is in a pool.

mod idle;

pub(crate) use idle::{POLLS, WaitPlace, spin_until};

use crate::base::descriptors::Descriptors;
use crate::base::quiescence::{NEVER, Quiescence, SleepState, Unpark, Wakeup, WorkerInbox};
use crate::engine::order::OrderRequest;
use crate::operator::link::Notifier;
use onbeat_os::Unparker;
use onbeat_queue::Owner;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Most heads of an inbox. More workers share them.
const SLOTS: usize = 8;

/// Wakes a part that has a thread of its own.
pub(crate) struct ThreadWaker(pub Unparker);

impl Unpark for ThreadWaker {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// Waker of a parked part.
pub(crate) struct PartWaker {
    pub wake: Box<dyn Unpark>,
    /// Whether the threads of a pool share the part.
    pub is_pooled: bool,
}

/// Meaning of an item in a worker's inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InboxEvent {
    /// A message or the end came on an edge from another worker.
    Data(u32),
    /// An edge to another worker has room, or its consumer is done.
    Room(u32),
    /// A chunk came home from another worker.
    Chunk,
    /// Descriptors that operators wait for are ready.
    Descriptor,
    /// The conditions of an operator must be checked again.
    Operator(u32),
    /// A stop, an order or a snapshot was requested.
    Control,
}

/// Number of the item for [`InboxEvent::Control`].
pub(crate) const CONTROL: u32 = 0;
/// Number of the item for [`InboxEvent::Chunk`].
pub(crate) const CHUNK: u32 = 1;

/// All inboxes of a run.
#[derive(Clone)]
pub(crate) struct Team {
    pub inboxes: Arc<[Arc<WorkerInbox>]>,
    quiet: Arc<Quiescence>,
}

impl Team {
    /// A team of the parts with these owners. `events` has the number of items of each inbox, `threads` is
    /// the number of threads, `outside` the number of operators that wait for events from outside of the
    /// graph.
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
            // Virtual time does not wait for events from outside.
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
                // One operator has few producers, and often one on the thread that steps it. One head is
                // polled faster than several.
                let slots = if pooled[part] { 1 } else { threads.min(SLOTS) };
                Arc::new(WorkerInbox::new(owner, slots, events, wakeup))
            })
            .collect();
        Team { inboxes, quiet }
    }

    /// Notifier by which worker `from` schedules an item of worker `to`.
    pub fn bell(&self, from: usize, to: usize, item: u32) -> Notifier {
        Notifier { inbox: Arc::clone(&self.inboxes[to]), slot: from, item }
    }

    /// Has every worker poll the control data. From any thread.
    pub fn wake_all(&self) {
        for inbox in &*self.inboxes {
            inbox.schedule(0, CONTROL);
        }
    }

    /// Like [`wake_all`](Team::wake_all), for one worker.
    pub fn wake(&self, part: usize) {
        self.inboxes[part].schedule(0, CONTROL);
    }

    /// Prevents quiescence, and stops virtual time, while the result exists. For a thread that notifies
    /// several parts, of which the first may wait for the last. From any thread.
    pub fn hold(&self) -> TeamHold<'_> {
        self.quiet.enter(1);
        TeamHold(&self.quiet)
    }

    /// Counts a paused operator. By a part that is awake.
    pub fn pause_one(&self) {
        self.quiet.paused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an operator that is resumed. By a part that is awake.
    pub fn resume_one(&self) {
        self.quiet.paused.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn len(&self) -> usize {
        self.inboxes.len()
    }
}

/// See [`Team::hold`].
pub(crate) struct TeamHold<'t>(&'t Quiescence);

impl Drop for TeamHold<'_> {
    fn drop(&mut self) {
        self.0.leave(1);
    }
}

/// Place of one part in its team.
pub(crate) struct Seat {
    pub team: Team,
    /// Inbox of this part.
    pub inbox: Arc<WorkerInbox>,
    pub part: usize,
    /// Descriptors that the operators of this part and of parts on the same threads wait for.
    pub descriptors: Arc<Descriptors>,
    /// Orders from outside.
    pub orders: Receiver<OrderRequest>,
}

/// State of a parked part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParkState {
    /// Whether the part has counted itself out.
    is_counted_out: bool,
    /// Alarm on the real clock; [`u64::MAX`] for none.
    pub alarm_ns: u64,
}

/// Reason why a part is not parked any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParkOutcome {
    /// There may be work.
    Woken,
    /// No part of the run has work, and none will get any.
    Quiescent,
}

impl Seat {
    #[inline]
    pub fn inbox(&self) -> &Arc<WorkerInbox> {
        &self.inbox
    }

    /// Parks the part: there is no work here before `alarm_ns` on the run's clock. `awaits_descriptor` says
    /// whether a descriptor can bring some. `None` if something came meanwhile.
    pub fn park(
        &self,
        owner: &mut Owner,
        alarm_ns: Option<u64>,
        awaits_descriptor: bool,
    ) -> Option<ParkState> {
        let quiet = &*self.team.quiet;
        if let Err(replaced) = self.inbox.sleep(owner) {
            // The part is counted already; each thread that replaced a mark has counted it once more.
            quiet.leave(replaced);
            return None;
        }
        // A part with an alarm by the real clock, or that awaits a descriptor, will do something, so it stays
        // counted.
        let is_counted_out = quiet.manual || alarm_ns.is_none() && !awaits_descriptor;
        if is_counted_out {
            quiet.sleepers[self.part].alarm_ns.store(alarm_ns.unwrap_or(NEVER), Ordering::Relaxed);
            quiet.leave(1);
        }
        Some(ParkState {
            is_counted_out,
            alarm_ns: if is_counted_out { NEVER } else { alarm_ns.unwrap_or(NEVER) },
        })
    }

    /// Whether a parked part has been woken.
    pub fn is_called(&self, owner: &Owner, state: ParkState) -> bool {
        let quiet = &*self.team.quiet;
        let called = || quiet.sleepers[self.part].called.load(Ordering::Acquire);
        self.inbox.is_woken(owner)
            || state.is_counted_out && (called() || quiet.silent.load(Ordering::Acquire))
    }

    /// Ends what [`park`](Seat::park) began, after the part was woken or its alarm is due.
    pub fn unpark(&self, owner: &mut Owner, state: ParkState) -> ParkOutcome {
        let quiet = &*self.team.quiet;
        let sleeper = &quiet.sleepers[self.part];
        let replaced = self.inbox.wake_up(owner);
        let called = sleeper.called.swap(false, Ordering::Acquire);
        let counted = u32::from(!state.is_counted_out) + replaced + u32::from(called);
        if counted == 0 {
            return ParkOutcome::Quiescent;
        }
        if state.is_counted_out {
            sleeper.alarm_ns.store(NEVER, Ordering::Relaxed);
        }
        quiet.leave(counted - 1);
        ParkOutcome::Woken
    }

    /// Virtual time, in nanoseconds.
    pub fn virtual_ns(&self) -> u64 {
        self.team.quiet.now_ns.load(Ordering::Relaxed)
    }

    /// Counts out an operator that is done and could have been scheduled from outside of the graph.
    pub fn count_out(&self) {
        if !self.team.quiet.manual {
            self.team.quiet.leave(1);
        }
    }

    /// Counts out a part that is done. It parks no more, so it is not counted again.
    pub fn retire(&self) {
        self.team.quiet.leave(1);
    }
}
