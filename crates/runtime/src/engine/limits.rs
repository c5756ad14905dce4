//! What the limits of a run have its workers share: how many messages are in flight, and ticks to leave out.

use crate::base::error::Error;
use crate::graph::Graph;
use crate::graph::limits::OnMiss;
use crate::operator::context::Skips;
use crate::operator::when::{Condition, Verdict, View, Waker, When};
use crate::plan::{OperatorPlan, PathPlan, Plan};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onbeat_trace::record::InFlightLimit;
use std::sync::{Arc, OnceLock};

/// What is under way on a path with a limit, shared by the source and by whoever is at the end.
///
/// The source alone writes what was sent, the end what has arrived. A message counts by its place in the source's sequence: one
/// that is made of several counts as the last of them.
#[derive(Debug)]
pub(crate) struct Bound {
    limit: InFlightLimit,
    /// Messages that were sent, and when the last of them was due.
    sent: AtomicU64,
    sent_due_ns: AtomicU64,
    /// One more than the highest number that has arrived, and when that was due.
    arrived: AtomicU64,
    arrived_due_ns: AtomicU64,
    /// Most that were under way when the source was to send one more.
    most: AtomicU64,
    /// The source waits for what is under way.
    waits: AtomicBool,
    waker: OnceLock<Waker>,
    name: String,
}

impl Bound {
    pub fn new(limit: InFlightLimit, name: String) -> Self {
        Bound {
            limit,
            sent: AtomicU64::new(0),
            sent_due_ns: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            arrived_due_ns: AtomicU64::new(0),
            most: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            waker: OnceLock::new(),
            name,
        }
    }

    /// Most messages that were under way at once.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// By the source's worker: so many messages have been sent so far, the last of them due then.
    pub fn sent(&self, count: u64, due_ns: u64) {
        if self.sent.load(Ordering::Relaxed) == 0 {
            // Nothing has arrived: the first one sets the time.
            self.arrived_due_ns.store(due_ns, Ordering::Relaxed);
        }
        self.sent_due_ns.store(due_ns, Ordering::Relaxed);
        self.sent.store(count, Ordering::Relaxed);
        let under_way = count.saturating_sub(self.arrived.load(Ordering::Relaxed));
        self.most.fetch_max(under_way, Ordering::Relaxed);
    }

    /// By whoever is at the end: this message has arrived.
    pub fn arrived(&self, sequence: u64, due_ns: u64) {
        if sequence < self.arrived.load(Ordering::Relaxed) {
            return;
        }
        self.arrived_due_ns.store(due_ns, Ordering::Relaxed);
        // Sequentially consistent, as `waits` is in `is_open`: either the source sees this, or it is seen waiting.
        self.arrived.store(sequence + 1, Ordering::SeqCst);
        if self.waits.load(Ordering::SeqCst)
            && let Some(waker) = self.waker.get()
        {
            waker.wake();
        }
    }

    /// By the source's worker: whether one more may be sent.
    fn is_open(&self) -> bool {
        if self.has_room() {
            self.waits.store(false, Ordering::Relaxed);
            return true;
        }
        self.waits.store(true, Ordering::SeqCst);
        // What has arrived meanwhile may not have seen that.
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

/// The condition of a source that a path with such a limit begins at.
pub(crate) struct Room(pub Arc<Bound>);

impl Condition for Room {
    fn check(&mut self, view: &View<'_>) -> Result<Verdict, Error> {
        Ok(if self.0.is_open() || view.is_stopping() { Verdict::Holds } else { Verdict::Waits })
    }

    fn describe(&self) -> String {
        let limit = match self.0.limit {
            InFlightLimit::Messages(most) => format!("fewer than {most} messages"),
            InFlightLimit::Time(most_ns) => format!("less than {} ms of messages", most_ns as f64 / 1e6),
        };
        format!("{limit} in flight on {}", self.0.name)
    }

    fn attach(&mut self, waker: &Waker) {
        // A source is attached once.
        let _ = self.0.waker.set(waker.clone());
    }
}

/// What the limits of a run have its workers share.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// By path of the plan.
    pub bounds: Vec<Option<Arc<Bound>>>,
    /// By number of the source; empty where nothing asks for it.
    pub skips: Arc<[Skips]>,
    /// What a miss ended the run.
    stopped: OnceLock<String>,
}

/// What came of the limits of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The miss that ended the run.
    pub stopped: Option<String>,
    /// By path of the plan: most messages that were under way.
    pub most: Vec<Option<u64>>,
    /// Sources that left out ticks, and how many.
    pub skipped: Vec<(String, u64)>,
}

impl Limits {
    /// Of a plan.
    pub fn of(plan: &Plan) -> Self {
        let bound = |path: &PathPlan| {
            let name = format!("{} → {}", path.from, path.to);
            path.max_in_flight.map(|limit| Arc::new(Bound::new(limit, name)))
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

    /// Gives the sources that are bounded their condition.
    pub fn bind(&self, graph: &mut Graph, plan: &Plan) {
        let numbers = plan.source_numbers();
        for (path, bound) in plan.paths.iter().zip(&self.bounds) {
            let Some(bound) = bound else { continue };
            let is_it = |number: &usize| plan.operators[*number].source && numbers[*number] == path.source;
            let Some(source) = (0..plan.operators.len()).find(is_it) else { continue };
            graph.when_of(plan.order[source], When::own(Room(Arc::clone(bound))));
        }
    }

    /// Notes that a miss ends the run: what was missed.
    pub fn stop(&self, what: impl FnOnce() -> String) {
        self.stopped.get_or_init(what);
    }

    /// What came of them.
    pub fn outcome(&self, plan: &Plan) -> Outcome {
        let numbers = plan.source_numbers();
        let skipped = |number: usize| {
            let source = Some(&plan.operators[number]).filter(|operator| operator.source)?;
            let count = self.skips.get(numbers[number])?.done();
            (count > 0).then(|| (source.name.clone(), count))
        };
        Outcome {
            stopped: self.stopped.get().cloned(),
            most: self.bounds.iter().map(|bound| bound.as_ref().map(|bound| bound.most())).collect(),
            skipped: (0..plan.operators.len()).filter_map(skipped).collect(),
        }
    }
}
