//! State that the workers of a run share with the threads that watch and steer it.

pub(crate) mod barrier;
pub(crate) mod board;
pub(crate) mod hangs;
pub(crate) mod lateness;
pub(crate) mod recent;
pub(crate) mod standstill;

use crate::engine::limits::Limits;
use crate::engine::order::OrderRequest;
use crate::engine::team::Team;
use crate::graph::values::CurrentValues;
use barrier::Barrier;
use board::Board;
use hangs::Hangs;
use lateness::MissLog;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use onbeat_trace::record::FaultKind;
use standstill::Standstill;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, OnceLock, PoisonError};

/// State that workers share with the threads that watch them.
pub(crate) struct Control {
    /// See [`stop`].
    stop: AtomicU32,
    /// Time of a worker's last poll, on the run's clock. Relaxed everywhere: it is only displayed.
    pub now_ns: AtomicU64,
    /// Latest source time of a message. Relaxed, too.
    pub position_ns: AtomicU64,
    /// Length of the input, 0 while unknown.
    pub length_ns: AtomicU64,
    /// Real time at which a clock that runs faster or slower starts.
    pub origin_ns: u64,
    /// Time of the first step, on the run's clock. Set when all operators have started.
    pub start_ns: OnceLock<u64>,
    /// Whether only a sample of some operator's steps is recorded. Relaxed: it stays true.
    pub is_sampled: AtomicBool,
    /// Whether all sources were ordered to pause.
    pub paused: AtomicBool,
    pub team: Team,
    pub barrier: Barrier,
    /// By worker: the kernel's id of its thread, 0 before the thread runs.
    pub threads: Box<[AtomicU32]>,
    pub hangs: Hangs,
    pub faults: Mutex<Vec<RunFault>>,
    /// Standstills of the workers that found quiescence.
    pub stuck: Mutex<Vec<Standstill>>,
    /// Parameters that can be changed.
    pub values: CurrentValues,
    pub board: Board,
    pub limits: Limits,
    /// Cores for threads that operators start.
    pub cores_beside: Arc<[usize]>,
    /// Misses that were explained so far.
    pub misses: MissLog,
    /// By part: where orders go.
    pub orders: Box<[Sender<OrderRequest>]>,
}

/// Bits of [`Control::stop`].
mod stop {
    /// A stop was requested.
    pub const ASKED: u32 = 1;
    /// A worker has ended its sources.
    pub const ENDED: u32 = 2;
    /// Something failed: all workers drop messages in flight.
    pub const ABORT: u32 = 4;
}

/// A failure that ends the run.
#[derive(Debug, Clone)]
pub(crate) struct RunFault {
    /// Operator of the plan; `None` if the failure belongs to no operator.
    pub operator: Option<usize>,
    pub what: FaultKind,
    pub text: String,
    /// Time since the start of the run.
    pub time_ns: u64,
    /// Calls of a thread that does not return, innermost first.
    pub stack: Vec<String>,
}

impl RunFault {
    /// A failure before the first step.
    pub fn of_the_run(text: String) -> Self {
        RunFault { operator: None, what: FaultKind::Error, text, time_ns: 0, stack: Vec::new() }
    }
}

impl Control {
    pub fn new(
        team: Team,
        workers: usize,
        orders: Vec<Sender<OrderRequest>>,
        board: Board,
        limits: Limits,
        cores_beside: Arc<[usize]>,
    ) -> Self {
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
            values: CurrentValues::default(),
            board,
            limits,
            cores_beside,
            misses: MissLog::default(),
            orders: orders.into(),
        }
    }

    /// Whether a stop was requested, or the run has failed.
    // Relaxed, as are all accesses to `stop`: the flags publish only themselves, and failures are behind a
    // lock.
    #[inline]
    pub fn is_stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub fn is_aborted(&self) -> bool {
        self.stop.load(Ordering::Relaxed) & stop::ABORT != 0
    }

    /// Whether a worker must act on the flags, given whether its sources have ended already.
    #[inline]
    pub fn must_stop(&self, is_stopping: bool) -> bool {
        self.is_stop_requested() && (!is_stopping || self.is_aborted())
    }

    pub fn set_stopped(&self) {
        self.stop.fetch_or(stop::ENDED, Ordering::Relaxed);
    }

    pub fn was_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) & stop::ENDED != 0
    }

    pub fn request_stop(&self) {
        self.stop.fetch_or(stop::ASKED, Ordering::Relaxed);
        self.team.wake_all();
    }

    /// Notes a failure, and has all workers drop messages in flight.
    pub fn fail(&self, fault: RunFault) {
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
