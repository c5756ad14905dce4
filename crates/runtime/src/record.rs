//! What a run has measured, as the record that all views read: each part reports at its end, and the reports are joined.

use crate::chunk::Info;
use crate::context::{Clock, Context, EdgeState, NONE};
use crate::plan::Plan;
use crate::pool::Counts;
use crate::run::Fault;
use crate::worker::{EdgeEnds, NodeState, Path, Stuck, Worker};
use onbeat_os::Usage;
use onbeat_queue::Store;
use onbeat_trace::record::{
    Build, ChangeRecord, ClockRecord, EdgeRecord, FaultAction, FaultRecord, Miss, Obtained, OperatorRecord,
    OperatorState, Outcome, PathRecord, PlanRecord, RunResult, Sharing, StoreRecord, ThreadRecord,
    WorkerRecord,
};
use onbeat_trace::{Histogram, Machine, Record, record};

/// What one thread has to say at its end.
#[derive(Debug, Default)]
pub(crate) struct ThreadReport {
    parts: Vec<PartReport>,
    thread: Option<ThreadRecord>,
}

/// How a thread has spent the run, in real time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Time {
    begin_ns: u64,
    end_ns: u64,
    pub idle_ns: u64,
    /// At the first step; then since.
    usage: Usage,
    /// The same, where the program counts.
    allocations: Option<u64>,
}

impl Time {
    pub fn begin(clock: &Clock) -> Self {
        let begin_ns = clock.real_ns();
        let mut time = Time { begin_ns, end_ns: begin_ns, ..Time::default() };
        time.after_start();
        time
    }

    /// The first step is next: what is counted from here on was not asked for.
    pub fn after_start(&mut self) {
        self.allocations = onbeat_os::allocations::of_thread();
        self.usage = Usage::of_thread().unwrap_or_default();
    }

    pub fn end(&mut self, clock: &Clock) {
        self.usage = Usage::of_thread().unwrap_or_default().since(&self.usage);
        self.allocations =
            onbeat_os::allocations::of_thread().zip(self.allocations).map(|(now, then)| now - then);
        self.end_ns = clock.real_ns();
    }
}

impl ThreadReport {
    /// On the thread itself.
    pub fn new(plan: &Plan, worker: usize, parts: Vec<PartReport>, time: Time) -> Self {
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
            sharing: None,
        };
        ThreadReport { parts, thread: Some(thread) }
    }

    /// Of a thread that does not come back.
    pub fn given_up(plan: &Plan, worker: usize, tid: i32) -> Self {
        let thread = ThreadRecord {
            name: plan.workers[worker].name.clone(),
            purpose: "steps operators; it did not come back".to_string(),
            tid,
            cpu_ns: 0,
            busy_ns: 0,
            idle_ns: 0,
            policy: None,
            minor_faults: None,
            major_faults: None,
            allocations: None,
            sharing: None,
        };
        ThreadReport { thread: Some(thread), ..ThreadReport::default() }
    }

    /// With what sharing did on it.
    pub fn with_counts(mut self, Counts { taken, stolen, woken, parked }: Counts) -> Self {
        if let Some(thread) = &mut self.thread {
            thread.sharing = Some(Sharing { taken, stolen, woken, parked });
        }
        self
    }
}

/// What one part has to say at its end. Numbers are those of the plan.
#[derive(Debug, Default)]
pub(crate) struct PartReport {
    operators: Vec<(usize, OperatorRecord)>,
    outs: Vec<(usize, OutEnd)>,
    inputs: Vec<(usize, InEnd)>,
    paths: Vec<(usize, PathRecord)>,
    stores: Vec<StoreRecord>,
    misses: Vec<Miss>,
    misses_total: u64,
    changes: Vec<ChangeRecord>,
    changes_total: u64,
    faults: Vec<FaultRecord>,
    faults_total: u64,
    notes: Vec<String>,
    end_ns: u64,
    read_ns: Option<f64>,
    source: Option<String>,
}

/// What is known at the producer's end of an edge.
#[derive(Debug, Clone, Copy, Default)]
struct OutEnd {
    sent: u64,
    dropped: u64,
    /// Of those, the ones that the consumer's counters have too: they were taken out again.
    dropped_taken: u64,
    /// Of those dropped, the ones that never were in the queue.
    refused: u64,
    /// Not sent because the consumer was done.
    ignored: u64,
    deepest: u32,
}

/// What is known at the consumer's end of an edge.
#[derive(Debug, Clone, Copy, Default)]
struct InEnd {
    taken: u64,
    cleared: u64,
    gone: bool,
    deepest: u32,
}

/// How the run came to its end.
pub(crate) struct Ended {
    pub started_unix_ns: u64,
    /// `None` when it did not come to the first step.
    pub start_ns: Option<u64>,
    pub was_stopped: bool,
    pub faults: Vec<Fault>,
    pub stuck: Vec<Stuck>,
    /// Failures beside those that parts tell and those that ended the run.
    pub survived: Vec<FaultRecord>,
    /// What was asked of the machine, and what it gave.
    pub obtained: Vec<Obtained>,
    /// How often deadline threads used up their run time.
    pub overruns: Option<u64>,
    /// Threads beside the workers.
    pub helpers: Vec<ThreadRecord>,
}

/// What a part has measured.
pub(crate) fn report(plan: &Plan, worker: &Worker, cx: &Context, started: usize, end_ns: u64) -> PartReport {
    let duration_ns = end_ns.saturating_sub(cx.start_ns);
    let name = plan.parts[worker.seat.part].name.clone();
    let path = |path: &Path| {
        let asked = &plan.paths[path.plan];
        let record = PathRecord {
            from: asked.from.clone(),
            to: asked.to.clone(),
            max_latency_ns: path.limit_ns,
            latency: path.latency.summary(),
            misses: path.misses,
        };
        (path.plan, record)
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
            .map(|(ends, state)| out_end(cx, ends, state))
            .collect(),
        inputs: ends()
            .filter(|(ends, _)| ends.to != NONE)
            .map(|(ends, state)| in_end(cx, ends, state))
            .collect(),
        paths: worker.tracker.paths.iter().map(path).collect(),
        stores: cx.stores.iter().map(store).collect(),
        misses: worker.tracker.misses.clone(),
        misses_total: worker.tracker.misses_total,
        changes: worker.changes.clone(),
        changes_total: worker.changes_total,
        faults: worker.faults.clone(),
        faults_total: worker.faults_total,
        notes: cx.notes.clone(),
        end_ns,
        read_ns: clock_read_ns(cx),
        source: cx.clock.source(),
    }
}

fn out_end(cx: &Context, ends: &EdgeEnds, state: &EdgeState) -> (usize, OutEnd) {
    let local = ends.to != NONE;
    let end = OutEnd {
        sent: ends.probe.sent(&cx.owner),
        dropped: state.dropped,
        dropped_taken: if local { state.dropped - state.refused } else { 0 },
        refused: state.refused,
        ignored: state.unread - state.cleared,
        deepest: ends.probe.deepest(&cx.owner),
    };
    (ends.plan, end)
}

fn in_end(cx: &Context, ends: &EdgeEnds, state: &EdgeState) -> (usize, InEnd) {
    let local = ends.from != NONE;
    let end = InEnd {
        taken: ends.probe.taken(&cx.owner),
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
) -> Vec<(usize, OperatorRecord)> {
    let record = |(number, node): (usize, &NodeState)| {
        let operator = &plan.operators[node.plan];
        let (meter, hot) = (&worker.meters[number], &cx.hot[number]);
        let steps = meter.steps(hot.every.saturating_sub(hot.left));
        let busy_ns = meter.busy_ns(steps);
        let deadline = worker.tracker.deadlines.iter().find(|deadline| deadline.operator as usize == number);
        let record = OperatorRecord {
            name: operator.name.clone(),
            kind: operator.kind.clone(),
            worker: plan.pools[plan.parts[operator.part].pool].name.clone(),
            steps,
            timed_steps: meter.timed_steps(),
            step: meter.histogram.summary(),
            busy_ns,
            share: if duration_ns > 0 { busy_ns as f64 / duration_ns as f64 } else { 0.0 },
            deadline_ns: operator.deadline_ns,
            late: deadline.map_or(0, |deadline| deadline.late),
            copies: cx.copies[number].get(),
            restarts: node.trouble.restarts,
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
        (node.plan, record)
    };
    worker.nodes.iter().enumerate().map(record).collect()
}

/// An operator of which nothing is known.
fn untold(plan: &Plan, number: usize) -> OperatorRecord {
    let operator = &plan.operators[number];
    OperatorRecord {
        name: operator.name.clone(),
        kind: operator.kind.clone(),
        worker: plan.pools[plan.parts[operator.part].pool].name.clone(),
        steps: 0,
        timed_steps: 0,
        step: Histogram::new().summary(),
        busy_ns: 0,
        share: 0.0,
        deadline_ns: operator.deadline_ns,
        late: 0,
        copies: 0,
        restarts: 0,
        state: OperatorState::Waiting,
    }
}

/// The record of the run, from what its workers report.
pub(crate) fn record(
    name: String,
    config: serde_json::Value,
    plan: &Plan,
    mut threads: Vec<ThreadReport>,
    mut ended: Ended,
) -> Record {
    let mut reports: Vec<PartReport> = threads.iter_mut().flat_map(|thread| thread.parts.drain(..)).collect();
    let end_ns = reports.iter().map(|report| report.end_ns).max().unwrap_or(0);
    let duration_ns = ended.start_ns.map_or(0, |start_ns| end_ns.saturating_sub(start_ns));
    let (edges, left) = edges(plan, &reports);
    // What is on its way round a cycle at the end was never to be read.
    let ahead = edges.iter().zip(&plan.wires).filter(|(_, wire)| !wire.feedback);
    let unread: u64 = ahead.map(|(edge, _)| edge.unread).sum();
    let mut operators: Vec<_> = reports.iter_mut().flat_map(|report| report.operators.drain(..)).collect();
    // Parts whose thread does not come back tell nothing.
    let mut is_told = vec![false; plan.operators.len()];
    operators.iter().for_each(|&(number, _)| is_told[number] = true);
    operators.extend((0..is_told.len()).filter(|&number| !is_told[number]).map(|it| (it, untold(plan, it))));
    operators.sort_by_key(|&(number, _)| number);
    let mut operators: Vec<OperatorRecord> = operators.into_iter().map(|(_, record)| record).collect();
    for fault in ended.faults.iter().filter_map(|fault| fault.operator).take(1) {
        let state = &mut operators[fault].state;
        if *state != OperatorState::NotStarted {
            *state = OperatorState::Failed;
        }
    }
    let mut paths: Vec<_> = reports.iter_mut().flat_map(|report| report.paths.drain(..)).collect();
    paths.sort_by_key(|&(number, _)| number);
    let mut misses: Vec<Miss> = reports.iter_mut().flat_map(|report| report.misses.drain(..)).collect();
    misses.sort_by_key(|miss| miss.time_ns);
    let mut changes: Vec<ChangeRecord> =
        reports.iter_mut().flat_map(|report| report.changes.drain(..)).collect();
    changes.sort_by_key(|change| change.time_ns);
    let fatal = ended.faults.iter().map(|fault| FaultRecord {
        time_ns: fault.time_ns,
        operator: fault.operator.map(|operator| plan.operators[operator].name.clone()),
        what: fault.what,
        text: fault.text.clone(),
        then: FaultAction::Stopped,
        delay_ns: None,
        stack: fault.stack.clone(),
    });
    let of_parts = reports.iter().map(|report| report.faults_total).sum::<u64>();
    let faults_total = of_parts + (ended.faults.len() + ended.survived.len()) as u64;
    let of_parts = reports.iter_mut().flat_map(|report| report.faults.drain(..));
    let mut faults: Vec<FaultRecord> = of_parts.chain(ended.survived.drain(..)).chain(fatal).collect();
    faults.sort_by_key(|fault| fault.time_ns);
    let said = reports.iter_mut().flat_map(|report| report.notes.drain(..));
    let notes = plan.notes.iter().cloned().chain(said).collect();
    let isolated = operators.iter().filter(|operator| operator.state == OperatorState::Isolated);
    let isolated: Vec<String> = isolated.map(|operator| format!("`{}`", operator.name)).collect();
    Record {
        schema: record::SCHEMA.to_string(),
        version: record::VERSION,
        name,
        build: build(),
        started_unix_ns: ended.started_unix_ns,
        machine: Machine::of_this_process().clone(),
        config,
        plan: PlanRecord {
            scheduler: plan.scheduler,
            workers: plan
                .workers
                .iter()
                .map(|worker| WorkerRecord { name: worker.name.clone(), operators: worker.operators.clone() })
                .collect(),
            order: plan.operators.iter().map(|operator| operator.name.clone()).collect(),
        },
        clock: ClockRecord {
            kind: plan.options.clock,
            source: reports.iter().find_map(|report| report.source.clone()),
            read_ns: reports.iter().find_map(|report| report.read_ns),
        },
        threads: threads
            .into_iter()
            .filter_map(|thread| thread.thread)
            .chain(ended.helpers.drain(..))
            .collect(),
        operators,
        edges,
        paths: paths.into_iter().map(|(_, record)| record).collect(),
        stores: reports.iter_mut().flat_map(|report| report.stores.drain(..)).collect(),
        misses,
        misses_total: reports.iter().map(|report| report.misses_total).sum(),
        changes_total: reports.iter().map(|report| report.changes_total).sum(),
        changes,
        faults,
        faults_total,
        obtained: plan.obtained.iter().cloned().chain(ended.obtained.drain(..)).collect(),
        deadline_overruns: ended.overruns,
        notes,
        result: result(plan, ended, left, &isolated, unread, end_ns, duration_ns),
    }
}

/// Every edge, and how many messages were left behind that somebody still wanted.
fn edges(plan: &Plan, reports: &[PartReport]) -> (Vec<EdgeRecord>, u64) {
    let mut ends = vec![(OutEnd::default(), InEnd::default()); plan.edges.len()];
    for report in reports {
        for &(edge, end) in &report.outs {
            ends[edge].0 = end;
        }
        for &(edge, end) in &report.inputs {
            ends[edge].1 = end;
        }
    }
    let mut lost = 0;
    let records = plan.edges.iter().zip(ends).map(|(edge, (out, input))| {
        let dropped_inside = out.dropped - out.refused - out.dropped_taken;
        // Of an end whose thread does not come back nothing is known.
        let left = out.sent.saturating_sub(input.taken + dropped_inside);
        if !input.gone {
            lost += left;
        }
        EdgeRecord {
            from: edge.from.clone(),
            to: edge.to.clone(),
            message: edge.message.clone(),
            capacity: edge.capacity as u64,
            when_full: edge.when_full,
            quantum_bytes: edge.quantum_bytes.map(u64::from),
            sent: out.sent + out.refused + out.ignored,
            received: input.taken - input.cleared - out.dropped_taken,
            dropped: out.dropped,
            unread: out.ignored + input.cleared + left,
            depth_max: u64::from(out.deepest.max(input.deepest)),
            depth_mean: None,
        }
    });
    (records.collect(), lost)
}

fn result(
    plan: &Plan,
    ended: Ended,
    left: u64,
    isolated: &[String],
    unread: u64,
    end_ns: u64,
    duration_ns: u64,
) -> RunResult {
    let dead_lock = ended.stuck.iter().any(|stuck| stuck.serious);
    let (outcome, mut reason) = if let Some(fault) = ended.faults.into_iter().next() {
        let reason = match fault.operator {
            Some(operator) => format!("operator `{}`: {}", plan.operators[operator].name, fault.text),
            None => fault.text,
        };
        (Outcome::Failed, reason)
    } else if dead_lock {
        let reasons: Vec<String> = ended.stuck.into_iter().flat_map(|stuck| stuck.reasons).collect();
        (Outcome::Failed, format!("dead-lock: {}", reasons.join("; ")))
    } else if ended.was_stopped {
        let over = |duration_ns: u64| ended.start_ns.is_some_and(|start_ns| end_ns - start_ns >= duration_ns);
        let limit = plan.options.duration_ns.is_some_and(over);
        let why = if limit { "the duration was over" } else { "a stop was asked for" };
        (Outcome::Stopped, format!("{why}; {}", worked_off("what was under way", unread)))
    } else {
        (Outcome::Ended, format!("all sources ended and {}", worked_off("everything", unread)))
    };
    if outcome != Outcome::Failed && !isolated.is_empty() {
        reason += &format!("; without {}, which failed", isolated.join(" and "));
    }
    // A failed run leaves messages behind; a good one does not.
    let exit_status = match outcome {
        Outcome::Failed => 1,
        _ if left > 0 => 3,
        _ => 0,
    };
    RunResult { outcome, reason, duration_ns, lost: left, exit_status }
}

/// What became of the last messages. Those that were not read were not wanted: their consumers had ended.
fn worked_off(what: &str, unread: u64) -> String {
    match unread {
        0 => format!("{what} was worked off"),
        1 => format!("{what} was worked off but one message, whose consumer had ended"),
        unread => format!("{what} was worked off but {unread} messages, whose consumers had ended"),
    }
}

fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_string(),
        profile: if cfg!(debug_assertions) { "dev" } else { "release" }.to_string(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
    }
}

/// What one look at the clock costs here, in nanoseconds.
fn clock_read_ns(cx: &Context) -> Option<f64> {
    const LOOKS: u32 = 1000;
    cx.clock.is_real().then(|| {
        let begin_ns = cx.now_ns();
        let mut last_ns = begin_ns;
        for _ in 0..LOOKS {
            last_ns = cx.now_ns();
        }
        (last_ns - begin_ns) as f64 / f64::from(LOOKS)
    })
}
