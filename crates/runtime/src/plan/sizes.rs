//! Size of the chunks on each edge, and the number of chunks in the stores.

use super::frames;
use super::resolve::Wire;
use super::{GraphError, StorePlan};
use crate::base::options::Options;
use crate::graph::{EdgeDef, Graph, Node};
use crate::operator::chunk::Info;
use crate::operator::inline::Role;
use crate::operator::link::Initial;
use crate::operator::message::Value;
use onbeat_queue::Seed;
use onbeat_trace::record::Obtained;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Size {
    pub capacity: usize,
    pub quantum: usize,
}

pub(super) struct Sizes {
    /// Size of each edge.
    pub edges: Vec<Size>,
    pub stores: Vec<StorePlan>,
    pub obtained: Vec<Obtained>,
}

impl Sizes {
    pub fn new(
        graph: &Graph,
        wires: &[Wire],
        order: &[usize],
        part_of: &[usize],
        frames: &[Option<[u32; 3]>],
        options: &Options,
    ) -> Result<Self, GraphError> {
        let mut edges = asked(graph, wires, frames, options)?;
        let obtained = limit_to_outputs(graph, wires, order, &mut edges);
        let mut part_at = vec![0; order.len()];
        for (number, &place) in order.iter().enumerate() {
            part_at[place] = part_of[number];
        }
        let stores = stores(graph, wires, &edges, &part_at, options)?;
        Ok(Sizes { edges, stores, obtained })
    }

    /// Checks that initial messages have the type of their edge, and fit.
    pub fn check_initial(&self, graph: &Graph, wires: &[Wire]) -> Result<(), GraphError> {
        check_initial(graph, wires, &self.edges)
    }
}

fn edge_name(graph: &Graph, wire: &Wire) -> String {
    let (from, to) = (&graph.operators[wire.from], &graph.operators[wire.to]);
    format!(
        "{}.{} → {}.{}",
        from.name, from.ports.outputs[wire.out].name, to.name, to.ports.inputs[wire.input].name
    )
}

/// Longest time of a chunk of a source that keeps time, if its edge names no quantum. In 16 KiB of samples of
/// a slow sensor, the first one would be minutes old.
const LONGEST_NS: u64 = 100_000_000;

/// Sizes by the edge's own settings. An edge without a quantum gets that of the run, or less behind a slow
/// source, or room for a frame, for its initial samples, and for the chunks of another edge of its output
/// that has a quantum: an output makes chunks of one size.
fn asked(
    graph: &Graph,
    wires: &[Wire],
    frames: &[Option<[u32; 3]>],
    options: &Options,
) -> Result<Vec<Size>, GraphError> {
    let mut most_of: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (wire, edge) in wires.iter().zip(&graph.edges) {
        let most = most_of.entry((wire.from, wire.out)).or_default();
        *most = edge.quantum.unwrap_or_else(|| initial_bytes(graph, wire, edge)).max(*most);
    }
    // In a cycle the samples of its initial chunk go round; shorter chunks would be too many for its queues.
    let has_cycle = wires.iter().zip(&graph.edges).any(|(wire, edge)| initial_bytes(graph, wire, edge) > 0);
    let mut sizes = Vec::with_capacity(wires.len());
    for ((wire, edge), frame) in wires.iter().zip(&graph.edges).zip(frames) {
        let name = || edge_name(graph, wire);
        let output = &graph.operators[wire.from].ports.outputs[wire.out];
        // Chunks of the usual length that are in the cycle at once.
        let in_cycle = initial_bytes(graph, wire, edge) / options.quantum.max(1);
        let capacity = edge.capacity.unwrap_or(options.capacity.saturating_add(in_cycle));
        if !(1..=1 << 24).contains(&capacity) {
            return Err(GraphError::Capacity { edge: name(), capacity });
        }
        let frame = frames::samples(*frame).saturating_mul(output.sample_bytes.unwrap_or(0) as u64);
        let frame = usize::try_from(frame).unwrap_or(usize::MAX);
        let usual = || {
            let most = if has_cycle { None } else { longest(&graph.operators[wire.from], options) };
            most.map_or(options.quantum, |most| options.quantum.min(most))
        };
        let quantum = edge.quantum.unwrap_or_else(|| usual().max(frame).max(most_of[&(wire.from, wire.out)]));
        match output.sample_bytes {
            None if edge.quantum.is_some() => {
                return Err(GraphError::NoQuantum { edge: name(), message: output.label.clone() });
            }
            None => {}
            Some(least) if quantum < least => {
                let message = output.label.clone();
                return Err(GraphError::QuantumTooSmall { edge: name(), message, quantum, least });
            }
            Some(_) if quantum > options.store_bytes.min(1 << 31) => {
                let limit = options.store_bytes.min(1 << 31);
                return Err(GraphError::QuantumTooLarge { edge: name(), quantum, limit });
            }
            Some(_) => {}
        }
        sizes.push(Size { capacity, quantum });
    }
    Ok(sizes)
}

/// Most bytes of the chunks of a source that keeps time.
fn longest(node: &Node, options: &Options) -> Option<usize> {
    let is_source = node.ports.inputs.iter().all(|input| !input.required);
    node.operator.rate(options.pace).filter(|_| is_source)?.bytes_within(LONGEST_NS)
}

/// Bytes of the largest initial message of an edge that is a number of samples.
fn initial_bytes(graph: &Graph, wire: &Wire, edge: &EdgeDef) -> usize {
    let bytes = graph.operators[wire.from].ports.outputs[wire.out].sample_bytes.unwrap_or(0);
    let samples = |message: &Initial| match message {
        Initial::Value(Value::Int(samples)) => usize::try_from(*samples).unwrap_or(0),
        _ => 0,
    };
    edge.initial.iter().map(samples).max().unwrap_or(0).saturating_mul(bytes)
}

/// Checks that initial messages have the type of their edge, and fit.
fn check_initial(graph: &Graph, wires: &[Wire], sizes: &[Size]) -> Result<(), GraphError> {
    for ((wire, edge), size) in wires.iter().zip(&graph.edges).zip(sizes) {
        let output = &graph.operators[wire.from].ports.outputs[wire.out];
        let name = || edge_name(graph, wire);
        let wrong =
            |found: String| GraphError::Initial { edge: name(), message: output.label.clone(), found };
        for message in &edge.initial {
            match message {
                Initial::Typed(message) if (**message).type_id() != output.message => {
                    return Err(wrong("of another type".to_string()));
                }
                Initial::Value(value) if !(output.takes_value)(value) => {
                    let what = if output.sample_bytes.is_some() { ": say how many samples of 0" } else { "" };
                    return Err(wrong(format!("{value}{what}")));
                }
                Initial::Value(Value::Int(samples)) if output.sample_bytes.is_some() => {
                    let of_output = wires
                        .iter()
                        .zip(sizes)
                        .filter(|(other, _)| (other.from, other.out) == (wire.from, wire.out));
                    let quantum = of_output.map(|(_, size)| size.quantum).min().unwrap_or(size.quantum);
                    let each = output.sample_bytes.unwrap_or(1);
                    if usize::try_from(*samples).is_ok_and(|samples| samples > quantum / each) {
                        return Err(wrong(format!(
                            "{samples} samples, and the chunks of its output hold {}, by the smallest `quantum` of the \
                             output's edges: {} bytes are needed",
                            quantum / each,
                            samples.saturating_mul(each as i64)
                        )));
                    }
                }
                _ => {}
            }
        }
        if edge.initial.len() > size.capacity {
            let (count, capacity) = (edge.initial.len(), size.capacity);
            return Err(GraphError::InitialCount { edge: name(), count, capacity });
        }
    }
    Ok(())
}

/// Lowers the quantum of an edge to that of the edges on which its consumer may pass chunks on.
/// The quantum of an edge is a hard limit.
fn limit_to_outputs(graph: &Graph, wires: &[Wire], order: &[usize], edges: &mut [Size]) -> Vec<Obtained> {
    let mut out_of: Vec<Vec<usize>> = vec![Vec::new(); graph.operators.len()];
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); graph.operators.len()];
    for (edge, wire) in wires.iter().enumerate() {
        out_of[wire.from].push(edge);
        into[wire.to].push(edge);
    }
    let requested: Vec<usize> = edges.iter().map(|edge| edge.quantum).collect();
    let mut limited_by = vec![None; edges.len()];
    // From the end of the graph to its begin: one pass is enough without cycles.
    loop {
        let mut changed = false;
        for &place in order.iter().rev() {
            for &edge in &into[place] {
                let next = out_of[place].iter().filter(|&&next| passes_on(graph, wires, edge, next));
                let Some(&next) = next.min_by_key(|&&next| edges[next].quantum) else { continue };
                if edges[edge].quantum > edges[next].quantum {
                    edges[edge].quantum = edges[next].quantum;
                    limited_by[edge] = Some((place, next));
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let named = |&(edge, _): &(usize, &Option<(usize, usize)>)| graph.edges[edge].quantum.is_some();
    let obtained = |(edge, limited_by): (usize, &Option<(usize, usize)>)| {
        let (place, next) = (*limited_by)?;
        Some(Obtained {
            what: format!("quantum of {}", edge_name(graph, &wires[edge])),
            asked: format!("{} bytes", requested[edge]),
            obtained: format!("{} bytes", edges[edge].quantum),
            reason: Some(format!(
                "{} may pass its chunks on to {}",
                graph.operators[place].name,
                edge_name(graph, &wires[next])
            )),
        })
    };
    limited_by.iter().enumerate().filter(named).filter_map(obtained).collect()
}

/// Whether the operator may send a chunk from edge `edge` on by edge `next`.
pub(super) fn passes_on(graph: &Graph, wires: &[Wire], edge: usize, next: usize) -> bool {
    let ports = &graph.operators[wires[edge].to].ports;
    let (input, output) = (&ports.inputs[wires[edge].input], &ports.outputs[wires[next].out]);
    input.sample_bytes.is_some() && input.message == output.message && !output.fresh
}

/// Whether chunks from the store that serves edge `edge` may leave by edge `next`. This includes neighbours
/// with one step that write other chunks: they exchange the chunk that they hold for the one that they write.
fn goes_on(graph: &Graph, wires: &[Wire], edge: usize, next: usize) -> bool {
    passes_on(graph, wires, edge, next) || graph.operators[wires[edge].to].role.is_some_and(Role::is_inside)
}

/// Stores, one per part and quantum. Each has a chunk for every place in queues and operators.
fn stores(
    graph: &Graph,
    wires: &[Wire],
    edges: &[Size],
    part_at: &[usize],
    options: &Options,
) -> Result<Vec<StorePlan>, GraphError> {
    let mut out_of: Vec<Vec<usize>> = vec![Vec::new(); graph.operators.len()];
    for (edge, wire) in wires.iter().enumerate() {
        out_of[wire.from].push(edge);
    }
    // Chunks are made per port, with the smallest quantum of its edges.
    let mut ports: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (edge, wire) in wires.iter().enumerate() {
        if graph.operators[wire.from].ports.outputs[wire.out].sample_bytes.is_some() {
            let quantum = ports.entry((wire.from, wire.out)).or_insert(usize::MAX);
            *quantum = edges[edge].quantum.min(*quantum);
        }
    }
    // By part and quantum: edges that may hold its chunks, and ports that make them.
    let mut classes: BTreeMap<(usize, usize), SizeClass> = BTreeMap::new();
    for (&(from, out), &quantum) in &ports {
        let maker = part_at[from];
        classes.entry((maker, quantum)).or_default().makers += 1;
        let first = out_of[from].iter().filter(|&&edge| wires[edge].out == out);
        // Edges to visit, each with the part that made the chunks on it.
        let mut open: Vec<(usize, usize)> = first.map(|&edge| (maker, edge)).collect();
        while let Some((maker, edge)) = open.pop() {
            if !classes.entry((maker, quantum)).or_default().reached.insert(edge) {
                continue;
            }
            let to = wires[edge].to;
            let on = out_of[to].iter().copied().filter(|&next| goes_on(graph, wires, edge, next));
            open.extend(on.clone().map(|next| (maker, next)));
            // An operator of another part that changes a shared chunk makes a copy in its own part, and
            // passes that on.
            let copier = part_at[to];
            if copier != maker && classes.entry((copier, quantum)).or_default().copies.insert(edge) {
                open.extend(on.map(|next| (copier, next)));
            }
        }
    }
    // Chunks of a consumer: those that it holds, the one that it works on, and one for a copy.
    let in_hand =
        |edge: usize| graph.operators[wires[edge].to].ports.inputs[wires[edge].input].holds.saturating_add(2);
    let is_shared = |edge: &usize| graph.operators[wires[*edge].to].ports.inputs[wires[*edge].input].shared;
    let mut stores = Vec::new();
    for ((part, quantum), SizeClass { reached, copies, makers }) in classes {
        let queued: usize = reached.iter().map(|&edge| edges[edge].capacity).sum();
        let hands: BTreeSet<usize> = reached.union(&copies).copied().collect();
        let held: usize = hands.into_iter().map(in_hand).fold(0, usize::saturating_add);
        stores.push(StorePlan {
            part,
            quantum_bytes: quantum as u32,
            is_shared: reached.iter().chain(&copies).any(is_shared),
            chunks: queued.saturating_add(held).saturating_add(2 * makers),
        });
    }
    let bytes = |store: &StorePlan| {
        store.chunks.saturating_mul(Seed::<Info>::bytes_per_block(store.quantum_bytes as usize))
    };
    let needed = stores.iter().map(bytes).fold(0, usize::saturating_add);
    if needed > options.store_bytes {
        let detail: Vec<_> =
            stores.iter().map(|store| format!("{} of {} bytes", store.chunks, store.quantum_bytes)).collect();
        return Err(GraphError::StoreTooSmall {
            needed,
            detail: detail.join(", "),
            limit: options.store_bytes,
        });
    }
    Ok(stores)
}

/// Chunks of one size that one part makes.
#[derive(Default)]
struct SizeClass {
    /// Edges that may hold them.
    reached: BTreeSet<usize>,
    /// Edges with chunks of other parts that may be copied here.
    copies: BTreeSet<usize>,
    /// Number of ports that make them.
    makers: usize,
}
