//! State that workers share because of limits: messages in flight, and ticks to leave out.

use crate::base::error::Error;
use crate::graph::Graph;
use crate::graph::limits::OnMiss;
use crate::operator::context::Skips;
use crate::operator::when::{Condition, Readiness, View, Waker, When};
use crate::plan::{OperatorPlan, PathPlan, Plan};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onbeat_trace::record::InFlightLimit;
use std::sync::{Arc, OnceLock};

/// Messages in flight on a path with a limit, shared by the source and the end.
///
/// Only the source's worker writes what was sent, only the end's worker what has arrived. A message counts by
/// its number in the source's sequence: a message made of several counts as the last of them.
#[derive(Debug)]
pub(crate) struct InFlightBound {
    limit: InFlightLimit,
    /// Number of messages sent.
    sent: AtomicU64,
    /// Due time of the last message sent.
    sent_due_ns: AtomicU64,
    /// One more than the highest number that has arrived.
    arrived: AtomicU64,
    /// Due time of the last message that has arrived.
    arrived_due_ns: AtomicU64,
    /// Most messages that were in flight after the source had sent one.
    most: AtomicU64,
    /// Sums of the times at which messages were sent, and at which they arrived, in nanoseconds since the
    /// start of the run. Modulo 2^64: only their difference is used.
    sent_times_ns: AtomicU64,
    arrived_times_ns: AtomicU64,
    /// Longest time by which the limit held back a message that was due.
    held_ns: AtomicU64,
    /// Whether the source waits for messages to arrive.
    waits: AtomicBool,
    /// Wakes the source.
    waker: OnceLock<Waker>,
    /// Name of the path.
    name: String,
}

impl InFlightBound {
    pub fn new(limit: InFlightLimit, name: String) -> Self {
        InFlightBound {
            limit,
            sent: AtomicU64::new(0),
            sent_due_ns: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            arrived_due_ns: AtomicU64::new(0),
            most: AtomicU64::new(0),
            sent_times_ns: AtomicU64::new(0),
            arrived_times_ns: AtomicU64::new(0),
            held_ns: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            waker: OnceLock::new(),
            name,
        }
    }

    /// Numbers of messages in flight, after the run.
    fn outcome(&self) -> InFlightOutcome {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        InFlightOutcome {
            most: get(&self.most),
            held_ns: get(&self.held_ns),
            times_ns: get(&self.arrived_times_ns).wrapping_sub(get(&self.sent_times_ns)),
            left: get(&self.sent).saturating_sub(get(&self.arrived)),
        }
    }

    /// Notes the number of messages sent so far, the due time of the last one, the time on the run's clock
    /// since its start, and for how long the limit held that message back. By the source's worker.
    pub fn sent(&self, count: u64, due_ns: u64, time_ns: u64, held_ns: u64) {
        let sent = count.saturating_sub(self.sent.load(Ordering::Relaxed));
        self.sent_times_ns.fetch_add(time_ns.wrapping_mul(sent), Ordering::Relaxed);
        self.held_ns.fetch_max(held_ns, Ordering::Relaxed);
        if self.sent.load(Ordering::Relaxed) == 0 {
            // Nothing has arrived: the first message sets the time.
            self.arrived_due_ns.store(due_ns, Ordering::Relaxed);
        }
        self.sent_due_ns.store(due_ns, Ordering::Relaxed);
        self.sent.store(count, Ordering::Relaxed);
        let in_flight = count.saturating_sub(self.arrived.load(Ordering::Relaxed));
        self.most.fetch_max(in_flight, Ordering::Relaxed);
    }

    /// Notes that a message has arrived, and when, since the start of the run. By the worker of the path's
    /// end.
    pub fn arrived(&self, sequence: u64, due_ns: u64, time_ns: u64) {
        let before = self.arrived.load(Ordering::Relaxed);
        if sequence < before {
            return;
        }
        let arrived = sequence + 1 - before;
        self.arrived_times_ns.fetch_add(time_ns.wrapping_mul(arrived), Ordering::Relaxed);
        self.arrived_due_ns.store(due_ns, Ordering::Relaxed);
        // SeqCst: pairs with `waits` in `is_open`. Either the source sees this message, or it is seen waiting
        // here.
        self.arrived.store(sequence + 1, Ordering::SeqCst);
        if self.waits.load(Ordering::SeqCst)
            && let Some(waker) = self.waker.get()
        {
            waker.wake();
        }
    }

    /// Whether one more message may be sent. By the source's worker.
    fn is_open(&self) -> bool {
        if self.has_room() {
            self.waits.store(false, Ordering::Relaxed);
            return true;
        }
        self.waits.store(true, Ordering::SeqCst);
        // A message that has arrived meanwhile may not have seen `waits`.
        self.has_room()
    }

    fn has_room(&self) -> bool {
        let arrived = self.arrived.load(Ordering::SeqCst);
        let sent = self.sent.load(Ordering::Relaxed);
        match self.limit {
            InFlightLimit::Messages(most) => sent.saturating_sub(arrived) < most,
            InFlightLimit::Time(most_ns) => {
                let arrived_ns = self.arrived_due_ns.load(Ordering::Relaxed);
                arrived >= sent
                    || self.sent_due_ns.load(Ordering::Relaxed).saturating_sub(arrived_ns) < most_ns
            }
        }
    }
}

/// Numbers of messages in flight on a path with a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlightOutcome {
    /// Most messages at once.
    pub most: u64,
    /// Longest time by which the limit held back a message that was due.
    pub held_ns: u64,
    /// Sum of the times in flight, modulo 2^64. Messages that have not arrived count from the run's start to
    /// their sending, with a minus.
    times_ns: u64,
    /// Messages that have not arrived.
    left: u64,
}

impl InFlightOutcome {
    /// Mean number of messages in flight over the run.
    pub fn mean(&self, duration_ns: u64) -> f64 {
        let times_ns = self.times_ns.wrapping_add(self.left.wrapping_mul(duration_ns));
        // Arrivals after the end of the time that is counted are possible.
        times_ns.cast_signed().max(0) as f64 / duration_ns.max(1) as f64
    }
}

/// Condition of a source at the begin of a path with a limit on messages in flight.
pub(crate) struct Room {
    bound: Arc<InFlightBound>,
    /// Whether the limit was reached at the last check.
    is_full: bool,
    /// Time at which the source could go on for the last time, on the run's clock.
    released_ns: u64,
}

impl Condition for Room {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        let is_open = self.bound.is_open() || view.is_stopping();
        if std::mem::replace(&mut self.is_full, !is_open) && is_open {
            self.released_ns = view.now_ns();
        }
        view.asks.released_ns.set(view.asks.released_ns.get().max(self.released_ns));
        Ok(if is_open { Readiness::Holds } else { Readiness::Waits })
    }

    fn describe(&self) -> String {
        let limit = match self.bound.limit {
            InFlightLimit::Messages(most) => format!("fewer than {most} messages"),
            InFlightLimit::Time(most_ns) => format!("less than {} ms of messages", most_ns as f64 / 1e6),
        };
        format!("{limit} in flight on {}", self.bound.name)
    }

    fn attach(&mut self, waker: &Waker) {
        // A source is attached once.
        let _ = self.bound.waker.set(waker.clone());
    }
}

/// State that workers share because of limits.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// By path of the plan.
    pub bounds: Vec<Option<Arc<InFlightBound>>>,
    /// By number of the source; empty if no miss skips ticks.
    pub skips: Arc<[Skips]>,
    /// Text of the miss that ended the run.
    stopped: OnceLock<String>,
}

/// Results of the limits, for the record.
#[derive(Debug, Default)]
pub(crate) struct LimitsOutcome {
    /// The miss that ended the run.
    pub stopped: Option<String>,
    /// By path of the plan: what was in flight, if that was limited.
    pub in_flight: Vec<Option<InFlightOutcome>>,
    /// Sources that left out ticks, each with the number of ticks.
    pub skipped: Vec<(String, u64)>,
}

impl Limits {
    /// Limits of a plan.
    pub fn of(plan: &Plan) -> Self {
        let bound = |path: &PathPlan| {
            let name = format!("{} → {}", path.from, path.to);
            path.max_in_flight.map(|limit| Arc::new(InFlightBound::new(limit, name)))
        };
        let skips = |operator: &OperatorPlan| operator.on_miss == OnMiss::Skip;
        let any_skips =
            plan.paths.iter().any(|path| path.on_miss == OnMiss::Skip) || plan.operators.iter().any(skips);
        let sources = if any_skips { plan.operators.len() } else { 0 };
        Limits {
            bounds: plan.paths.iter().map(bound).collect(),
            skips: (0..sources).map(|_| Skips::default()).collect(),
            stopped: OnceLock::new(),
        }
    }

    /// Gives the sources of bounded paths their condition.
    pub fn bind(&self, graph: &mut Graph, plan: &Plan) {
        let numbers = plan.source_numbers();
        for (path, bound) in plan.paths.iter().zip(&self.bounds) {
            let Some(bound) = bound else { continue };
            let is_it = |number: &usize| plan.operators[*number].source && numbers[*number] == path.source;
            let Some(source) = (0..plan.operators.len()).find(is_it) else { continue };
            let room = Room { bound: Arc::clone(bound), is_full: false, released_ns: 0 };
            graph.when_of(plan.order[source], When::own(room));
        }
    }

    /// Notes the miss that ends the run. Only the first one counts.
    pub fn stop(&self, what: impl FnOnce() -> String) {
        self.stopped.get_or_init(what);
    }

    /// Results of the limits.
    pub fn outcome(&self, plan: &Plan) -> LimitsOutcome {
        let numbers = plan.source_numbers();
        let skipped = |number: usize| {
            let source = Some(&plan.operators[number]).filter(|operator| operator.source)?;
            let count = self.skips.get(numbers[number])?.done();
            (count > 0).then(|| (source.name.clone(), count))
        };
        LimitsOutcome {
            stopped: self.stopped.get().cloned(),
            in_flight: self.bounds.iter().map(|bound| Some(bound.as_ref()?.outcome())).collect(),
            skipped: (0..plan.operators.len()).filter_map(skipped).collect(),
        }
    }
}
