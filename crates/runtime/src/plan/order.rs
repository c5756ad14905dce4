//! Order of the operators down the graph.

use super::GraphError;
use super::resolve::Wire;
use crate::graph::Graph;

/// Orders the places of the graph: every operator comes after those that it waits for.
/// A chain stays together: the successor of an operator has the next number.
pub(super) fn order(graph: &Graph, wires: &[Wire]) -> Result<Vec<usize>, GraphError> {
    let operators = graph.operators.len();
    let mut waits_for = vec![0; operators];
    let mut sends_to = vec![Vec::new(); operators];
    for wire in wires.iter().filter(|wire| wire.required && !wire.feedback) {
        waits_for[wire.to] += 1;
        sends_to[wire.from].push(wire.to);
    }
    // Last in, first out keeps chains together.
    let mut free: Vec<usize> = (0..operators).rev().filter(|&place| waits_for[place] == 0).collect();
    let mut order = Vec::with_capacity(operators);
    while let Some(place) = free.pop() {
        order.push(place);
        for &next in sends_to[place].iter().rev() {
            waits_for[next] -= 1;
            if waits_for[next] == 0 {
                free.push(next);
            }
        }
    }
    if order.len() < operators {
        return Err(GraphError::Cycle(cycle(graph, wires, &waits_for)));
    }
    Ok(order)
}

/// Names along one cycle of operators that still wait. The first name is repeated at the end.
fn cycle(graph: &Graph, wires: &[Wire], waits_for: &[usize]) -> Vec<String> {
    let before = |place: usize| {
        wires
            .iter()
            .find(|wire| wire.required && !wire.feedback && wire.to == place && waits_for[wire.from] > 0)
            .map(|wire| wire.from)
    };
    let mut visited = Vec::new();
    let mut place = waits_for.iter().position(|&waits| waits > 0).unwrap_or(0);
    // Go backwards: a waiting operator has a waiting predecessor, so the walk must meet a place again.
    while !visited.contains(&place) {
        visited.push(place);
        match before(place) {
            Some(previous) => place = previous,
            None => break,
        }
    }
    let start = visited.iter().position(|&seen| seen == place).unwrap_or(0);
    let mut names: Vec<String> =
        visited[start..].iter().rev().map(|&at| graph.operators[at].name.clone()).collect();
    if let Some(first) = names.first().cloned() {
        names.push(first);
    }
    names
}

/// Reachability of operators along the edges.
pub(super) struct Reach {
    sends_to: Vec<Vec<usize>>,
}

impl Reach {
    pub fn new(operators: usize, wires: &[Wire]) -> Self {
        let mut sends_to = vec![Vec::new(); operators];
        for wire in wires {
            sends_to[wire.from].push(wire.to);
        }
        Reach { sends_to }
    }

    /// Whether a message from `start` can reach an operator, by operator number.
    pub fn from(&self, start: usize) -> Vec<bool> {
        let mut reached = vec![false; self.sends_to.len()];
        let mut open = vec![start];
        while let Some(number) = open.pop() {
            if !std::mem::replace(&mut reached[number], true) {
                open.extend(&self.sends_to[number]);
            }
        }
        reached
    }
}
