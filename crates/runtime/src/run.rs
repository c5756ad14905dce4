//! From plan to running worker, and back to a record.

use crate::context::{Clock, Context, Held, Hot, NONE, Names, flag};
use crate::graph::Graph;
use crate::link::EdgeSpec;
use crate::operator::{Ending, Operator};
use crate::options::Options;
use crate::plan::{GraphError, Plan};
use crate::ports::{Bound, Described, Ports};
use crate::ready::Ready;
use crate::record::{self, Finished};
use crate::timers::Timers;
use crate::worker::{Deadline, EdgeEnds, Failure, Meter, NodeState, Path, Tracker, Worker};
use crate::{Error, chunk::Info};
use onbeat_os::{Parker, Unparker};
use onbeat_queue::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use onbeat_queue::{Owner, Seed};
use onbeat_trace::Record;
use onbeat_trace::record::{ClockKind, WhenFull};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Why a run did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The graph cannot be run.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The run could not begin.
    #[error("{0}")]
    Begin(String),
    /// The run failed. What it measured until then is in the record.
    #[error("{}", .0.result.reason)]
    Failed(Box<Record>),
}

/// Shared by the worker and whoever watches it.
#[derive(Debug)]
pub(crate) struct Control {
    /// 0: run on; 1: a stop was asked for; 2: and the worker has told its sources.
    stop: AtomicU32,
    /// On the run's clock, when the worker last looked. Relaxed everywhere: a picture for people.
    now_ns: AtomicU64,
    start_ns: AtomicU64,
    position_ns: AtomicU64,
    /// 0 while unknown.
    length_ns: AtomicU64,
    unparker: Unparker,
}

impl Control {
    // Relaxed throughout: the flag publishes nothing but itself.
    #[inline]
    pub fn stop_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    pub fn set_stopped(&self) {
        self.stop.store(2, Ordering::Relaxed);
    }

    pub fn was_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) == 2
    }

    pub fn publish(&self, now_ns: u64, position_ns: u64) {
        self.now_ns.store(now_ns, Ordering::Relaxed);
        if position_ns > self.position_ns.load(Ordering::Relaxed) {
            self.position_ns.store(position_ns, Ordering::Relaxed);
        }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Time since the start, on the run's clock.
    pub elapsed_ns: u64,
    /// Source time of the latest message that was looked at.
    pub position_ns: u64,
    /// Source time at the end, where a source knows it.
    pub length_ns: Option<u64>,
}

/// Ends a run from outside: from another thread, from a signal handler's thread.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Control>);

impl Stopper {
    /// Asks the sources to end. What is under way is worked off, files are finished, the record is made.
    pub fn stop(&self) {
        self.0.stop.fetch_max(1, Ordering::Relaxed);
        self.0.unparker.unpark();
    }

    /// How far the run is.
    pub fn progress(&self) -> Position {
        let start_ns = self.0.start_ns.load(Ordering::Relaxed);
        let length_ns = self.0.length_ns.load(Ordering::Relaxed);
        Position {
            elapsed_ns: self.0.now_ns.load(Ordering::Relaxed).saturating_sub(start_ns),
            position_ns: self.0.position_ns.load(Ordering::Relaxed),
            length_ns: (length_ns > 0).then_some(length_ns),
        }
    }
}

/// A run under way.
///
/// ```
/// # use onbeat_runtime::{Graph, Options};
/// let mut graph = Graph::new("endless");
/// let ones = graph.source("ones", || Some(1u8));
/// let end = graph.sink("end", |_: u8| ());
/// graph.connect(ones, |s| &s.out, end, |e| &e.input);
/// let run = graph.start(&Options::default())?;
/// let stopper = run.stopper();
/// stopper.stop();
/// let record = run.wait()?;
/// assert_eq!(record.result.outcome.to_string(), "stopped");
/// # Ok::<(), onbeat_runtime::RunError>(())
/// ```
#[derive(Debug)]
pub struct Run {
    thread: std::thread::JoinHandle<Record>,
    control: Arc<Control>,
}

impl Run {
    /// A handle to stop and watch it from elsewhere.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.control))
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`RunError::Failed`] when an operator failed or nothing could go on.
    pub fn wait(self) -> Result<Record, RunError> {
        let record = self.thread.join().map_err(|panic| {
            RunError::Begin(format!("the worker itself panicked: {}", panic_text(&*panic)))
        })?;
        if record.result.exit_status == 1 { Err(RunError::Failed(Box::new(record))) } else { Ok(record) }
    }
}

impl Graph {
    /// Plans, starts and returns at once.
    ///
    /// # Errors
    /// [`RunError::Graph`] when the graph cannot be run, [`RunError::Begin`] when threads or memory are missing.
    pub fn start(self, options: &Options) -> Result<Run, RunError> {
        let plan = self.plan(options)?;
        self.start_plan(plan)
    }

    /// Plans, starts and waits for the end.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(self, options: &Options) -> Result<Record, RunError> {
        self.start(options)?.wait()
    }

    /// As [`start`](Graph::start), under a plan that was made before from this graph.
    ///
    /// # Errors
    /// [`RunError::Begin`].
    pub fn start_plan(self, plan: Plan) -> Result<Run, RunError> {
        let parker = Parker::new();
        let control = Arc::new(Control {
            stop: AtomicU32::new(0),
            now_ns: AtomicU64::new(0),
            start_ns: AtomicU64::new(0),
            position_ns: AtomicU64::new(0),
            length_ns: AtomicU64::new(0),
            unparker: parker.unparker(),
        });
        let seeds: Result<Vec<_>, _> = plan
            .stores
            .iter()
            .map(|store| Seed::<Info>::new(store.chunks, store.quantum_bytes as usize))
            .collect();
        let seeds = seeds.map_err(|error| RunError::Begin(error.to_string()))?;
        let owner = Owner::new();
        let (name, config) = (self.name.clone(), self.config.clone());
        let (operators, edges) = bind(self, &plan, &owner);
        let nodes = nodes(&plan, &edges);
        let shared = Arc::clone(&control);
        let thread_name = plan.workers[0].name.clone();
        let main = move || {
            let mut worker = worker(&plan, operators, nodes, edges, shared, parker);
            let mut cx = context(&plan, owner, seeds, &worker);
            let finished = work(&mut worker, &mut cx, &plan);
            record::record(&name, config, &plan, &worker, &cx, finished)
        };
        let thread = onbeat_os::thread::spawn(&thread_name, main)
            .map_err(|error| RunError::Begin(format!("cannot start the thread `{thread_name}`: {error}")))?;
        Ok(Run { thread, control })
    }
}

/// Operators by number, and who is at the ends of each edge.
type Bindings = (Box<[Box<dyn Operator>]>, Box<[EdgeEnds]>);

/// Makes the queues and hands their ends to the ports. Operators come out in the plan's order.
fn bind(graph: Graph, plan: &Plan, owner: &Owner) -> Bindings {
    let mut places: Vec<Option<crate::graph::Node>> = graph.operators.into_iter().map(Some).collect();
    let mut nodes: Vec<crate::graph::Node> = Vec::with_capacity(places.len());
    for &place in &plan.order {
        nodes.extend(places[place].take());
    }
    let into = |number: usize| plan.wires.iter().filter(move |wire| wire.to == number);
    let mut edges_into = vec![0u32; nodes.len()];
    let mut required_into = vec![0u32; nodes.len()];
    for wire in &plan.wires {
        edges_into[wire.to] += 1;
        required_into[wire.to] += u32::from(wire.required);
    }
    debug_assert!(nodes.len() > 64 || (0..nodes.len()).all(|n| into(n).count() as u32 == edges_into[n]));
    let mut out_ends: Vec<Vec<Vec<_>>> = nodes.iter().map(|node| no_ends(node.ports.outputs.len())).collect();
    let mut in_ends: Vec<Vec<Vec<_>>> = nodes.iter().map(|node| no_ends(node.ports.inputs.len())).collect();
    let mut edges = Vec::with_capacity(plan.wires.len());
    for (number, (wire, edge)) in plan.wires.iter().zip(&plan.edges).enumerate() {
        let input = &nodes[wire.to].ports.inputs[wire.input];
        let counted =
            wire.required && required_into[wire.to] > 1 && input.merge != Some(crate::ports::Merge::Arrival);
        let spec = EdgeSpec {
            number: number as u32,
            from: wire.from as u32,
            to: wire.to as u32,
            capacity: edge.capacity as u32,
            waits_at: if edge.when_full == WhenFull::Wait { edge.capacity as u32 } else { u32::MAX },
            when_full: edge.when_full,
            quantum: edge.quantum_bytes.unwrap_or(u32::MAX),
            counted,
        };
        let ends = (nodes[wire.from].ports.outputs[wire.out].make)(owner, spec);
        out_ends[wire.from][wire.out].push(ends.out);
        in_ends[wire.to][wire.input].push(ends.input);
        edges.push(EdgeEnds {
            from: wire.from as u32,
            to: wire.to as u32,
            probe: ends.probe,
            capacity: edge.capacity,
            waits: edge.when_full == WhenFull::Wait,
            counted,
            required: wire.required,
        });
    }
    for (number, node) in nodes.iter_mut().enumerate() {
        let mut bound = Vec::new();
        let Described { inputs, outputs } = &node.ports;
        for (port, ends) in std::mem::take(&mut out_ends[number]).into_iter().enumerate().filter(has_ends) {
            bound.push(Bound { is_input: false, port, end: (outputs[port].link)(ends) });
        }
        for (port, ends) in std::mem::take(&mut in_ends[number]).into_iter().enumerate().filter(has_ends) {
            let alone = edges_into[number] == 1;
            bound.push(Bound {
                is_input: true,
                port,
                end: (inputs[port].link)(ends, inputs[port].merge, alone),
            });
        }
        node.operator.ports(&mut Ports::bind(&mut bound));
    }
    (nodes.into_iter().map(|node| node.operator).collect(), edges.into())
}

fn no_ends<T>(ports: usize) -> Vec<Vec<T>> {
    (0..ports).map(|_| Vec::new()).collect()
}

fn has_ends<T>(port: &(usize, Vec<T>)) -> bool {
    !port.1.is_empty()
}

fn nodes(plan: &Plan, edges: &[EdgeEnds]) -> Box<[NodeState]> {
    let mut nodes: Box<[NodeState]> = plan
        .operators
        .iter()
        .map(|operator| NodeState { source: operator.source, ..NodeState::default() })
        .collect();
    for (number, edge) in edges.iter().enumerate() {
        nodes[edge.from as usize].outputs.push(number as u32);
        nodes[edge.to as usize].inputs.push(number as u32);
    }
    let mut sources = 0;
    for node in &mut nodes {
        let required = node.inputs.iter().filter(|&&edge| edges[edge as usize].required).count();
        node.open_inputs = if required > 0 { required as u32 } else { node.inputs.len() as u32 };
        node.open_outputs = node.outputs.len() as u32;
        if node.source {
            node.source_number = sources;
            sources += 1;
        }
    }
    nodes
}

fn worker(
    plan: &Plan,
    operators: Box<[Box<dyn Operator>]>,
    nodes: Box<[NodeState]>,
    edges: Box<[EdgeEnds]>,
    control: Arc<Control>,
    parker: Parker,
) -> Worker {
    let mut tracker = Tracker::default();
    tracker.reserve();
    for path in &plan.paths {
        tracker.paths.push(Path {
            name: format!("{} → {}", path.from, path.to),
            source: path.source,
            end: path.end as u32,
            limit_ns: path.max_latency_ns,
            latency: onbeat_trace::Histogram::new(),
            misses: 0,
        });
    }
    for (number, operator) in plan.operators.iter().enumerate() {
        if let Some(limit_ns) = operator.deadline_ns {
            tracker.deadlines.push(Deadline {
                name: operator.name.clone(),
                operator: number as u32,
                limit_ns,
                late: 0,
            });
        }
    }
    let count = operators.len();
    Worker {
        operators,
        nodes,
        edges,
        meters: (0..count as u32).map(Meter::new).collect(),
        tracker,
        timers: Timers::new(count),
        control,
        end_ns: None,
        cursor: 0,
        stopping: false,
        starved: Vec::with_capacity(count),
        parker,
        idle_ns: 0,
    }
}

fn context(plan: &Plan, owner: Owner, seeds: Vec<Seed<Info>>, worker: &Worker) -> Context {
    let count = worker.operators.len();
    let mut hot = vec![Hot { left: 1, every: 1, unmet: 0, flags: 0 }; count];
    for edge in worker.edges.iter().filter(|edge| edge.counted) {
        hot[edge.to as usize].unmet += 1;
    }
    for (number, node) in worker.nodes.iter().enumerate().filter(|(_, node)| node.source) {
        hot[number].flags |= if node.inputs.is_empty() { flag::SOURCE } else { flag::SOURCE | flag::MULTI };
    }
    for (number, _) in worker.nodes.iter().enumerate().filter(|(_, node)| node.inputs.len() > 1) {
        hot[number].flags |= flag::MULTI;
    }
    for end in worker.tracker.paths.iter().map(|path| path.end) {
        let ends = worker.nodes[end as usize].outputs.is_empty();
        hot[end as usize].flags |= if ends { flag::END } else { flag::TRACKED };
    }
    for deadline in &worker.tracker.deadlines {
        let ends = worker.nodes[deadline.operator as usize].outputs.is_empty();
        hot[deadline.operator as usize].flags |= flag::EXACT | if ends { flag::END } else { flag::TRACKED };
    }
    let mut turn = Ready::new(count);
    for number in (0..count as u32).filter(|&number| worker.nodes[number as usize].source) {
        turn.set(number);
    }
    let clock = match plan.options.clock {
        ClockKind::Real => Clock::Real,
        ClockKind::Manual => Clock::Manual(0),
    };
    Context {
        owner,
        next: NONE,
        popped: 0,
        stamp: crate::Stamp::default(),
        own: crate::Stamp::default(),
        kept: Vec::with_capacity(worker.edges.len()),
        earlier: Vec::with_capacity(1024),
        keys: None,
        carried: NONE,
        ready: Ready::new(count),
        hot: hot.into(),
        held: vec![Held::No; count].into(),
        turn,
        edges: vec![crate::context::EdgeState::default(); worker.edges.len()].into(),
        stores: seeds.into_iter().map(Seed::open).collect(),
        starved: 0,
        until_ns: 0,
        clock,
        start_ns: 0,
        pace: plan.options.pace,
        length_ns: None,
        names: Arc::new(Names {
            operators: plan.operators.iter().map(|operator| operator.name.clone()).collect(),
            edges: plan.edges.iter().map(|edge| format!("{} → {}", edge.from, edge.to)).collect(),
            quanta: plan.edges.iter().map(|edge| edge.quantum_bytes.unwrap_or(u32::MAX)).collect(),
        }),
        current: NONE,
        copies: vec![std::cell::Cell::new(0); count].into(),
        notes: Vec::new(),
    }
}

/// Starts all operators, runs the loop, stops all that were started.
fn work(worker: &mut Worker, cx: &mut Context, plan: &Plan) -> Finished {
    let started_unix_ns = onbeat_os::clock::realtime_unix_ns();
    let mut started = 0;
    let mut failure = None;
    for operator in 0..worker.operators.len() {
        cx.current = operator as u32;
        match guarded(|| worker.operators[operator].start(cx)) {
            Ok(()) => started += 1,
            Err(error) => {
                failure = Some((operator as u32, format!("cannot start: {error}")));
                break;
            }
        }
    }
    cx.start_ns = cx.now_ns();
    worker.end_ns = plan.options.duration_ns.map(|duration_ns| cx.start_ns.saturating_add(duration_ns));
    worker.control.start_ns.store(cx.start_ns, Ordering::Relaxed);
    worker.control.now_ns.store(cx.start_ns, Ordering::Relaxed);
    worker.control.length_ns.store(cx.length_ns.unwrap_or(0), Ordering::Relaxed);
    let mut reason = None;
    if failure.is_none() {
        match catch_unwind(AssertUnwindSafe(|| worker.run(cx))) {
            Ok(Ok(())) => {}
            Ok(Err(Failure::Operator(operator, error))) => failure = Some((operator, error.to_string())),
            Ok(Err(Failure::Deadlock(reasons))) => {
                reason = Some(format!("dead-lock: {}", reasons.join("; ")));
            }
            Err(panic) => failure = Some((cx.current, format!("panicked: {}", panic_text(&*panic)))),
        }
    }
    let end_ns = cx.now_ns();
    let ending = match (&failure, &reason, worker.control.was_stopped()) {
        (None, None, false) => Ending::Ended,
        (None, None, true) => Ending::Stopped,
        _ => Ending::Failed,
    };
    let mut not_stopped = None;
    for operator in 0..started {
        cx.current = operator as u32;
        // After one has failed to finish its work, the others are told so.
        let ending = if not_stopped.is_some() { Ending::Failed } else { ending };
        if let Err(error) = guarded(|| worker.operators[operator].stop(cx, ending)) {
            not_stopped.get_or_insert((operator as u32, format!("cannot finish: {error}")));
        }
    }
    Finished { started_unix_ns, started, end_ns, ending, failure: failure.or(not_stopped), reason }
}

/// Runs user code; a panic becomes an error.
fn guarded(code: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    catch_unwind(AssertUnwindSafe(code))
        .unwrap_or_else(|panic| Err(Error::new(format!("panicked: {}", panic_text(&*panic)))))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "no message",
    }
}
