//! Reports of threads and parts at their end.

use super::copies;
use crate::base::bounded_list::BoundedList;
use crate::engine::pool::SharingCounts;
use crate::engine::worker::{NodeState, Path, PathStatistics, Worker};
use crate::operator::chunk::Info;
use crate::operator::context::{Context, EdgeState, NONE, RunClock};
use crate::operator::link::EdgeEnds;
use crate::plan::Plan;
use onbeat_os::Usage;
use onbeat_queue::Store;
use onbeat_trace::record::{
    ChangeRecord, FaultRecord, LinkRecord, Miss, Obtained, OperatorRecord, OperatorState, PathRecord,
    Sharing, StoreRecord, ThreadRecord,
};
use onbeat_trace::{Histogram, Summary};

/// Report of one thread at its end.
#[derive(Debug, Default)]
pub(crate) struct ThreadReport {
    pub(super) parts: Vec<PartReport>,
    pub(super) thread: Option<ThreadRecord>,
}

/// Use of a thread's time during the run, in real time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadTime {
    begin_ns: u64,
    end_ns: u64,
    pub idle_ns: u64,
    /// Longest time from an alarm to the thread's wake-up.
    late_ns: Option<u64>,
    /// Resource use: until [`ThreadTime::end`] that at the first step, afterwards the difference to it.
    usage: Usage,
    /// Allocations, likewise; `None` if the program does not count them.
    allocations: Option<u64>,
}

impl ThreadTime {
    pub fn begin(clock: &RunClock) -> Self {
        let begin_ns = clock.real_ns();
        let mut time = ThreadTime { begin_ns, end_ns: begin_ns, ..ThreadTime::default() };
        time.after_start();
        time
    }

    /// Adds a wait from `begin_ns` to `now_ns`, for an alarm at `alarm_ns` at the latest; `u64::MAX` for
    /// none.
    pub fn waited(&mut self, begin_ns: u64, now_ns: u64, alarm_ns: u64) {
        self.idle_ns += now_ns.saturating_sub(begin_ns);
        if now_ns >= alarm_ns && begin_ns < alarm_ns {
            self.late_ns = self.late_ns.max(Some(now_ns - alarm_ns));
        }
    }

    /// Sets the base of the counters before the first step. Allocations after it are unwanted.
    pub fn after_start(&mut self) {
        self.allocations = onbeat_os::allocations::of_thread();
        self.usage = Usage::of_thread().unwrap_or_default();
    }

    pub fn end(&mut self, clock: &RunClock) {
        self.usage = Usage::of_thread().unwrap_or_default().since(&self.usage);
        self.allocations =
            onbeat_os::allocations::of_thread().zip(self.allocations).map(|(now, then)| now - then);
        self.end_ns = clock.real_ns();
    }
}

impl ThreadReport {
    /// Makes the report. Runs on the thread itself.
    pub fn new(plan: &Plan, worker: usize, parts: Vec<PartReport>, time: ThreadTime) -> Self {
        let thread = ThreadRecord {
            name: plan.workers[worker].name.clone(),
            purpose: "steps operators".to_string(),
            tid: onbeat_os::thread::current_id(),
            cpu_ns: onbeat_os::clock::thread_cpu_ns(),
            busy_ns: (time.end_ns - time.begin_ns).saturating_sub(time.idle_ns),
            idle_ns: time.idle_ns,
            policy: onbeat_os::Policy::of_this_thread().ok().map(|(policy, _)| policy.to_string()),
            minor_faults: Some(time.usage.minor_faults),
            major_faults: Some(time.usage.major_faults),
            allocations: time.allocations,
            wake_late_max_ns: time.late_ns,
            sharing: None,
        };
        ThreadReport { parts, thread: Some(thread) }
    }

    /// Report of a thread that does not come back.
    pub fn given_up(plan: &Plan, worker: usize, tid: i32) -> Self {
        let thread = ThreadRecord {
            name: plan.workers[worker].name.clone(),
            purpose: "steps operators; it did not come back".to_string(),
            tid,
            ..ThreadRecord::default()
        };
        ThreadReport { thread: Some(thread), ..ThreadReport::default() }
    }

    /// Adds the counters of the pool.
    pub fn with_counts(
        mut self,
        SharingCounts { taken, stolen, woken, parked, helped }: SharingCounts,
    ) -> Self {
        if let Some(thread) = &mut self.thread {
            thread.sharing = Some(Sharing { taken, stolen, woken, parked, helped });
        }
        self
    }
}

/// Report of one part at its end. Numbers are those of the plan.
#[derive(Debug, Default)]
pub(crate) struct PartReport {
    /// Records, with the step durations by which replicas and recorded steps are added up, if there are any.
    pub operators: Vec<(usize, OperatorRecord, Option<Histogram>)>,
    pub(super) outs: Vec<(usize, OutEnd)>,
    pub(super) inputs: Vec<(usize, InEnd)>,
    pub paths: Vec<(usize, PathRecord, Option<PathStatistics>)>,
    /// Messages sent by each source: number of the source, number of messages.
    pub sent: Vec<(usize, u64)>,
    pub stores: Vec<StoreRecord>,
    pub misses: BoundedList<Miss>,
    pub changes: BoundedList<ChangeRecord>,
    pub faults: BoundedList<FaultRecord>,
    pub notes: Vec<String>,
    /// Settings that operators requested from the machine.
    pub obtained: Vec<Obtained>,
    /// Links with other runs.
    pub links: Vec<LinkRecord>,
    pub end_ns: u64,
    pub read_ns: Option<f64>,
    pub source: Option<String>,
}

/// Counters at the producer's end of an edge.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OutEnd {
    pub sent: u64,
    pub dropped: u64,
    /// Dropped messages that the consumer's counters also have, because they were taken out of the queue.
    pub dropped_taken: u64,
    /// Dropped messages that never were in the queue.
    pub refused: u64,
    /// Messages not sent because the consumer was done.
    pub ignored: u64,
    pub deepest: u32,
}

/// Counters at the consumer's end of an edge.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InEnd {
    pub taken: u64,
    pub cleared: u64,
    pub gone: bool,
    pub deepest: u32,
}

/// Makes the report of a part.
pub(crate) fn report(plan: &Plan, worker: &Worker, cx: &Context, started: usize, end_ns: u64) -> PartReport {
    let duration_ns = end_ns.saturating_sub(cx.start_ns);
    let name = plan.parts[worker.seat.part].name.clone();
    let path = |path: &Path| {
        let asked = &plan.paths[path.plan];
        let record = PathRecord {
            from: asked.from.clone(),
            to: asked.to.clone(),
            max_latency_ns: path.limit_ns,
            misses: path.misses,
            worst_ns: None,
            max_in_flight: asked.max_in_flight,
            in_flight_mean: None,
            in_flight_most: None,
            held_back_ns: 0,
            slowest: Vec::new(),
            // Filled by `whole_path`.
            latency: Summary::default(),
            latencies_by_time: None,
            course: None,
            regularity: None,
        };
        let measured = plan.recipe.is_some().then(|| path.statistics.clone());
        (path.plan, copies::whole_path(record, &path.statistics), measured)
    };
    let store = |store: &Store<Info>| StoreRecord {
        worker: name.clone(),
        quantum_bytes: store.block_bytes() as u64,
        chunks: store.blocks() as u64,
        in_use_max: store.in_use_max() as u64,
        refused: store.refused(),
        copies: store.copies(),
    };
    let ends = || worker.edges.iter().zip(&cx.edges);
    PartReport {
        operators: operators(plan, worker, cx, started, duration_ns),
        outs: ends()
            .filter(|(ends, _)| ends.from != NONE)
            .map(|(ends, state)| out_end(worker, cx, ends, state))
            .collect(),
        inputs: ends()
            .filter(|(ends, _)| ends.to != NONE)
            .map(|(ends, state)| in_end(worker, cx, ends, state))
            .collect(),
        paths: worker.tracker.paths.iter().map(path).collect(),
        sent: worker
            .nodes
            .iter()
            .filter(|node| node.source)
            .map(|node| (node.source_number as usize, node.sequence))
            .collect(),
        stores: cx.stores.iter().map(store).collect(),
        misses: worker.tracker.misses(),
        changes: worker.history.changes.clone(),
        faults: worker.history.faults.clone(),
        notes: cx.notes.clone(),
        obtained: cx.losses.obtained.clone(),
        links: cx.losses.links.clone(),
        end_ns,
        read_ns: clock_read_ns(cx),
        source: cx.clock.source(),
    }
}

fn out_end(worker: &Worker, cx: &Context, ends: &EdgeEnds, state: &EdgeState) -> (usize, OutEnd) {
    let local = ends.to != NONE;
    let end = OutEnd {
        sent: ends.probe.sent(&cx.owner) + if local { worker.unqueued(ends.to) } else { 0 },
        dropped: state.dropped,
        dropped_taken: if local { state.dropped - state.refused } else { 0 },
        refused: state.refused,
        ignored: state.unread - state.cleared,
        deepest: ends.probe.deepest(&cx.owner),
    };
    (ends.plan, end)
}

fn in_end(worker: &Worker, cx: &Context, ends: &EdgeEnds, state: &EdgeState) -> (usize, InEnd) {
    let local = ends.from != NONE;
    let end = InEnd {
        taken: ends.probe.taken(&cx.owner) + if local { worker.unqueued(ends.to) } else { 0 },
        cleared: state.cleared,
        gone: state.gone,
        deepest: if local { 0 } else { ends.probe.most_visible(&cx.owner) },
    };
    (ends.plan, end)
}

fn operators(
    plan: &Plan,
    worker: &Worker,
    cx: &Context,
    started: usize,
    duration_ns: u64,
) -> Vec<(usize, OperatorRecord, Option<Histogram>)> {
    let record = |(number, node): (usize, &NodeState)| {
        let operator = &plan.operators[node.plan];
        let (meter, hot) = (&worker.meters[number], &cx.hot[number]);
        let since = u64::from(hot.every.saturating_sub(hot.left)) + worker.passes(number as u32);
        let steps = meter.steps(since);
        let busy_ns = meter.busy_ns(steps);
        let deadline = worker.tracker.deadlines.iter().find(|deadline| deadline.operator as usize == number);
        let record = OperatorRecord {
            name: operator.name.clone(),
            kind: operator.kind.clone(),
            worker: plan.pools[plan.parts[operator.part].pool].name.clone(),
            steps,
            timed_steps: meter.timed_steps(),
            step: Summary::default(),
            steps_by_time: None,
            busy_ns,
            share: if duration_ns > 0 { busy_ns as f64 / duration_ns as f64 } else { 0.0 },
            deadline_ns: operator.deadline_ns,
            late: deadline.map_or(0, |deadline| deadline.late),
            copies: cx.copies[number].get(),
            restarts: node.trouble.restarts,
            workers: 1,
            losses: cx.losses.records(number as u32),
            measured: cx.losses.measured(number as u32),
            state: if number >= started {
                OperatorState::NotStarted
            } else if node.trouble.isolated {
                OperatorState::Isolated
            } else if node.done {
                OperatorState::Done
            } else {
                OperatorState::Waiting
            },
        };
        let is_joined = plan.recipe.is_some() || worker.flight.is_some();
        let steps = is_joined.then(|| meter.histogram.clone());
        (node.plan, copies::whole_operator(record, &meter.histogram), steps)
    };
    worker.nodes.iter().enumerate().map(record).collect()
}

/// Cost of reading the clock on this thread, in nanoseconds.
fn clock_read_ns(cx: &Context) -> Option<f64> {
    const READS: u32 = 1000;
    cx.clock.is_real().then(|| {
        let begin_ns = cx.now_ns();
        let mut last_ns = begin_ns;
        for _ in 0..READS {
            last_ns = cx.now_ns();
        }
        (last_ns - begin_ns) as f64 / f64::from(READS)
    })
}
