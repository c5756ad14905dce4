//! Misses that were explained so far, for threads that watch a run.

use onbeat_trace::cause::{Cause, Verdict};
use onbeat_trace::record::MissKind;
use onbeat_trace::{KernelEvent, Span};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of late messages that are kept, the latest ones.
const LAST: usize = 16;

/// One message that was late, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateMessage {
    /// Which limit was missed.
    pub kind: MissKind,
    /// Name of the operator, or `from → to` of the path.
    pub name: String,
    /// Number of the message in its source's sequence, from 0.
    pub sequence: u64,
    /// Time at which the message ended, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Time by which the message missed its limit, in nanoseconds.
    pub late_ns: u64,
    /// Cause of the delay.
    pub verdict: Verdict,
}

/// Misses so far, and their causes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Number of misses that were explained.
    pub misses: u64,
    /// Causes, the most expensive one first.
    pub causes: Vec<Cause>,
    /// The last misses, the latest one last.
    pub last: VecDeque<LateMessage>,
}

/// Explained misses and their listeners. Written by the recorder.
#[derive(Default)]
pub(crate) struct MissLog {
    so_far: Mutex<Lateness>,
    listener: Mutex<Option<Listener>>,
    flight: Mutex<Option<FlightListener>>,
}

type Listener = Box<dyn FnMut(&LateMessage) + Send>;
type FlightListener = Box<dyn FnMut(&[Span], &[KernelEvent]) + Send>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MissLog {
    pub fn listen(&self, listener: impl FnMut(&LateMessage) + Send + 'static) {
        *lock(&self.listener) = Some(Box::new(listener));
    }

    pub fn listen_to_flight(&self, listener: impl FnMut(&[Span], &[KernelEvent]) + Send + 'static) {
        *lock(&self.flight) = Some(Box::new(listener));
    }

    pub fn so_far(&self) -> Lateness {
        lock(&self.so_far).clone()
    }

    /// Whether a listener gets all steps.
    pub fn has_flight_listener(&self) -> bool {
        lock(&self.flight).is_some()
    }

    pub fn report_flight(&self, spans: &[Span], events: &[KernelEvent]) {
        if let Some(listener) = &mut *lock(&self.flight) {
            listener(spans, events);
        }
    }

    pub fn report(&self, message: LateMessage) {
        if let Some(listener) = &mut *lock(&self.listener) {
            listener(&message);
        }
        let mut so_far = lock(&self.so_far);
        so_far.misses += 1;
        if so_far.last.len() == LAST {
            so_far.last.pop_front();
        }
        so_far.last.push_back(message);
    }

    pub fn set_causes(&self, causes: Vec<Cause>) {
        lock(&self.so_far).causes = causes;
    }
}

impl fmt::Debug for MissLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MissLog({} misses)", lock(&self.so_far).misses)
    }
}
