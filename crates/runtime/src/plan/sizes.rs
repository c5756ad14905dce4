//! How large chunks may be on each edge, and how many of them there must be.

use super::resolve::Wire;
use super::{GraphError, StorePlan};
use crate::graph::Graph;
use crate::options::Options;
use onbeat_trace::record::Obtained;
use std::collections::{BTreeMap, BTreeSet};

/// Head and padding of a chunk, for the sum of all stores.
const CHUNK_OVERHEAD: usize = 192;

pub(super) struct Size {
    pub capacity: usize,
    pub quantum: usize,
}

pub(super) struct Sizes {
    /// By edge.
    pub edges: Vec<Size>,
    pub stores: Vec<StorePlan>,
    pub obtained: Vec<Obtained>,
}

impl Sizes {
    pub fn new(
        graph: &Graph,
        wires: &[Wire],
        order: &[usize],
        options: &Options,
    ) -> Result<Self, GraphError> {
        let mut edges = asked(graph, wires, options)?;
        let obtained = fit_to_those_who_pass_on(graph, wires, order, &mut edges);
        let stores = stores(graph, wires, &mut edges, options)?;
        Ok(Sizes { edges, stores, obtained })
    }
}

fn edge_name(graph: &Graph, wire: &Wire) -> String {
    let (from, to) = (&graph.operators[wire.from], &graph.operators[wire.to]);
    format!(
        "{}.{} → {}.{}",
        from.name, from.ports.outputs[wire.out].name, to.name, to.ports.inputs[wire.input].name
    )
}

fn asked(graph: &Graph, wires: &[Wire], options: &Options) -> Result<Vec<Size>, GraphError> {
    let mut sizes = Vec::with_capacity(wires.len());
    for (wire, edge) in wires.iter().zip(&graph.edges) {
        let name = || edge_name(graph, wire);
        let output = &graph.operators[wire.from].ports.outputs[wire.out];
        let capacity = edge.capacity.unwrap_or(options.capacity);
        if !(1..=1 << 24).contains(&capacity) {
            return Err(GraphError::Capacity { edge: name(), capacity });
        }
        let quantum = edge.quantum.unwrap_or(options.quantum);
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

/// An operator that may pass a chunk on gets none that is larger than what it may send: the quantum of an edge is a
/// hard contract.
fn fit_to_those_who_pass_on(
    graph: &Graph,
    wires: &[Wire],
    order: &[usize],
    edges: &mut [Size],
) -> Vec<Obtained> {
    let mut out_of: Vec<Vec<usize>> = vec![Vec::new(); graph.operators.len()];
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); graph.operators.len()];
    for (edge, wire) in wires.iter().enumerate() {
        out_of[wire.from].push(edge);
        into[wire.to].push(edge);
    }
    let mut obtained = Vec::new();
    // From the end of the graph to its begin, so that one pass is enough.
    for &place in order.iter().rev() {
        for &edge in &into[place] {
            let next = out_of[place].iter().filter(|&&next| passes_on(graph, wires, edge, next));
            let Some(&next) = next.min_by_key(|&&next| edges[next].quantum) else { continue };
            let (asked, limit) = (edges[edge].quantum, edges[next].quantum);
            if asked <= limit {
                continue;
            }
            edges[edge].quantum = limit;
            if graph.edges[edge].quantum.is_some() {
                obtained.push(Obtained {
                    what: format!("quantum of {}", edge_name(graph, &wires[edge])),
                    asked: format!("{asked} bytes"),
                    obtained: format!("{limit} bytes"),
                    reason: Some(format!(
                        "{} may pass its chunks on to {}",
                        graph.operators[place].name,
                        edge_name(graph, &wires[next])
                    )),
                });
            }
        }
    }
    obtained
}

/// Whether a chunk that came by edge `edge` may leave by edge `next`, as itself.
fn passes_on(graph: &Graph, wires: &[Wire], edge: usize, next: usize) -> bool {
    let ports = &graph.operators[wires[edge].to].ports;
    let (input, output) = (&ports.inputs[wires[edge].input], &ports.outputs[wires[next].out]);
    input.sample_bytes.is_some() && input.message == output.message && !output.fresh
}

/// One store per quantum, with as many chunks as can be in queues and hands at once.
fn stores(
    graph: &Graph,
    wires: &[Wire],
    edges: &mut [Size],
    options: &Options,
) -> Result<Vec<StorePlan>, GraphError> {
    let mut out_of: Vec<Vec<usize>> = vec![Vec::new(); graph.operators.len()];
    for (edge, wire) in wires.iter().enumerate() {
        out_of[wire.from].push(edge);
    }
    // Chunks are made for a port: the smallest quantum of its edges.
    let mut ports: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (edge, wire) in wires.iter().enumerate() {
        if graph.operators[wire.from].ports.outputs[wire.out].sample_bytes.is_some() {
            let quantum = ports.entry((wire.from, wire.out)).or_insert(usize::MAX);
            *quantum = edges[edge].quantum.min(*quantum);
        }
    }
    // By quantum: the edges its chunks may lie in, and the ports that make them.
    let mut classes: BTreeMap<usize, (BTreeSet<usize>, usize)> = BTreeMap::new();
    for (&(from, out), &quantum) in &ports {
        let (reached, makers) = classes.entry(quantum).or_default();
        *makers += 1;
        let mut open: Vec<usize> =
            out_of[from].iter().copied().filter(|&edge| wires[edge].out == out).collect();
        while let Some(edge) = open.pop() {
            if reached.insert(edge) {
                let next = &out_of[wires[edge].to];
                open.extend(next.iter().copied().filter(|&next| passes_on(graph, wires, edge, next)));
            }
        }
    }
    let mut stores = Vec::new();
    for (quantum, (reached, makers)) in classes {
        let queued: usize = reached.iter().map(|&edge| edges[edge].capacity).sum();
        // Each consumer has what it holds, one in hand, and one for a copy.
        let in_hand: usize = reached
            .iter()
            .map(|&edge| {
                graph.operators[wires[edge].to].ports.inputs[wires[edge].input].holds.saturating_add(2)
            })
            .sum();
        stores.push(StorePlan {
            worker: 0,
            quantum_bytes: quantum as u32,
            chunks: queued.saturating_add(in_hand).saturating_add(2 * makers),
        });
    }
    let bytes =
        |store: &StorePlan| store.chunks.saturating_mul(store.quantum_bytes as usize + CHUNK_OVERHEAD);
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
