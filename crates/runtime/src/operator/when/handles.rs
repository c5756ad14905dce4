//! Handles that let any thread control an operator, before and during the run.

use crate::base::quiescence::WorkerInbox;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Has the conditions of an operator checked again. It is cheap to clone, works on any thread, and neither
/// blocks nor allocates.
#[derive(Clone)]
pub struct Waker {
    pub(crate) inbox: Arc<WorkerInbox>,
    pub(crate) item: u32,
}

impl Waker {
    /// Requests a check. The conditions then see everything that the caller did before.
    pub fn wake(&self) {
        self.inbox.schedule(0, self.item);
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waker({})", self.item)
    }
}

/// Wakers that are added once and read without a lock.
#[derive(Default)]
struct Wakers(OnceLock<Box<(Waker, Wakers)>>);

impl Wakers {
    fn add(&self, waker: Waker) {
        let mut at = self;
        let mut new = Box::new((waker, Wakers::default()));
        loop {
            match at.0.set(new) {
                Ok(()) => return,
                Err(back) => new = back,
            }
            match at.0.get() {
                Some(next) => at = &next.1,
                None => return,
            }
        }
    }

    fn wake(&self) {
        let mut at = self;
        while let Some(next) = at.0.get() {
            next.0.wake();
            at = &next.1;
        }
    }
}

/// "gate `door`", or "its gate".
fn title(what: &str, name: &str) -> String {
    if name.is_empty() { format!("its {what}") } else { format!("{what} `{name}`") }
}

/// Lets an operator pass or holds it back, any number of times; see [`When::gate`](crate::When::gate). All
/// clones are the same gate.
///
/// ```
/// use onbeat_runtime::Gate;
/// let gate = Gate::new(false);
/// gate.clone().open();
/// assert!(gate.is_open());
/// ```
#[derive(Clone)]
pub struct Gate(Arc<GateState>);

struct GateState {
    open: AtomicBool,
    /// Empty where it has none.
    name: String,
    wakers: Wakers,
}

impl Gate {
    /// Makes a gate, open or closed.
    pub fn new(open: bool) -> Self {
        Gate::named(open, String::new())
    }

    pub(crate) fn named(open: bool, name: String) -> Self {
        Gate(Arc::new(GateState { open: AtomicBool::new(open), name, wakers: Wakers::default() }))
    }

    pub(crate) fn title(&self) -> String {
        title("gate", &self.0.name)
    }

    /// Opens the gate, from any thread.
    pub fn open(&self) {
        // Relaxed: the waker makes the store visible to the worker.
        self.0.open.store(true, Ordering::Relaxed);
        self.0.wakers.wake();
    }

    /// Closes the gate, from any thread. An operator that is being stepped finishes its step.
    pub fn close(&self) {
        self.0.open.store(false, Ordering::Relaxed);
    }

    /// Whether the gate is open.
    pub fn is_open(&self) -> bool {
        self.0.open.load(Ordering::Relaxed)
    }

    pub(crate) fn attach(&self, waker: &Waker) {
        self.0.wakers.add(waker.clone());
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_open() { "Gate(open)" } else { "Gate(closed)" })
    }
}

/// A signal from outside of the graph that an operator waits for; see [`When::event`](crate::When::event).
/// All clones are the same event. When the last clone outside of the graph is dropped, it cannot be rung any
/// more.
///
/// ```
/// use onbeat_runtime::{Event, Graph, Options, When};
/// let event = Event::new();
/// let mut graph = Graph::new("rung");
/// let mut n = 0u64;
/// let source = graph.source("source", move || { n += 1; Some(n) });
/// let end = graph.sink("end", |_: u64| ());
/// graph.connect(source, |s| &s.out, end, |e| &e.input);
/// graph.when(source, When::event(&event));
/// let run = graph.start(&Options::default())?;
/// std::thread::spawn(move || event.ring());
/// let record = run.wait()?;
/// assert_eq!(record.edges[0].received, 1);
/// # Ok::<(), onbeat_runtime::RunError>(())
/// ```
pub struct Event {
    state: Arc<EventState>,
    /// Held by a condition, not by somebody who may ring.
    inside: bool,
}

struct EventState {
    rung: AtomicU64,
    /// Empty where it has none.
    name: String,
    /// Clones that may ring.
    outside: AtomicU64,
    wakers: Wakers,
}

impl Event {
    /// Makes an event that was not rung yet.
    #[expect(clippy::new_without_default, reason = "two calls give two different events")]
    pub fn new() -> Self {
        Event::named(String::new())
    }

    pub(crate) fn named(name: String) -> Self {
        let (rung, outside) = (AtomicU64::new(0), AtomicU64::new(1));
        Event {
            state: Arc::new(EventState { rung, name, outside, wakers: Wakers::default() }),
            inside: false,
        }
    }

    pub(crate) fn title(&self) -> String {
        title("event", &self.state.name)
    }

    /// Rings the event, from any thread. Several rings before the operator's step allow one step.
    pub fn ring(&self) {
        // Relaxed: the waker makes it visible. A waker that is attached later reads the count.
        self.state.rung.fetch_add(1, Ordering::Relaxed);
        self.state.wakers.wake();
    }

    pub(crate) fn inside(&self) -> Self {
        Event { state: Arc::clone(&self.state), inside: true }
    }

    pub(crate) fn rung(&self) -> u64 {
        self.state.rung.load(Ordering::Relaxed)
    }

    /// Whether any clone can still ring the event.
    pub(crate) fn is_alive(&self) -> bool {
        // Acquire, partner: the Release in `drop`: who sees that the last one is gone sees its rings.
        self.state.outside.load(Ordering::Acquire) > 0
    }

    pub(crate) fn attach(&self, waker: &Waker) {
        self.state.wakers.add(waker.clone());
    }
}

impl Clone for Event {
    fn clone(&self) -> Self {
        if !self.inside {
            self.state.outside.fetch_add(1, Ordering::Relaxed);
        }
        Event { state: Arc::clone(&self.state), inside: self.inside }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !self.inside && self.state.outside.fetch_sub(1, Ordering::Release) == 1 {
            self.state.wakers.wake();
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event(rung {})", self.rung())
    }
}
