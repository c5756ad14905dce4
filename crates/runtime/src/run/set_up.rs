//! Worker and context of a part, as they are before the first step.

use super::bind::BoundPart;
use crate::base::ready::{ReadyList, TurnList};
use crate::base::timers::Timers;
use crate::engine::control::Control;
use crate::engine::flight::{Flight, SLOWEST};
use crate::engine::team::CHUNK;
use crate::engine::worker::chain::wave::{ChainEnds, WavePolicy};
use crate::engine::worker::chain::{Chain, Executor};
use crate::engine::worker::{
    Deadline, History, Meter, MigratingEnds, NodeState, Path, PathStatistics, SourceTurns, Stopping, Tracker,
    Waiting, Worker,
};
use crate::graph::limits::OnMiss;
use crate::operator::Operator;
use crate::operator::chunk::Info;
use crate::operator::context::{
    Context, EdgeState, Hold, Hot, Joining, Losses, NONE, Names, Replicas, RunClock, WaitState, flag,
};
use crate::operator::inline::Shortcut;
use crate::operator::link::Initial;
use crate::operator::when::Conditions;
use crate::plan::Plan;
use crate::plan::replicate::{End, Upcoming};
use onbeat_queue::{Owner, Seed};
use onbeat_trace::record::WhenFull;
use std::cell::Cell;
use std::sync::Arc;

/// Makes a worker, its context, and the initial messages of its edges. Runs on the worker's own thread, which
/// owns the chunk stores from then on.
pub(super) fn set_up(
    part: BoundPart,
    seeds: Vec<Seed<Info>>,
    plan: &Plan,
    control: &Arc<Control>,
) -> (Worker, Context, Vec<(u32, Initial)>) {
    let BoundPart {
        owner,
        seat,
        pool,
        mut operators,
        conditions,
        mut nodes,
        edges,
        events,
        initial,
        rings,
        place: _,
    } = part;
    set_bounds(plan, control, &mut nodes);
    let count = operators.len();
    describe_conditions(control, &nodes, &conditions);
    let ends = watch_ends(&mut operators);
    let mut worker = Worker {
        turns: SourceTurns::default(),
        waiting: Waiting::new(&edges, count, events.into(), pool.is_some()),
        stop: Stopping::new(count),
        migrating: MigratingEnds { ends, was_picked: false },
        history: History::default(),
        operators: operators.into(),
        conditions: conditions.into(),
        tick: None,
        pool,
        chains: (0..count).map(|_| None).collect(),
        edges: edges.into(),
        meters: (0..count as u32).map(|number| Meter::new(number, rings.is_some())).collect(),
        tracker: tracker(plan, &nodes, control, rings.is_some()),
        flight: rings.map(|rings| Box::new(Flight::new(rings, nodes.iter().map(|node| node.plan)))),
        nodes: nodes.into(),
        timers: Timers::new(count),
        control: Arc::clone(control),
        slot: Arc::clone(&control.board.parts[seat.part]),
        seat,
        has_limits: plan.has_limits(),
    };
    let mut cx = context(plan, owner, seeds, &worker);
    make_chains(plan, &mut worker, &mut cx);
    share_chains(plan, &mut worker, &cx);
    (worker, cx, initial)
}

/// Shows the conditions of each operator, in words, in the status.
fn describe_conditions(control: &Control, nodes: &[NodeState], conditions: &[Option<Box<Conditions>>]) {
    for (node, conditions) in nodes.iter().zip(conditions) {
        let Some(conditions) = conditions else { continue };
        let texts = conditions.list.iter().map(|condition| condition.describe()).collect();
        control.board.operators[node.plan].set_conditions(texts);
    }
}

/// Gives each migrating end a bit of the pending-turn mask. Ends after the 64th have none: a notifier wakes
/// them.
fn watch_ends(operators: &mut [Box<dyn Operator>]) -> Box<[(u32, Upcoming)]> {
    let ends = operators
        .iter_mut()
        .enumerate()
        .filter_map(|(number, operator)| Some((number as u32, End::of(&mut **operator)?)));
    ends.take(64).enumerate().map(|(bit, (number, end))| (number, end.watch(1 << bit))).collect()
}

/// Lets the threads of a pool carry chunks through the same chains in waves, if the plan says so.
fn share_chains(plan: &Plan, worker: &mut Worker, cx: &Context) {
    let Some(pool) = worker.pool.clone() else { return };
    // Virtual time needs one order of events. A flight recorder needs steps in the order of their times.
    if !cx.clock.is_real() || worker.flight.is_some() {
        return;
    }
    let threads = pool.workers.len();
    let here = |number: usize| worker.nodes.iter().position(|node| node.plan == number);
    let firsts = plan.waves.iter().filter_map(|wave| here(*wave.get(1)?));
    for first in firsts.collect::<Vec<_>>() {
        let contexts = (0..threads).map(|_| context(plan, Owner::new(), Vec::new(), worker)).collect();
        let Some(chain) = &mut worker.chains[first] else { continue };
        let ends = ChainEnds { source: chain.source, sink: chain.sink };
        let Some(help) = chain.executor.share(ends, contexts) else { continue };
        if pool.add_wave(help) {
            chain.policy = Some(Box::new(WavePolicy::new(threads, (ends.sink - ends.source) as usize + 1)));
        }
    }
}

/// Makes the chains of the plan that are in this part.
fn make_chains(plan: &Plan, worker: &mut Worker, cx: &mut Context) {
    for numbers in &plan.passes {
        let here = |number: usize| worker.nodes.iter().position(|node| node.plan == number);
        let ends = (numbers.first().and_then(|&it| here(it)), numbers.last().and_then(|&it| here(it)));
        let (Some(source), Some(sink)) = ends else { continue };
        let first = source + usize::from(worker.nodes[source].source);
        let last = sink - usize::from(worker.nodes[sink].outputs.is_empty());
        let Some(mut executor) = executor(worker, first, last) else { continue };
        if let Some(Shortcut::Fill(out)) = shortcut(worker, source) {
            executor.begin_at(out);
        }
        if let Some(Shortcut::Drain(input)) = shortcut(worker, sink) {
            executor.end_at(input);
        }
        // A sink has steps inside and outside of passes. A source begins a pass.
        cx.hot[source..=last].iter_mut().for_each(|hot| hot.flags |= flag::CHAINED);
        worker.nodes[source..=sink].iter_mut().for_each(|node| node.chain = Some(first as u32));
        let rewriting: Vec<usize> = (first..=last)
            .filter(|&number| matches!(shortcut(worker, number), Some(Shortcut::Rewrite(..))))
            .collect();
        let quantum_of = |&number: &usize| {
            let wires = plan.wires.iter().zip(&plan.edges);
            let sent = wires.filter(|(wire, _)| wire.from == worker.nodes[number].plan);
            sent.filter_map(|(_, edge)| edge.quantum_bytes).min()
        };
        if let Some(bytes) = rewriting.first().and_then(quantum_of) {
            executor.set_spare_bytes(bytes);
        }
        let inside = first as u32..=last as u32;
        let mut chain = Chain::new(inside, source as u32..=sink as u32, executor);
        chain.rewriting = rewriting.iter().fold(0, |bits, &number| bits | 1 << (number - first));
        worker.chains[first] = Some(chain);
    }
}

fn shortcut(worker: &mut Worker, operator: usize) -> Option<Shortcut> {
    Some(worker.operators[operator].inline()?.shortcut())
}

/// Makes the executor that takes chunks at the input of `first` and sends them at the output of `last`.
/// `None` if one of the two has no shortcut that passes chunks on.
fn executor(worker: &mut Worker, first: usize, last: usize) -> Option<Executor> {
    let (Shortcut::Edit(input, _) | Shortcut::Rewrite(input, _)) = shortcut(worker, first)? else {
        return None;
    };
    let (Shortcut::Edit(_, out) | Shortcut::Rewrite(_, out)) = shortcut(worker, last)? else { return None };
    Some(Executor::new(input, out))
}

/// Gives sources the limits on their messages in flight.
fn set_bounds(plan: &Plan, control: &Control, nodes: &mut [NodeState]) {
    for (path, bound) in plan.paths.iter().zip(&control.limits.bounds) {
        let is_it = |node: &&mut NodeState| node.source && node.source_number == path.source as u64;
        if let (Some(bound), Some(node)) = (bound, nodes.iter_mut().find(is_it)) {
            node.bounds.push(Arc::clone(bound));
        }
    }
}

/// Makes the tracker of the paths and deadlines that end at operators of this worker.
fn tracker(plan: &Plan, nodes: &[NodeState], control: &Control, explains: bool) -> Tracker {
    let mut here = vec![None; plan.operators.len()];
    for (number, node) in nodes.iter().enumerate() {
        here[node.plan] = Some(number as u32);
    }
    let mut tracker = Tracker::default();
    let acts = |on_miss: OnMiss| on_miss != OnMiss::Record;
    tracker.reports = explains
        || plan.paths.iter().any(|path| acts(path.on_miss))
        || plan.operators.iter().any(|operator| acts(operator.on_miss));
    for (number, path) in plan.paths.iter().enumerate() {
        if let Some(end) = here[path.end] {
            tracker.paths.push(Path {
                plan: number,
                name: format!("{} → {}", path.from, path.to),
                source: path.source,
                end,
                at: path.end,
                limit_ns: path.max_latency_ns,
                on_miss: path.on_miss,
                bound: control.limits.bounds[number].clone(),
                slowest_ns: [0; SLOWEST],
                statistics: PathStatistics::default(),
                misses: 0,
            });
        }
    }
    for (at, (operator, here)) in plan.operators.iter().zip(&here).enumerate() {
        if let (Some(limit_ns), Some(number)) = (operator.deadline_ns, *here) {
            let name = operator.name.clone();
            let on_miss = operator.on_miss;
            tracker.deadlines.push(Deadline { plan: at, name, operator: number, limit_ns, on_miss, late: 0 });
        }
    }
    tracker.reserve();
    tracker
}

fn context(plan: &Plan, owner: Owner, seeds: Vec<Seed<Info>>, worker: &Worker) -> Context {
    let count = worker.operators.len();
    let mut turn = TurnList::new(count);
    for number in (0..count as u32).filter(|&number| worker.nodes[number as usize].source) {
        turn.set(number);
    }
    let inbox = worker.seat.inbox();
    let on_return = || {
        let inbox = Arc::clone(inbox);
        Arc::new(move || {
            inbox.schedule(0, CHUNK);
        })
    };
    let stores = seeds.into_iter().map(|seed| seed.open_with(on_return())).collect();
    let edge = |number: usize| &plan.edges[worker.edges[number].plan];
    let edges = || (0..worker.edges.len()).map(edge);
    Context {
        owner,
        next: NONE,
        stamped_edge: NONE,
        current: NONE,
        popped: 0,
        stamp: crate::Stamp::default(),
        keys: None,
        hot: hot(worker),
        edges: vec![EdgeState::default(); worker.edges.len()].into(),
        ready: ReadyList::new(count),
        sent_away: false,
        joining: Joining {
            // If nothing is measured, no stamps are kept.
            earlier: Vec::with_capacity(if worker.tracker.is_empty() { 0 } else { 1024 }),
            ..Joining::default()
        },
        replicas: Replicas::default(),
        held: vec![Hold::No; count].into(),
        turn,
        stores,
        length_ns: None,
        clock: RunClock::new(&plan.options, worker.control.origin_ns),
        start_ns: 0,
        shifts_ns: vec![0; count].into(),
        pace: plan.options.pace,
        sync_files: plan.options.sync_files,
        names: Arc::new(Names {
            operators: worker.nodes.iter().map(|node| plan.operators[node.plan].name.clone()).collect(),
            edges: edges().map(|edge| format!("{} → {}", edge.from, edge.to)).collect(),
            errors: edges().map(|edge| edge.when_full == WhenFull::Error).collect(),
            quanta: edges().map(|edge| edge.quantum_bytes.unwrap_or(u32::MAX)).collect(),
        }),
        stopping: false,
        stopped_real_ns: 0,
        released_ns: 0,
        held_ns: 0,
        lanes: Vec::new(),
        waiting: WaitState {
            kept: Vec::with_capacity(worker.edges.len()),
            full: Vec::with_capacity(worker.edges.len()),
            descriptors: Some((Arc::clone(&worker.seat.descriptors), worker.seat.part as u32)),
            ..WaitState::default()
        },
        copies: vec![Cell::new(0); count].into(),
        notes: Vec::new(),
        losses: Losses::new(plan.options.strict),
        waits: worker.flight.as_ref().map(|flight| flight.waits()),
        skips: Arc::clone(&worker.control.limits.skips),
        cores_beside: Arc::clone(&worker.control.cores_beside),
    }
}

fn hot(worker: &Worker) -> Box<[Hot]> {
    let mut hot = vec![Hot { left: 1, every: 1, unmet: 0, flags: 0 }; worker.operators.len()];
    for edge in worker.edges.iter().filter(|edge| edge.counted && edge.to != NONE) {
        hot[edge.to as usize].unmet += 1;
    }
    for (hot, node) in hot.iter_mut().zip(&worker.nodes) {
        if node.source {
            hot.flags |= flag::SOURCE;
        }
        if node.inputs.len() > usize::from(!node.source) {
            hot.flags |= flag::MULTI;
        }
    }
    for (hot, _) in hot.iter_mut().zip(&worker.conditions).filter(|(_, conditions)| conditions.is_some()) {
        hot.flags |= flag::WHEN;
    }
    let is_bounded = |node: &NodeState| !node.bounds.is_empty();
    for (hot, _) in hot.iter_mut().zip(&worker.nodes).filter(|(_, node)| is_bounded(node)) {
        // Each message of a bounded source has an exact due time, by which its arrival is recognised.
        hot.flags |= flag::EXACT;
    }
    if worker.flight.is_some() {
        hot.iter_mut().for_each(|hot| hot.flags |= flag::RECORDED);
    }
    let ends = |number: u32| worker.nodes[number as usize].outputs.is_empty();
    for end in worker.tracker.paths.iter().map(|path| path.end) {
        hot[end as usize].flags |= if ends(end) { flag::END } else { flag::TRACKED };
    }
    for end in worker.tracker.deadlines.iter().map(|deadline| deadline.operator) {
        hot[end as usize].flags |= flag::EXACT | if ends(end) { flag::END } else { flag::TRACKED };
    }
    hot.into()
}
