//! Queues of a plan's edges: made, told which operators are at their ends, and given to the ports.

use super::{EdgePlace, Place};
use crate::engine::team::Team;
use crate::graph::Node;
use crate::operator::context::NONE;
use crate::operator::link::{Alone, EdgePlacement, EdgeSpec, Probe};
use crate::operator::ports::{self, Described, Merge, Ports};
use crate::plan::replicate::End;
use crate::plan::{self, Plan, when};
use onbeat_queue::Owner;
use onbeat_trace::record::WhenFull;
use std::sync::Arc;

/// Specification of each edge's two ends, and the probes of the edges.
pub(super) type ConnectedEdges = (Vec<(EdgeSpec, EdgeSpec)>, Vec<Arc<dyn Probe>>);

/// Makes the queues and gives their ends to the ports.
pub(super) fn connect(
    plan: &Plan,
    nodes: &mut [Node],
    operators: &[Place],
    edges: &[EdgePlace],
    owners: &[Owner],
    team: &Team,
) -> ConnectedEdges {
    let mut edges_into = vec![0u32; nodes.len()];
    let mut required_into = vec![0u32; nodes.len()];
    for wire in &plan.wires {
        edges_into[wire.to] += 1;
        required_into[wire.to] += u32::from(wire.required);
    }
    let mut out_ends: Vec<Vec<Vec<_>>> = nodes.iter().map(|node| no_ends(node.ports.outputs.len())).collect();
    let mut in_ends: Vec<Vec<Vec<_>>> = nodes.iter().map(|node| no_ends(node.ports.inputs.len())).collect();
    let (mut specs, mut probes) = (Vec::with_capacity(edges.len()), Vec::with_capacity(edges.len()));
    for ((wire, edge), place) in plan.wires.iter().zip(&plan.edges).zip(edges) {
        let port = &nodes[wire.to].ports.inputs[wire.input];
        let local = place.items.is_none();
        let out = EdgeSpec {
            number: place.out.1,
            from: operators[wire.from].1,
            to: if local { operators[wire.to].1 } else { NONE },
            capacity: edge.capacity as u32,
            waits_at: waits_at(edge, when::room(&nodes[wire.from], wire.out)),
            when_full: edge.when_full,
            quantum: edge.quantum_bytes.unwrap_or(u32::MAX),
            counted: wire.required
                && required_into[wire.to] > 1
                && port.merge != Some(Merge::Arrival)
                && !when::is_about(&nodes[wire.to], wire.input),
            feedback: wire.feedback,
        };
        let input = EdgeSpec {
            number: place.input.1,
            from: if local { out.from } else { NONE },
            to: operators[wire.to].1,
            ..out
        };
        let (from, to) = (place.out.0, place.input.0);
        let ways = match place.items {
            None => EdgePlacement::Local(&owners[from], out),
            Some((room, data)) => EdgePlacement::Cross([
                (&owners[from], out, team.bell(to, from, room)),
                (&owners[to], input, team.bell(from, to, data)),
            ]),
        };
        let ends = (nodes[wire.from].ports.outputs[wire.out].make)(ways);
        out_ends[wire.from][wire.out].push(ends.out);
        in_ends[wire.to][wire.input].push(ends.input);
        probes.push(ends.probe);
        specs.push((out, input));
    }
    for (number, node) in nodes.iter_mut().enumerate() {
        let mut bound = Vec::new();
        let Described { inputs, outputs } = &node.ports;
        for (port, ends) in std::mem::take(&mut out_ends[number]).into_iter().enumerate().filter(has_ends) {
            bound.push(ports::BoundEnd { is_input: false, port, end: (outputs[port].link)(ends) });
        }
        for (port, ends) in std::mem::take(&mut in_ends[number]).into_iter().enumerate().filter(has_ends) {
            let alone = match edges_into[number] {
                1 if End::of(&mut *node.operator).is_some() => Alone::Turns,
                1 => Alone::Yes,
                _ => Alone::No,
            };
            let end = (inputs[port].link)(ends, inputs[port].merge, alone);
            bound.push(ports::BoundEnd { is_input: true, port, end });
        }
        node.operator.ports(&mut Ports::bind(&mut bound));
    }
    (specs, probes)
}

/// Number of messages on an edge at which its producer waits, if it wants room for `room` more.
fn waits_at(edge: &plan::EdgePlan, room: usize) -> u32 {
    match (edge.when_full, room) {
        (WhenFull::Wait, 1..) => (edge.capacity + 1 - room) as u32,
        _ => u32::MAX,
    }
}

fn no_ends<T>(ports: usize) -> Vec<Vec<T>> {
    (0..ports).map(|_| Vec::new()).collect()
}

fn has_ends<T>(port: &(usize, Vec<T>)) -> bool {
    !port.1.is_empty()
}
