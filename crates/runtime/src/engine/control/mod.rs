//! What the workers of a run share with whoever watches and steers it.

pub(crate) mod barrier;
pub(crate) mod board;
pub(crate) mod hangs;
pub(crate) mod recent;
pub(crate) mod stuck;
pub(crate) mod told;

use crate::engine::limits::Limits;
use crate::engine::order::Asked;
use crate::engine::team::Team;
use barrier::Barrier;
use board::Board;
use hangs::Hangs;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use onbeat_trace::record::FaultKind;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, OnceLock, PoisonError};
use stuck::Stuck;
use told::Told;

/// Shared by the workers and whoever watches them.
pub(crate) struct Control {
    /// See [`stop`].
    stop: AtomicU32,
    /// On the run's clock, when a worker last looked. Relaxed everywhere: a picture for people.
    pub now_ns: AtomicU64,
    pub position_ns: AtomicU64,
    /// 0 while unknown.
    pub length_ns: AtomicU64,
    /// Where a clock that runs faster or slower has left the real one.
    pub origin_ns: u64,
    /// On the run's clock: the first step's time. Set when all operators have started.
    pub start_ns: OnceLock<u64>,
    /// Of some operator whose steps are recorded, only a sample is. Relaxed: it stays true.
    pub is_sampled: AtomicBool,
    /// All sources were told to pause.
    pub paused: AtomicBool,
    pub team: Team,
    pub barrier: Barrier,
    /// By worker: the kernel's id of its thread; 0 before it has begun.
    pub threads: Box<[AtomicU32]>,
    pub hangs: Hangs,
    pub faults: Mutex<Vec<Fault>>,
    /// What was left on the workers that saw that nothing goes on.
    pub stuck: Mutex<Vec<Stuck>>,
    pub board: Board,
    pub limits: Limits,
    /// Misses that were looked into so far.
    pub told: Told,
    /// By part.
    pub orders: Box<[Sender<Asked>]>,
}

/// Bits of [`Control::stop`].
mod stop {
    /// A stop was asked for.
    pub const ASKED: u32 = 1;
    /// A worker has told its sources.
    pub const TOLD: u32 = 2;
    /// Something failed: everybody drops what is under way.
    pub const ABORT: u32 = 4;
}

/// Something that failed.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// Of the plan; `None` where it is no operator's.
    pub operator: Option<usize>,
    pub what: FaultKind,
    pub text: String,
    /// Since the start of the run.
    pub time_ns: u64,
    /// Of a thread that does not return, innermost first.
    pub stack: Vec<String>,
}

impl Fault {
    /// Before the first step.
    pub fn of_the_run(text: String) -> Self {
        Fault { operator: None, what: FaultKind::Error, text, time_ns: 0, stack: Vec::new() }
    }
}

impl Control {
    pub fn new(team: Team, workers: usize, orders: Vec<Sender<Asked>>, board: Board, limits: Limits) -> Self {
        Control {
            stop: AtomicU32::new(0),
            now_ns: AtomicU64::new(0),
            position_ns: AtomicU64::new(0),
            length_ns: AtomicU64::new(0),
            origin_ns: onbeat_os::clock::monotonic_ns(),
            start_ns: OnceLock::new(),
            is_sampled: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            team,
            barrier: Barrier::new(workers),
            threads: (0..workers).map(|_| AtomicU32::new(0)).collect(),
            hangs: Hangs::default(),
            faults: Mutex::new(Vec::new()),
            stuck: Mutex::new(Vec::new()),
            board,
            limits,
            told: Told::default(),
            orders: orders.into(),
        }
    }

    // Relaxed throughout: the flags publish nothing but themselves, and what failed lies behind a lock.
    #[inline]
    pub fn stop_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub fn is_aborted(&self) -> bool {
        self.stop.load(Ordering::Relaxed) & stop::ABORT != 0
    }

    /// Whether a worker is to end what it does, which does that already or not.
    #[inline]
    pub fn is_to_stop(&self, is_stopping: bool) -> bool {
        self.stop_asked() && (!is_stopping || self.is_aborted())
    }

    pub fn set_stopped(&self) {
        self.stop.fetch_or(stop::TOLD, Ordering::Relaxed);
    }

    pub fn was_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) & stop::TOLD != 0
    }

    pub fn ask_to_stop(&self) {
        self.stop.fetch_or(stop::ASKED, Ordering::Relaxed);
        self.team.wake_all();
    }

    /// Notes what failed, and has all workers drop what is under way.
    pub fn fail(&self, fault: Fault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
        self.stop.fetch_or(stop::ABORT, Ordering::Relaxed);
        self.team.wake_all();
    }

    pub fn has_failed(&self) -> bool {
        !self.faults.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn publish(&self, now_ns: u64, position_ns: u64) {
        self.now_ns.store(now_ns, Ordering::Relaxed);
        if position_ns > self.position_ns.load(Ordering::Relaxed) {
            self.position_ns.store(position_ns, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Control({} parts, stop {})", self.team.len(), self.stop.load(Ordering::Relaxed))
    }
}
