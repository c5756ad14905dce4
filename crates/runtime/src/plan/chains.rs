//! Chains: operators that have one step together.

use super::Plan;
use crate::graph::Graph;
use crate::operator::inline::Role;
use onbeat_trace::record::WhenFull;

/// Most operators of one chain, its ends included.
pub(crate) const CHAIN_MOST: usize = 16;

/// The edges of a planned graph, by number of the operator.
struct Edges {
    into: Vec<Vec<usize>>,
    out_of: Vec<Vec<usize>>,
}

impl Plan {
    /// Finds the chains: neighbours that change chunks in place, with nothing else between them.
    /// No other edge, other worker, condition, or measurement of one of them alone may come between.
    /// The first list has the chains of several operators; the second has all chains, with the ends that
    /// take part in the step.
    pub(super) fn find_chains(&self, graph: &Graph) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let edges = self.edges_of();
        let count = self.operators.len();
        let joins = |number: usize| {
            number + 1 < count && self.leads_to_next(&edges, number) && self.may(graph, &edges, number + 1)
        };
        let (mut runs, mut passes) = (Vec::new(), Vec::new());
        let mut number = 0;
        while number < count {
            let mut run = vec![number];
            while self.may(graph, &edges, number) && joins(number) && run.len() < CHAIN_MOST {
                number += 1;
                run.push(number);
            }
            if self.may(graph, &edges, run[0]) {
                passes.extend(self.with_ends(graph, &edges, &run));
            }
            if run.len() > 1 {
                runs.push(run);
            }
            number += 1;
        }
        (runs, passes)
    }

    fn edges_of(&self) -> Edges {
        let count = self.operators.len();
        let (mut into, mut out_of) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for (edge, wire) in self.wires.iter().enumerate() {
            into[wire.to].push(edge);
            out_of[wire.from].push(edge);
        }
        Edges { into, out_of }
    }

    /// Whether an operator changes chunks in place and may share a step with its neighbours.
    fn may(&self, graph: &Graph, edges: &Edges, number: usize) -> bool {
        let node = &graph.operators[self.order[number]];
        node.role.is_some_and(Role::is_inside)
            && node.when.is_empty()
            && node.deadline_ns.is_none()
            && edges.into[number].len() == 1
            && !self.wires[edges.into[number][0]].feedback
            && !edges.out_of[number].is_empty()
            && (node.role != Some(Role::Rewrite) || self.may_rewrite(edges, number))
            && !self.paths.iter().any(|path| path.end == number)
    }

    /// Whether an operator is the only consumer of its chunks, and each fits into one chunk of its own.
    fn may_rewrite(&self, edges: &Edges, number: usize) -> bool {
        let [edge] = edges.into[number][..] else { return false };
        let wire = &self.wires[edge];
        let alike = edges.out_of[wire.from].iter().filter(|&&other| self.wires[other].out == wire.out);
        let quantum = |edge: usize| self.edges[edge].quantum_bytes;
        alike.count() == 1 && edges.out_of[number].iter().all(|&next| quantum(edge) <= quantum(next))
    }

    /// Whether all messages of an operator go to the next one by number, in the same part, over an edge
    /// that waits when it is full.
    fn leads_to_next(&self, edges: &Edges, number: usize) -> bool {
        let [edge] = edges.out_of[number][..] else { return false };
        let wire = &self.wires[edge];
        wire.to == number + 1
            && !wire.feedback
            && self.operators[number].part == self.operators[number + 1].part
            && self.edges[edge].when_full == WhenFull::Wait
    }

    /// A chain with the source before it and the sink after it, if these can take part in the step.
    /// `None` if only one operator is left.
    fn with_ends(&self, graph: &Graph, edges: &Edges, run: &[usize]) -> Option<Vec<usize>> {
        let (first, last) = (*run.first()?, *run.last()?);
        let has_room = run.len() + 2 <= CHAIN_MOST;
        // The ends of a replicated stretch are plain too; they take turns with the ends on other workers.
        let is_plain = |number: usize| {
            let node = &graph.operators[self.order[number]];
            node.when.is_empty() && node.deadline_ns.is_none()
        };
        let is_sink = |number: usize| {
            number < self.operators.len()
                && edges.out_of[number].is_empty()
                && edges.into[number].len() == 1
                && !self.operators[number].source
        };
        let is_source = |number: usize| {
            let is_bounded = || {
                let of = self.source_numbers()[number];
                self.paths.iter().any(|path| path.source == of && path.max_in_flight.is_some())
            };
            edges.into[number].is_empty()
                && self.operators[number].source
                && !self.paths.iter().any(|path| path.end == number)
                && !is_bounded()
        };
        let mut pass = run.to_vec();
        if has_room && is_sink(last + 1) && self.leads_to_next(edges, last) && is_plain(last + 1) {
            pass.push(last + 1);
        }
        let before = first.checked_sub(1).filter(|&before| is_source(before) && is_plain(before));
        if let Some(source) = before.filter(|&source| has_room && self.leads_to_next(edges, source)) {
            pass.insert(0, source);
        }
        (pass.len() > 1).then_some(pass)
    }
}
