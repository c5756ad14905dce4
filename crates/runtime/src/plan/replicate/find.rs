//! Search for the stretches of a graph that can be replicated.

use super::{Ends, Recipe, Stretch};
use crate::base::on_error::OnError;
use crate::graph::Graph;
use crate::operator::lanes::LaneMemory;
use crate::plan::{EdgePlan, Wire};
use onbeat_trace::record::{Scheduler, WhenFull};

/// Finds the stretches of a graph for some workers under a scheduler, and returns them with notes for the
/// user. `wires` has places, `order` has the places down the graph, and `edges` comes from the plan for
/// one worker.
pub(crate) fn find(
    graph: &Graph,
    wires: &[Wire],
    order: &[usize],
    edges: &[EdgePlan],
    (workers, scheduler): (usize, Scheduler),
) -> (Recipe, Vec<String>) {
    let is_event = scheduler == Scheduler::Event;
    let candidates = Candidates::new(graph, wires, edges);
    let mut notes = Vec::new();
    let mut may: Vec<bool> = vec![false; graph.operators.len()];
    for &place in order.iter().filter(|&&place| !candidates.into[place].is_empty()) {
        match candidates.may(place) {
            Ok(is_stateless) => may[place] = is_stateless,
            Err(why) => notes.push(format!("{} is not replicated: {why}", graph.operators[place].name)),
        }
    }
    let mut stretches = Vec::new();
    let mut is_taken = vec![false; graph.operators.len()];
    let memory = |place: usize| graph.operators[place].operator.lane_memory();
    for &first in order.iter().filter(|&&place| may[place]) {
        if is_taken[first] {
            continue;
        }
        let mut operators = vec![first];
        is_taken[first] = true;
        let mut last = first;
        let mut memories = vec![memory(first)];
        while let [edge] = candidates.out_of[last][..]
            && candidates.is_plain(edge)
            && may[wires[edge].to]
            && !is_taken[wires[edge].to]
            && !is_mixed(&memories, memory(wires[edge].to))
        {
            last = wires[edge].to;
            is_taken[last] = true;
            operators.push(last);
            memories.push(memory(last));
        }
        let remembers = memories.contains(&LaneMemory::Finite);
        let ends = if remembers || is_event { Ends::Rest } else { candidates.ends(first, last) };
        let stretch = Stretch { operators, ends, in_blocks: remembers || is_event };
        // Light operators without state are not worth the way to another worker, and heavy ones are parts.
        if is_event && !remembers {
            continue;
        }
        notes.push(candidates.describe(&stretch, workers));
        stretches.push(stretch);
    }
    let edges = edges.iter().map(|edge| (edge.capacity, edge.quantum_bytes.map(|bytes| bytes as usize)));
    (Recipe { workers, edges: edges.collect(), stretches, is_tried: false }, notes)
}

/// Whether an operator that does not know the marks of lanes would meet one that needs them.
fn is_mixed(memories: &[LaneMemory], next: LaneMemory) -> bool {
    let has = |wanted| next == wanted || memories.contains(&wanted);
    has(LaneMemory::Unmarked) && has(LaneMemory::Finite)
}

/// Operators and edges of the graph that the search examines.
struct Candidates<'g> {
    graph: &'g Graph,
    wires: &'g [Wire],
    edges: &'g [EdgePlan],
    /// Incoming edges, by place.
    into: Vec<Vec<usize>>,
    /// Outgoing edges, by place.
    out_of: Vec<Vec<usize>>,
}

impl<'g> Candidates<'g> {
    fn new(graph: &'g Graph, wires: &'g [Wire], edges: &'g [EdgePlan]) -> Self {
        let (mut into, mut out_of) =
            (vec![Vec::new(); graph.operators.len()], vec![Vec::new(); graph.operators.len()]);
        for (edge, wire) in wires.iter().enumerate() {
            into[wire.to].push(edge);
            out_of[wire.from].push(edge);
        }
        Candidates { graph, wires, edges, into, out_of }
    }

    /// Whether an operator with inputs can be replicated.
    /// The error is the reason why an operator with inputs and outputs cannot.
    fn may(&self, place: usize) -> Result<bool, String> {
        let node = &self.graph.operators[place];
        if node.ports.inputs.is_empty() || node.ports.outputs.is_empty() {
            return Ok(false);
        }
        let is_finite = node.operator.lane_memory() == LaneMemory::Finite;
        if !is_finite && node.operator.replica().is_none() {
            return Err("its state goes on from message to message (it has no `replica`)".to_string());
        }
        let ([input], [output]) = (node.ports.inputs.as_slice(), node.ports.outputs.as_slice()) else {
            return Err("it has more than one input or output".to_string());
        };
        let [edge] = self.into[place][..] else {
            return Err("more than one edge leads to it".to_string());
        };
        let Some(&next) = self.out_of[place].first() else {
            return Err("no edge leads away from it".to_string());
        };
        if self.wires[edge].feedback || self.out_of[place].iter().any(|&next| self.wires[next].feedback) {
            return Err("an edge of it has messages from the start".to_string());
        }
        if !node.when.is_empty() {
            return Err("it has conditions of its own".to_string());
        }
        if node.on_error != OnError::Stop {
            return Err("a failure of it does not end the run, and would leave a gap".to_string());
        }
        if is_finite {
            return Ok(true);
        }
        let samples = |edge: usize, bytes: Option<usize>| {
            let quantum = self.edges[edge].quantum_bytes? as usize;
            Some(quantum / bytes?)
        };
        let least = self.out_of[place].iter().filter_map(|&next| samples(next, output.sample_bytes)).min();
        if let (Some(taken), Some(sent)) = (samples(edge, input.sample_bytes), least)
            && sent < taken
        {
            return Err(format!(
                "chunks of {taken} samples come in, and {sent} samples fit in what it sends: raise the quantum of {}",
                self.edges[next].from
            ));
        }
        Ok(true)
    }

    /// Whether the edge waits when it is full, and has no initial messages.
    fn is_plain(&self, edge: usize) -> bool {
        self.edges[edge].when_full == WhenFull::Wait && !self.wires[edge].feedback
    }

    fn ends(&self, first: usize, last: usize) -> Ends {
        let (Some(&begin), [end]) = (self.into[first].first(), &self.out_of[last][..]) else {
            return Ends::Rest;
        };
        let (source, sink) = (self.wires[begin].from, self.wires[*end].to);
        let alone = |place: usize| {
            let node = &self.graph.operators[place];
            let ports = node.ports.inputs.len() + node.ports.outputs.len();
            ports == 1 && node.when.is_empty() && node.on_error == OnError::Stop
        };
        let one = self.out_of[source].len() == 1 && self.into[sink].len() == 1;
        if !(one && alone(source) && alone(sink) && self.is_plain(begin) && self.is_plain(*end)) {
            return Ends::Rest;
        }
        let has_replicas = |place: usize| self.graph.operators[place].operator.replica().is_some();
        match has_replicas(source) && has_replicas(sink) {
            true => Ends::Copies { source, sink },
            false => Ends::Turns { source, sink },
        }
    }

    fn describe(&self, stretch: &Stretch, workers: usize) -> String {
        let names: Vec<&str> =
            stretch.lane().iter().map(|&place| self.graph.operators[place].name.as_str()).collect();
        let ends = match stretch.ends {
            Ends::Copies { .. } => "each worker has ends of its own: messages keep no order".to_string(),
            Ends::Turns { .. } => "source and sink go from worker to worker, in order".to_string(),
            Ends::Rest => {
                let first = &self.graph.operators[stretch.operators[0]].name;
                let blocks = if stretch.in_blocks {
                    ", in blocks that begin with the samples before them"
                } else {
                    ""
                };
                format!("`{first}.spread` and `{first}.gather` keep the order{blocks}")
            }
        };
        format!("replicated on {workers} workers: {}; {ends}", names.join(", "))
    }
}
