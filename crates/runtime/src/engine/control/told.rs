//! What was found so far, for whoever watches a run.

use onbeat_trace::cause::{Cause, Verdict};
use onbeat_trace::record::MissKind;
use onbeat_trace::{KernelEvent, Span};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Messages that are shown of those that were late last.
const LAST: usize = 16;

/// One message that was late, as soon as it is known why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateMessage {
    /// Which limit was missed.
    pub kind: MissKind,
    /// Of what: the operator, or `from → to` of a path.
    pub name: String,
    /// Which message of its source, from 0.
    pub sequence: u64,
    /// When it ended, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// How late it was, in nanoseconds.
    pub late_ns: u64,
    /// Why.
    pub verdict: Verdict,
}

/// What was late so far, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lateness {
    /// How many messages were looked into.
    pub misses: u64,
    /// What made them late, what cost most first.
    pub causes: Vec<Cause>,
    /// The last of them, the youngest last.
    pub last: VecDeque<LateMessage>,
}

/// Where the recorder tells of what it finds.
#[derive(Default)]
pub(crate) struct Told {
    so_far: Mutex<Lateness>,
    listener: Mutex<Option<Listener>>,
    flight: Mutex<Option<FlightListener>>,
}

type Listener = Box<dyn FnMut(&LateMessage) + Send>;
type FlightListener = Box<dyn FnMut(&[Span], &[KernelEvent]) + Send>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Told {
    pub fn listen(&self, listener: impl FnMut(&LateMessage) + Send + 'static) {
        *lock(&self.listener) = Some(Box::new(listener));
    }

    pub fn listen_to_flight(&self, listener: impl FnMut(&[Span], &[KernelEvent]) + Send + 'static) {
        *lock(&self.flight) = Some(Box::new(listener));
    }

    pub fn so_far(&self) -> Lateness {
        lock(&self.so_far).clone()
    }

    /// Somebody wants all steps.
    pub fn is_followed(&self) -> bool {
        lock(&self.flight).is_some()
    }

    pub fn follow(&self, spans: &[Span], events: &[KernelEvent]) {
        if let Some(listener) = &mut *lock(&self.flight) {
            listener(spans, events);
        }
    }

    pub fn tell(&self, message: LateMessage) {
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

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Told({} misses)", lock(&self.so_far).misses)
    }
}
