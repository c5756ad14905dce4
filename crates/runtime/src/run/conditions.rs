//! From the conditions that a graph states to those that workers check.

use super::bind::Place;
use crate::engine::team::{InboxEvent, Team};
use crate::graph::{Graph, Node};
use crate::operator::link::EdgeSpec;
use crate::operator::ports::Merge;
use crate::operator::when::{Conditions, InputEdges};
use crate::operator::when::{Waker, compile};
use crate::plan::{Plan, when};
use std::sync::Arc;

/// Operators that have conditions, with their inbox items.
pub(super) struct ConditionItems {
    /// By operator number: item in the inbox of its part that has the conditions checked again.
    items: Vec<Option<u32>>,
    /// Number of operators that wait for something outside the graph.
    pub outside: u32,
}

/// Gives each operator that has conditions an item in the inbox of its part.
pub(super) fn number(
    graph: &Graph,
    plan: &Plan,
    operators: &[Place],
    events: &mut [Vec<InboxEvent>],
) -> ConditionItems {
    let mut outside = 0;
    let item = |(number, &place): (usize, &usize)| {
        let when = &graph.operators[place].when;
        outside += u32::from(when.iter().any(crate::When::is_outside));
        let (part, here) = operators[number];
        (!when.is_empty()).then(|| {
            events[part].push(InboxEvent::Operator(here));
            events[part].len() as u32 - 1
        })
    };
    let items = plan.order.iter().enumerate().map(item).collect();
    ConditionItems { items, outside }
}

impl ConditionItems {
    /// Makes the conditions of one operator; `None` if it has none.
    pub fn make(
        &self,
        number: usize,
        node: &mut Node,
        plan: &Plan,
        specs: &[(EdgeSpec, EdgeSpec)],
        team: &Team,
    ) -> Option<Box<Conditions>> {
        let item = self.items[number]?;
        let part = plan.operators[number].part;
        let into = |port: usize| {
            let into =
                plan.wires.iter().zip(specs).filter(move |(wire, _)| wire.to == number && wire.input == port);
            into.map(|(_, (_, input))| input.number).collect()
        };
        let inputs: Vec<InputEdges> = node
            .ports
            .inputs
            .iter()
            .enumerate()
            .map(|(port, info)| InputEdges {
                name: info.name.clone(),
                edges: into(port),
                usual: info.required && info.merge != Some(Merge::Arrival) && !when::is_about(node, port),
            })
            .collect();
        let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
        let outside = node.when.iter().any(crate::When::is_outside);
        let mut list = compile(std::mem::take(&mut node.when), &names);
        let waker = Waker { inbox: Arc::clone(&team.inboxes[part]), item };
        list.iter_mut().for_each(|condition| condition.attach(&waker));
        Some(Box::new(Conditions {
            list,
            inputs,
            stores: stores(number, plan, part),
            outside,
            steps: 0,
            until_ns: None,
            again: false,
            unmet: u32::MAX,
        }))
    }
}

/// Indices, among the stores of the part, of those that the operator's outputs take chunks from.
fn stores(number: usize, plan: &Plan, part: usize) -> Vec<usize> {
    let mut quanta: Vec<(usize, u32)> = Vec::new();
    for (wire, edge) in plan.wires.iter().zip(&plan.edges).filter(|(wire, _)| wire.from == number) {
        let Some(bytes) = edge.quantum_bytes else { continue };
        match quanta.iter_mut().find(|(out, _)| *out == wire.out) {
            // A port takes chunks of the smallest quantum of its edges.
            Some((_, least)) => *least = bytes.min(*least),
            None => quanta.push((wire.out, bytes)),
        }
    }
    let here: Vec<u32> =
        plan.stores.iter().filter(|store| store.part == part).map(|store| store.quantum_bytes).collect();
    let mut stores: Vec<usize> =
        quanta.iter().filter_map(|(_, bytes)| here.iter().position(|here| here == bytes)).collect();
    stores.sort_unstable();
    stores.dedup();
    stores
}
