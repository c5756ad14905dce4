//! Operators whose code has not returned: what is known of them.

use onbeat_trace::record::FaultRecord;
use serde::Serialize;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// An operator whose code has not returned for long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hang {
    /// Its name.
    pub operator: String,
    /// What of it has not returned.
    pub call: Call,
    /// Name of the thread that is in it.
    pub worker: String,
    /// The kernel's id of that thread.
    pub tid: i32,
    /// How long it has not returned, in nanoseconds of real time.
    pub waited_ns: u64,
    /// What the kernel says of the thread.
    pub activity: Option<String>,
    /// The operator's calls that the thread is in, innermost first; why there are none, where there are none.
    pub stack: Vec<String>,
}

/// What of an operator does not return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Its `start`.
    Start,
    /// Its `step`, or its `restart`.
    Step,
    /// Its `stop`.
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

/// What was noted of operators that hang.
#[derive(Default)]
pub(crate) struct Hangs {
    /// With their number in the plan, and whether they have come back since.
    list: Mutex<Vec<(usize, Hang, bool)>>,
    /// For the record.
    pub faults: Mutex<Vec<FaultRecord>>,
    /// Who wants to be told at once.
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

    /// Those that have not come back.
    pub fn current(&self) -> Vec<(usize, Hang)> {
        let list = lock(&self.list);
        list.iter()
            .filter(|(.., is_back)| !is_back)
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

    pub fn is_back(&self, operator: usize) {
        lock(&self.list).iter_mut().filter(|(number, ..)| *number == operator).for_each(|it| it.2 = true);
    }
}
