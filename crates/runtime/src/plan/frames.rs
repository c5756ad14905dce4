//! Frames on the edges, as far as operators know them before the run.

use super::resolve::Wire;
use super::sizes::passes_on;
use crate::Error;
use crate::graph::Graph;

/// Rows, columns and planes of a frame, as in [`Info::shape`](crate::Info::shape).
type Shape = [u32; 3];

/// Shapes of the frames in a graph.
pub(crate) struct FrameShapes {
    /// Largest frame on each edge; `None` if it is not known or the edge carries no frames.
    pub edges: Vec<Option<Shape>>,
    /// Operators, by place, that cannot work on the frames that reach them, and why.
    pub refused: Vec<(usize, Error)>,
}

impl FrameShapes {
    /// Follows frames through a graph that may not have a plan; `None` if it cannot be planned.
    pub fn of(graph: &Graph) -> Option<Self> {
        let wires = super::wires(graph).ok()?;
        let order = super::order::order(graph, &wires).ok()?;
        Some(Self::find(graph, &wires, &order))
    }

    /// Follows frames from the sources on. `order` has the places of the graph, producers first; edges that
    /// close a cycle count only where they begin.
    pub fn find(graph: &Graph, wires: &[Wire], order: &[usize]) -> Self {
        let mut edges: Vec<Option<Shape>> = vec![None; wires.len()];
        let mut refused = Vec::new();
        let (mut into, mut out_of) = (vec![Vec::new(); order.len()], vec![Vec::new(); order.len()]);
        for (edge, wire) in wires.iter().enumerate() {
            into[wire.to].push(edge);
            out_of[wire.from].push(edge);
        }
        for &place in order {
            let incoming: Vec<usize> =
                into[place].iter().copied().filter(|&edge| edges[edge].is_some()).collect();
            let mut coming: Vec<Option<Shape>> = incoming.iter().map(|&edge| edges[edge]).collect();
            coming.dedup();
            if coming.is_empty() {
                coming.push(None);
            }
            let mut sent = None;
            for frame in coming {
                match graph.operators[place].operator.frame_behind(frame) {
                    Ok(behind) => sent = larger(sent, behind),
                    Err(error) => refused.push((place, error)),
                }
            }
            for &next in &out_of[place] {
                let output = &graph.operators[place].ports.outputs[wires[next].out];
                if output.sample_bytes.is_none() {
                    continue;
                }
                let passed = incoming.iter().filter(|&&edge| passes_on(graph, wires, edge, next));
                let passed = passed.fold(None, |most, &edge| larger(most, edges[edge]));
                edges[next] = sent.or(passed);
            }
        }
        FrameShapes { edges, refused }
    }
}

/// The frame with more samples.
fn larger(one: Option<Shape>, other: Option<Shape>) -> Option<Shape> {
    if samples(one) < samples(other) { other } else { one }
}

/// Number of samples of a frame; 0 for none.
pub(super) fn samples(shape: Option<Shape>) -> u64 {
    let used = shape.iter().flatten().copied().take_while(|&length| length > 0);
    let lengths = used.map(u64::from);
    if shape.is_some_and(|shape| shape[0] > 0) { lengths.fold(1, u64::saturating_mul) } else { 0 }
}

/// Formats a frame: "480 × 640".
pub(super) fn text(shape: Shape) -> String {
    let lengths: Vec<_> = shape.iter().take_while(|&&length| length > 0).map(ToString::to_string).collect();
    lengths.join(" × ")
}
