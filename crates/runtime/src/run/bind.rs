//! From a planned graph to its parts: makes the queues, gives ports their ends, and numbers operators, edges
//! and events within each part.

mod connect;

use super::conditions;
use crate::base::descriptors::{self, Descriptors, ReadyOperators};
use crate::engine::flight::Rings;
use crate::engine::order::OrderRequest;
use crate::engine::pool::{PoolWaker, ThreadPool};
use crate::engine::team::{CHUNK, CONTROL, InboxEvent, PartWaker, Seat, Team, ThreadWaker};
use crate::engine::worker::{NodeState, WorkerPool};
use crate::graph::{Graph, Node};
use crate::operator::Operator;
use crate::operator::context::NONE;
use crate::operator::link::EdgeEnds;
use crate::operator::link::{EdgeSpec, Initial, Probe};
use crate::operator::when::Conditions;
use crate::plan::Plan;
use crate::plan::replicate::{End, Way};
use connect::connect;
use onbeat_os::Parker;
use onbeat_queue::Owner;
use onbeat_trace::record::ClockKind;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

/// A part before its start: some operators of the graph, for one engine.
pub(super) struct BoundPart {
    pub owner: Owner,
    pub seat: Seat,
    /// Pool whose threads share the part.
    pub pool: Option<Arc<WorkerPool>>,
    /// Number of the part in its pool.
    pub place: u32,
    pub operators: Vec<Box<dyn Operator>>,
    pub conditions: Vec<Option<Box<Conditions>>>,
    pub nodes: Vec<NodeState>,
    pub edges: Vec<EdgeEnds>,
    pub events: Vec<InboxEvent>,
    /// Initial messages of edges that begin in this part, with the edge's number in the part.
    pub initial: Vec<(u32, Initial)>,
    /// Rings for the recorder, if it explains the misses of this part.
    pub rings: Option<Rings>,
}

/// Position of an operator or of an edge's end: the part, and the number in the part.
pub(super) type Place = (usize, u32);

/// Positions of an edge's two ends. They are equal if both ends are in one part.
struct EdgePlace {
    out: Place,
    input: Place,
    /// Items of the edge in the two inboxes: for room at the producer, for data at the consumer.
    items: Option<(u32, u32)>,
}

/// The graph, cut into its parts.
pub(super) struct BoundParts {
    pub parts: Vec<BoundPart>,
    pub team: Team,
    /// By worker.
    pub seats: Vec<ThreadSeat>,
    /// By part: sender of its orders.
    pub orders: Vec<Sender<OrderRequest>>,
}

/// Parker of a thread, and its place in its pool if it shares parts with other threads.
pub(super) type ThreadSeat = (Parker, Option<(Arc<WorkerPool>, usize)>);

impl BoundParts {
    /// Cuts the graph into the parts of its plan.
    pub fn bind(mut graph: Graph, plan: &Plan) -> Self {
        let parts = plan.parts.len();
        let owners: Vec<Owner> = (0..parts).map(|_| Owner::new()).collect();
        let operators = number_operators(plan, parts);
        let (edges, mut events) = number_edges(plan, &operators, parts);
        let conditional = conditions::number(&graph, plan, &operators, &mut events);
        let turns = number_turns(&mut graph, plan, &operators, &mut events);
        let counts: Vec<usize> = events.iter().map(Vec::len).collect();
        let (wakers, pools, seats) = seat_threads(plan);
        let manual = plan.options.clock == ClockKind::Manual;
        let team = Team::new(&owners, &counts, wakers, plan.workers.len(), conditional.outside, manual);
        let mut nodes: Vec<Node> = in_order(&mut graph, plan);
        let (specs, probes) = connect(plan, &mut nodes, &operators, &edges, &owners, &team);
        seat_turns(plan, &mut nodes, &turns, &specs, &probes, &team);
        let (orders, ordered): (Vec<_>, Vec<_>) = (0..parts).map(|_| mpsc::channel()).unzip();
        let descriptors = share_descriptors(plan, &team, &pools);
        let mut parts = empty_parts(plan, &team, owners, pools, events, ordered, descriptors);
        fill_nodes(plan, &operators, &mut parts);
        for &(number, _) in &turns {
            let (part, here) = operators[number];
            parts[part].nodes[here as usize].has_turns = true;
        }
        for (number, mut node) in nodes.into_iter().enumerate() {
            let part = &mut parts[operators[number].0];
            part.conditions.push(conditional.make(number, &mut node, plan, &specs, &team));
            part.operators.push(node.operator);
        }
        fill_edges(&mut graph, plan, &operators, &edges, &specs, probes, &mut parts);
        BoundParts { parts, team, seats, orders }
    }
}

/// Makes the parts, without operators and edges.
fn empty_parts(
    plan: &Plan,
    team: &Team,
    owners: Vec<Owner>,
    pools: Vec<Option<Arc<WorkerPool>>>,
    events: Vec<Vec<InboxEvent>>,
    ordered: Vec<Receiver<OrderRequest>>,
    descriptors: Vec<Arc<Descriptors>>,
) -> Vec<BoundPart> {
    owners
        .into_iter()
        .zip(pools)
        .zip(events)
        .zip(ordered)
        .zip(descriptors)
        .enumerate()
        .map(|(part, ((((owner, pool), events), orders), descriptors))| BoundPart {
            owner,
            seat: Seat {
                team: team.clone(),
                inbox: Arc::clone(&team.inboxes[part]),
                part,
                descriptors,
                orders,
            },
            pool,
            place: plan.parts[..part].iter().filter(|other| other.pool == plan.parts[part].pool).count()
                as u32,
            operators: Vec::new(),
            conditions: Vec::new(),
            nodes: Vec::new(),
            edges: Vec::new(),
            events,
            initial: Vec::new(),
            rings: None,
        })
        .collect()
}

/// Gives the parts of a pool one set of descriptors, and each other part its own. By part.
fn share_descriptors(plan: &Plan, team: &Team, pools: &[Option<Arc<WorkerPool>>]) -> Vec<Arc<Descriptors>> {
    let operators = |part: usize| plan.operators.iter().filter(|operator| operator.part == part).count();
    let inboxes = team.inboxes.iter().enumerate();
    let ready: Arc<[ReadyOperators]> =
        inboxes.map(|(part, inbox)| ReadyOperators::new(inbox, operators(part))).collect();
    let new = || Arc::new(Descriptors::new(Arc::clone(&ready)));
    let of = |pool: &Arc<WorkerPool>| Arc::clone(pool.descriptors.get_or_init(new));
    pools.iter().map(|pool| pool.as_ref().map_or_else(new, of)).collect()
}

/// Enters each edge into the parts of its ends, with the initial messages, and counts the edges of each
/// operator.
fn fill_edges(
    graph: &mut Graph,
    plan: &Plan,
    operators: &[Place],
    edges: &[EdgePlace],
    specs: &[(EdgeSpec, EdgeSpec)],
    probes: Vec<Arc<dyn Probe>>,
    parts: &mut [BoundPart],
) {
    let vital = vital_edges(plan);
    for (number, (place, probe)) in edges.iter().zip(probes).enumerate() {
        let (wire, edge) = (&plan.wires[number], &plan.edges[number]);
        let (out, input) = specs[number];
        let ends = |from, to, probe| EdgeEnds {
            plan: number,
            from,
            to,
            probe,
            capacity: edge.capacity,
            waits_at: out.waits_at as usize,
            counted: input.counted,
            vital: vital[number],
        };
        let (from, to) = (operators[wire.from].1, operators[wire.to].1);
        let initial = std::mem::take(&mut graph.edges[number].initial);
        let part = &mut parts[place.out.0];
        part.initial.extend(initial.into_iter().map(|message| (out.number, message)));
        part.nodes[from as usize].outputs.push(out.number);
        if place.out.0 == place.input.0 {
            part.edges.push(ends(from, to, probe));
            part.nodes[to as usize].inputs.push(out.number);
        } else {
            part.edges.push(ends(from, NONE, Arc::clone(&probe)));
            let part = &mut parts[place.input.0];
            part.edges.push(ends(NONE, to, probe));
            part.nodes[to as usize].inputs.push(input.number);
        }
    }
    for part in parts {
        for node in &mut part.nodes {
            node.open_inputs =
                node.inputs.iter().filter(|&&edge| part.edges[edge as usize].vital).count() as u32;
            node.open_outputs = node.outputs.len() as u32;
        }
    }
}

/// Returns by part its waker, and its pool if several workers share it; by worker its seat.
fn seat_threads(plan: &Plan) -> (Vec<PartWaker>, Vec<Option<Arc<WorkerPool>>>, Vec<ThreadSeat>) {
    let mut pools = Vec::new();
    let mut threads: Vec<_> = plan.workers.iter().map(|_| None).collect();
    for (number, pool) in plan.pools.iter().enumerate() {
        let parkers: Vec<Parker> = pool.workers.iter().map(|_| Parker::new()).collect();
        let parts = plan.parts.iter().filter(|part| part.pool == number);
        let is_lane = parts.map(|part| part.is_lane).collect();
        let share = plan.options.share;
        let shared = (parkers.len() > 1)
            .then(|| Arc::new(ThreadPool::new(&parkers, &pool.workers, is_lane, pool.idle, share)));
        let alone = parkers[0].unparker();
        for (place, (&worker, parker)) in pool.workers.iter().zip(parkers).enumerate() {
            threads[worker] = Some((parker, shared.clone().map(|pool| (pool, place))));
        }
        pools.push((shared, alone, 0));
    }
    let (mut wakers, mut shared) = (Vec::new(), Vec::new());
    for part in &plan.parts {
        let (pool, alone, next) = &mut pools[part.pool];
        wakers.push(match pool {
            Some(pool) => PartWaker {
                wake: Box::new(PoolWaker { pool: Arc::clone(pool), part: *next }),
                is_pooled: true,
            },
            None => PartWaker { wake: Box::new(ThreadWaker(alone.clone())), is_pooled: false },
        });
        *next += 1;
        shared.push(pool.clone());
    }
    (wakers, shared, threads.into_iter().flatten().collect())
}

/// Takes the operators out of the graph, in the order of the plan.
fn in_order(graph: &mut Graph, plan: &Plan) -> Vec<Node> {
    let mut places: Vec<Option<Node>> = graph.operators.drain(..).map(Some).collect();
    let mut nodes = Vec::with_capacity(places.len());
    for &place in &plan.order {
        nodes.extend(places[place].take());
    }
    nodes
}

fn number_operators(plan: &Plan, parts: usize) -> Vec<Place> {
    let mut next = vec![0u32; parts];
    plan.operators
        .iter()
        .map(|operator| {
            let number = next[operator.part];
            next[operator.part] += 1;
            (operator.part, number)
        })
        .collect()
}

fn number_edges(plan: &Plan, operators: &[Place], parts: usize) -> (Vec<EdgePlace>, Vec<Vec<InboxEvent>>) {
    let mut next = vec![0u32; parts];
    let mut events: Vec<Vec<InboxEvent>> = vec![Vec::new(); parts];
    for events in &mut events {
        events.push(InboxEvent::Control);
        events.push(InboxEvent::Chunk);
        events.push(InboxEvent::Descriptor);
        debug_assert!(
            [CONTROL, CHUNK, descriptors::ITEM].map(|item| events[item as usize])
                == [InboxEvent::Control, InboxEvent::Chunk, InboxEvent::Descriptor]
        );
    }
    let mut number = |part: usize| {
        next[part] += 1;
        (part, next[part] - 1)
    };
    let places = plan
        .wires
        .iter()
        .map(|wire| {
            let (from, to) = (operators[wire.from].0, operators[wire.to].0);
            let out = number(from);
            if from == to {
                return EdgePlace { out, input: out, items: None };
            }
            let input = number(to);
            events[from].push(InboxEvent::Room(out.1));
            events[to].push(InboxEvent::Data(input.1));
            EdgePlace {
                out,
                input,
                items: Some((events[from].len() as u32 - 1, events[to].len() as u32 - 1)),
            }
        })
        .collect();
    (places, events)
}

/// Migrating ends, by operator number, each with an item in the inbox of its part.
fn number_turns(
    graph: &mut Graph,
    plan: &Plan,
    operators: &[Place],
    events: &mut [Vec<InboxEvent>],
) -> Vec<(usize, u32)> {
    let mut turns = Vec::new();
    for (number, &place) in plan.order.iter().enumerate() {
        if End::of(&mut *graph.operators[place].operator).is_some() {
            let (part, here) = operators[number];
            events[part].push(InboxEvent::Operator(here));
            turns.push((number, events[part].len() as u32 - 1));
        }
    }
    turns
}

/// Gives each migrating end the notifiers of the others with its name, its edge, and its output.
fn seat_turns(
    plan: &Plan,
    nodes: &mut [Node],
    turns: &[(usize, u32)],
    specs: &[(EdgeSpec, EdgeSpec)],
    probes: &[Arc<dyn Probe>],
    team: &Team,
) {
    let part = |number: usize| plan.operators[number].part;
    let has_limits = plan.has_limits() || plan.paths.iter().any(|path| path.max_in_flight.is_some());
    for &(number, _) in turns {
        let mut all: Vec<&(usize, u32)> = turns
            .iter()
            .filter(|(other, _)| plan.operators[*other].name == plan.operators[number].name)
            .collect();
        // They are ordered by worker.
        all.sort_by_key(|(other, _)| part(*other));
        let notifiers =
            all.iter().map(|(other, item)| team.bell(part(number), part(*other), *item)).collect();
        let edge = plan.wires.iter().position(|wire| wire.to == number);
        let edge = edge.map(|edge| (specs[edge].1.number, Arc::clone(&probes[edge])));
        let way = plan.wires.iter().position(|wire| wire.from == number);
        let way = way.map(|edge| {
            let EdgeSpec { waits_at, quantum, .. } = specs[edge].0;
            Way { probe: Arc::clone(&probes[edge]), waits_at, quantum, has_limits }
        });
        if let Some(end) = End::of(&mut *nodes[number].operator) {
            end.seat(notifiers, edge, way);
        }
    }
    // After a turn of a stretch's last end comes one of its first end.
    for &(sink, _) in turns {
        let mut source = sink;
        while let Some(wire) = plan.wires.iter().find(|wire| wire.to == source) {
            source = wire.from;
        }
        if let Ok([sink, source]) = nodes.get_disjoint_mut([sink, source])
            && let (Some(sink), Some(source)) = (End::of(&mut *sink.operator), End::of(&mut *source.operator))
        {
            sink.follow(source);
        }
    }
}

fn fill_nodes(plan: &Plan, operators: &[Place], parts: &mut [BoundPart]) {
    let source_numbers = plan.source_numbers();
    let mut names = HashSet::new();
    let mut ordered = vec![false; plan.operators.len()];
    for wire in plan.wires.iter().filter(|wire| wire.required && !wire.feedback) {
        ordered[wire.to] = true;
    }
    for (number, operator) in plan.operators.iter().enumerate() {
        let node = NodeState {
            plan: number,
            source: operator.source,
            circular: !operator.source && !ordered[number],
            source_number: source_numbers[number] as u64,
            on_error: operator.on_error,
            is_copy: plan.recipe.is_some() && !names.insert(operator.name.as_str()),
            ..NodeState::default()
        };
        parts[operators[number].0].nodes.push(node);
    }
}

/// By edge: whether the consumer ends once this edge and the other vital ones have ended. Required edges are
/// vital. Those that close a cycle are vital only if there is no other required edge, optional ones only if
/// none is required.
fn vital_edges(plan: &Plan) -> Vec<bool> {
    let rank = |required: bool, feedback: bool| match (required, feedback) {
        (true, false) => 2,
        (true, true) => 1,
        (false, _) => 0,
    };
    let mut best = vec![0; plan.operators.len()];
    for wire in &plan.wires {
        best[wire.to] = rank(wire.required, wire.feedback).max(best[wire.to]);
    }
    plan.wires.iter().map(|wire| rank(wire.required, wire.feedback) == best[wire.to]).collect()
}
