//! Operators whose code has not returned for a long time.

use onbeat_trace::record::FaultRecord;
use serde::Serialize;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// An operator whose code has not returned for a long time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hang {
    /// Name of the operator.
    pub operator: String,
    /// Call that has not returned.
    pub call: Call,
    /// Name of the thread that made the call.
    pub worker: String,
    /// Kernel's id of that thread.
    pub tid: i32,
    /// Time since the call, in nanoseconds of real time.
    pub waited_ns: u64,
    /// Activity of the thread according to the kernel. `None` if the thread is gone.
    pub activity: Option<String>,
    /// Stack of the operator's calls in that thread, innermost first; if it is unknown, the reason.
    pub stack: Vec<String>,
}

/// Call of an operator's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `start`.
    Start,
    /// `step` or `restart`.
    Step,
    /// `stop`.
    Stop,
}

impl Hang {
    pub(crate) fn text(&self) -> String {
        let call = match self.call {
            Call::Start => "start",
            Call::Step => "step",
            Call::Stop => "stop",
        };
        let activity = self.activity.as_deref().unwrap_or("gone");
        let (worker, tid) = (&self.worker, self.tid);
        let waited = match self.waited_ns {
            ns @ 0..1_000_000_000 => format!("{} ms", ns / 1_000_000),
            ns => format!("{:.1} s", ns as f64 / 1e9),
        };
        format!("its {call} has not returned for {waited}; its thread {worker} ({tid}) is {activity}")
    }
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operator `{}`: {}", self.operator, self.text())?;
        self.stack.iter().try_for_each(|call| write!(f, "\n  in {call}"))
    }
}

/// Hangs that were noted.
#[derive(Default)]
pub(crate) struct Hangs {
    /// Hangs, each with the operator's number in the plan and whether the call has returned since.
    list: Mutex<Vec<(usize, Hang, bool)>>,
    /// For the record.
    pub faults: Mutex<Vec<FaultRecord>>,
    /// Called at each new hang.
    listener: Mutex<Option<Listener>>,
}

type Listener = Box<dyn Fn(&Hang) + Send>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hangs {
    pub fn listen(&self, listener: impl Fn(&Hang) + Send + 'static) {
        *lock(&self.listener) = Some(Box::new(listener));
    }

    /// Hangs whose calls have not returned, each with the operator's number in the plan.
    pub fn current(&self) -> Vec<(usize, Hang)> {
        let list = lock(&self.list);
        list.iter()
            .filter(|(.., has_returned)| !has_returned)
            .map(|(number, hang, _)| (*number, hang.clone()))
            .collect()
    }

    pub fn take_faults(&self) -> Vec<FaultRecord> {
        std::mem::take(&mut lock(&self.faults))
    }

    pub fn note(&self, operator: usize, hang: Hang) {
        if let Some(listener) = &*lock(&self.listener) {
            listener(&hang);
        }
        lock(&self.list).push((operator, hang, false));
    }

    pub fn note_return(&self, operator: usize) {
        lock(&self.list)
            .iter_mut()
            .filter(|(number, ..)| *number == operator)
            .for_each(|(.., has_returned)| *has_returned = true);
    }
}
