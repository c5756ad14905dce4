//! Replicated graph: one copy of each stretch per worker.

use super::{End, Ends, Recipe, Stretch};
use crate::base::on_error::OnError;
use crate::graph::limits::OnMiss;
use crate::graph::{EdgeDef, Graph, Node, PathDef, PortRef};
use crate::operator::inline::Role;
use crate::operator::lanes::LaneNeeds;
use crate::operator::link::Initial;
use crate::operator::link::SpreadSizes;
use crate::operator::message::Value;
use crate::operator::ports::{Described, Ports};
use crate::operator::when::When;
use crate::operator::{Operator, Step};
use crate::plan::{GraphError, Wire, wires};
use crate::{Context, Error};
use onbeat_trace::record::WhenFull;

/// The replicated graph, made of the given one.
pub(crate) struct Expanded {
    pub graph: Graph,
    /// Worker of each operator, by place in the new graph.
    pub worker: Vec<usize>,
    /// Stretch of each operator that has copies, and of its spread and gather, by place in the new graph.
    pub stretch: Vec<Option<usize>>,
    /// Origin of each operator, by place in the new graph.
    makes: Vec<Make>,
    /// Edge of the given graph that each new edge stands for. Its initial messages move along.
    origins: Vec<Option<usize>>,
}

/// Origin of an operator.
#[derive(Clone, Copy)]
enum Make {
    /// A replica that was made here.
    Made,
    /// The operator at this place of the given graph.
    Own(usize),
    /// One end of a stretch, which takes turns with the ends on other workers.
    Turn { place: usize, worker: usize },
}

/// Most messages on their way at once: a ring holds no more.
const RING_MOST: usize = 1 << 24;

/// Bytes of chunks before and after a lane that gets blocks, and fewest and most chunks. A block should be
/// long beside its history, and a lane should have the next block before it has finished one.
const LANE_BYTES: usize = 768 << 10;
const LANE_LEAST: usize = 16;
const LANE_MOST: usize = 256;

/// Placeholder for an operator that is still in the given graph.
#[derive(Default)]
struct Elsewhere {
    has_replica: bool,
}

impl Operator for Elsewhere {
    fn ports(&mut self, _: &mut Ports) {}
    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Done)
    }
    fn replica(&self) -> Option<Box<dyn Operator>> {
        self.has_replica.then(|| Box::new(Elsewhere { has_replica: true }) as _)
    }
}

/// Place and port of an end of edges: one, or one per worker.
type Points = Vec<(usize, usize)>;

struct Expansion<'g> {
    from: &'g Graph,
    made: Expanded,
    /// Begins of edges, by place and port in the given graph.
    outs: Vec<Vec<Points>>,
    /// Ends of edges, by place and port in the given graph.
    inputs: Vec<Vec<Points>>,
    /// Number of the stretch of each operator, by place; `None` for operators that are not replicated.
    stretch_of: Vec<Option<usize>>,
    /// Number of the stretch that is being made.
    stretch: Option<usize>,
}

/// Makes the replicated graph. Operators of `from` stay there until [`apply`]. `wires` has places.
pub(crate) fn expand(from: &Graph, wires: &[Wire], recipe: &Recipe) -> Expanded {
    let mut graph = Graph::new(&from.name);
    graph.paths = from
        .paths
        .iter()
        .map(|PathDef { from, to, limits }| PathDef { from: from.clone(), to: to.clone(), limits: *limits })
        .collect();
    let count = from.operators.len();
    let mut builder = Expansion {
        from,
        made: Expanded {
            graph,
            worker: Vec::new(),
            stretch: Vec::new(),
            makes: Vec::new(),
            origins: Vec::new(),
        },
        outs: vec![Vec::new(); count],
        inputs: vec![Vec::new(); count],
        stretch_of: vec![None; count],
        stretch: None,
    };
    for (number, stretch) in recipe.stretches.iter().enumerate() {
        for place in stretch.lane() {
            builder.stretch_of[place] = Some(number);
        }
    }
    for place in (0..count).filter(|&place| builder.stretch_of[place].is_none()).collect::<Vec<_>>() {
        let has_replica = from.operators[place].operator.replica().is_some();
        let here = builder.copy(place, Box::new(Elsewhere { has_replica }), Make::Own(place), 0);
        builder.stand_for(place, &[here]);
    }
    for (number, stretch) in recipe.stretches.iter().enumerate() {
        builder.stretch = Some(number);
        builder.stretch(stretch, wires, recipe);
    }
    for (edge, wire) in wires.iter().enumerate() {
        builder.edge(edge, wire, recipe);
    }
    builder.made
}

impl Expansion<'_> {
    fn push(&mut self, node: Node, make: Make, worker: usize) -> usize {
        let Expanded { graph, worker: workers, stretch, makes, .. } = &mut self.made;
        graph.operators.push(node);
        stretch.push(self.stretch);
        makes.push(make);
        workers.push(worker);
        workers.len() - 1
    }

    /// Adds a node like that of the given graph, with another operator and without conditions.
    fn copy(&mut self, place: usize, mut operator: Box<dyn Operator>, make: Make, worker: usize) -> usize {
        let Node { name, kind, role, ports, deadline_ns, budget_ns, on_miss, cost_ns, on_error, .. } =
            &self.from.operators[place];
        let node = Node {
            name: name.clone(),
            kind: kind.clone(),
            role: if matches!(make, Make::Own(_)) { *role } else { Role::of(&mut *operator) },
            operator,
            ports: ports.clone(),
            deadline_ns: *deadline_ns,
            budget_ns: *budget_ns,
            on_miss: *on_miss,
            cost_ns: *cost_ns,
            when: Vec::new(),
            on_error: *on_error,
        };
        self.push(node, make, worker)
    }

    /// Makes `copies` the ends of all edges of the operator at `place`.
    fn stand_for(&mut self, place: usize, copies: &[usize]) {
        let Described { inputs, outputs } = &self.from.operators[place].ports;
        let points = |port: usize| copies.iter().map(|&copy| (copy, port)).collect();
        self.inputs[place] = (0..inputs.len()).map(points).collect();
        self.outs[place] = (0..outputs.len()).map(points).collect();
    }

    fn stretch(&mut self, stretch: &Stretch, wires: &[Wire], recipe: &Recipe) {
        let ends = match stretch.ends {
            Ends::Turns { source, sink } => [Some(source), Some(sink)],
            _ => [None, None],
        };
        let mut needs = LaneNeeds::default();
        for place in stretch.lane() {
            let slot = needs.add();
            let replica = |place: usize| match stretch.in_blocks {
                true => self.from.operators[place].operator.lane_replica(slot.clone()),
                false => self.from.operators[place].operator.replica(),
            };
            let copies: Vec<usize> = (0..recipe.workers)
                .map(|worker| match replica(place) {
                    Some(mut replica) if !ends.contains(&Some(place)) => {
                        // This call numbers its ports.
                        replica.ports(&mut Ports::describe(&mut Described::default()));
                        self.copy(place, replica, Make::Made, worker)
                    }
                    _ => self.copy(place, Box::<Elsewhere>::default(), Make::Turn { place, worker }, worker),
                })
                .collect();
            self.stand_for(place, &copies);
        }
        if stretch.ends == Ends::Rest {
            self.join(stretch, wires, recipe, stretch.in_blocks.then_some(needs));
        }
    }

    /// Adds a spread before the stretch and a gather after it.
    fn join(&mut self, stretch: &Stretch, wires: &[Wire], recipe: &Recipe, needs: Option<LaneNeeds>) {
        let (Some(&first), Some(&last)) = (stretch.operators.first(), stretch.operators.last()) else {
            return;
        };
        let make = self.from.operators[last].ports.outputs[0].spread;
        let begin = wires.iter().position(|wire| wire.to == first);
        let end = wires.iter().position(|wire| wire.from == last);
        let (Some(begin), Some(end)) = (begin, end) else { return };
        let from = &wires[begin];
        let spread = self.from.operators[from.from].ports.outputs[from.out].spread;
        // Messages in a lane: those in its queues, and one in each of its operators.
        let inside = stretch.operators.iter().map(|&place| wires.iter().position(|wire| wire.to == place));
        let queues = inside.flatten().chain([end]).map(|edge| recipe.edges[edge].0);
        // The queues at the ends have twice the capacity: for messages of a lane that is ahead, and for
        // messages that wait for their turn.
        let mut ends = [recipe.edges[begin], recipe.edges[end]];
        let lane = queues.chain([ends[0].0, ends[1].0]).fold(stretch.operators.len(), usize::saturating_add);
        let had = ends[0].0;
        for (capacity, quantum) in &mut ends {
            *capacity = capacity.saturating_mul(2).min(RING_MOST);
            if let (Some(_), Some(quantum)) = (&needs, *quantum) {
                *capacity = (*capacity).max((LANE_BYTES / quantum.max(1)).clamp(LANE_LEAST, LANE_MOST));
            }
        }
        let capacity = ends[0].0;
        let spare = match recipe.rests() {
            // A step of the spread needs room for one more message. Workers have no other lanes.
            1 => 1,
            // Workers have lanes of other stretches too: messages that wait before one lane delay those of
            // another. So a lane gets half of the edge's capacity, and at least two messages: the second is
            // ready when the worker has processed the first.
            _ => capacity.saturating_sub((had / 2).max(2)).max(1),
        };
        let most = lane.saturating_mul(recipe.workers).saturating_add(1).min(RING_MOST);
        let (mut order, lanes) = (
            None,
            SpreadSizes { is_tried: recipe.is_tried, workers: recipe.workers, most, capacity, spare, needs },
        );
        let (head, _) = spread(&lanes, &mut order);
        let (_, tail) = make(&lanes, &mut order);
        let mut add = |kind: &str, mut operator: Box<dyn Operator>| {
            let mut ports = Described::default();
            operator.ports(&mut Ports::describe(&mut ports));
            let node = Node {
                name: format!("{}.{kind}", self.from.operators[first].name),
                kind: kind.to_string(),
                role: None,
                operator,
                ports,
                deadline_ns: None,
                budget_ns: None,
                on_miss: OnMiss::default(),
                cost_ns: Some(0),
                when: Vec::new(),
                on_error: OnError::Stop,
            };
            self.push(node, Make::Made, 0)
        };
        let (head, tail) = (add("spread", head), add("gather", tail));
        self.connect_lanes(stretch, (head, tail), ends, had);
        self.inputs[first][0] = vec![(head, 0)];
        self.outs[last][0] = vec![(tail, 0)];
    }

    /// Connects a spread and a gather to all copies. `had` is the capacity of the edge into the stretch.
    fn connect_lanes(
        &mut self,
        stretch: &Stretch,
        (head, tail): (usize, usize),
        ends: [(usize, Option<usize>); 2],
        had: usize,
    ) {
        let (Some(&first), Some(&last)) = (stretch.operators.first(), stretch.operators.last()) else {
            return;
        };
        let (takers, senders) = (self.inputs[first][0].clone(), self.outs[last][0].clone());
        for (worker, taker) in takers.into_iter().enumerate() {
            // The first lane works at once on what it gets. A whole block before it would be in the way of
            // the next one for others.
            let is_next = stretch.in_blocks && worker == 0;
            let edge = if is_next { (had.max(2), ends[0].1) } else { ends[0] };
            self.connect((head, worker), taker, edge, WhenFull::Wait, None);
        }
        for (worker, sender) in senders.into_iter().enumerate() {
            if stretch.in_blocks && worker > 0 {
                // A lane that is ahead goes on when it can do several chunks, not after each that is taken.
                self.made.graph.operators[sender.0].when.push(When::room("", ends[1].0.div_ceil(4)));
            }
            self.connect(sender, (tail, worker), ends[1], WhenFull::Wait, None);
        }
    }

    fn edge(&mut self, edge: usize, wire: &Wire, recipe: &Recipe) {
        let (froms, tos) = (self.outs[wire.from][wire.out].clone(), self.inputs[wire.to][wire.input].clone());
        let when_full = self.from.edges[edge].when_full;
        debug_assert_eq!(froms.len(), tos.len(), "both ends are in one stretch, or none is");
        for (from, to) in froms.into_iter().zip(tos) {
            self.connect(from, to, recipe.edges[edge], when_full, Some(edge));
        }
    }

    fn connect(
        &mut self,
        from: (usize, usize),
        to: (usize, usize),
        (capacity, quantum): (usize, Option<usize>),
        when_full: WhenFull,
        origin: Option<usize>,
    ) {
        // Initial messages move here in `apply`. Until then only their number counts.
        let initial = origin.map_or(0, |edge| self.from.edges[edge].initial.len());
        self.made.graph.edges.push(EdgeDef {
            from: PortRef::Number(from.0, from.1),
            to: PortRef::Number(to.0, to.1),
            capacity: Some(capacity),
            quantum,
            when_full,
            initial: (0..initial).map(|_| Initial::Value(Value::Int(0))).collect(),
        });
        self.made.origins.push(origin);
    }
}

/// Makes the planned graph and moves the operators of `graph` into it.
pub(crate) fn apply(mut graph: Graph, recipe: &Recipe) -> Result<Graph, GraphError> {
    let wires = wires(&graph)?;
    let Expanded { graph: mut made, makes, origins, .. } = expand(&graph, &wires, recipe);
    made.config = std::mem::take(&mut graph.config);
    made.gates = std::mem::take(&mut graph.gates);
    made.events = std::mem::take(&mut graph.events);
    for (edge, origin) in made.edges.iter_mut().zip(origins) {
        if let Some(origin) = origin {
            edge.initial = std::mem::take(&mut graph.edges[origin].initial);
        }
    }
    let mut given: Vec<Option<Node>> = graph.operators.into_iter().map(Some).collect();
    let mut turns: Vec<Vec<Option<End>>> = given.iter().map(|_| Vec::new()).collect();
    for (node, make) in made.operators.iter_mut().zip(makes) {
        match make {
            Make::Made => {}
            Make::Own(place) => {
                if let Some(own) = given[place].take() {
                    (node.operator, node.when) = (own.operator, own.when);
                }
            }
            Make::Turn { place, worker } => {
                if let Some(own) = given[place].take() {
                    turns[place] = End::all(own.operator, recipe.workers).into_iter().map(Some).collect();
                }
                if let Some(end) = turns[place].get_mut(worker).and_then(Option::take) {
                    node.operator = Box::new(end);
                }
            }
        }
    }
    Ok(made)
}
