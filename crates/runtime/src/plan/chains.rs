//! Which operators are run as one step.

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
    /// Chains of operators that change chunks in place and that nothing else comes between: no other edge, no other worker, no
    /// condition, and nothing that is measured at one of them alone. First those of several operators; then all of them, with the
    /// ends that are run along.
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

    /// Whether an operator changes chunks in place and may be run with its neighbours.
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

    /// Whether what comes to an operator comes to it alone, and has room in one chunk of its own.
    fn may_rewrite(&self, edges: &Edges, number: usize) -> bool {
        let [edge] = edges.into[number][..] else { return false };
        let wire = &self.wires[edge];
        let alike = edges.out_of[wire.from].iter().filter(|&&other| self.wires[other].out == wire.out);
        let quantum = |edge: usize| self.edges[edge].quantum_bytes;
        alike.count() == 1 && edges.out_of[number].iter().all(|&next| quantum(edge) <= quantum(next))
    }

    /// Whether all that an operator sends goes to the next one by number, on the same worker, and waits where it has no room.
    fn leads_to_next(&self, edges: &Edges, number: usize) -> bool {
        let [edge] = edges.out_of[number][..] else { return false };
        let wire = &self.wires[edge];
        wire.to == number + 1
            && !wire.feedback
            && self.operators[number].part == self.operators[number + 1].part
            && self.edges[edge].when_full == WhenFull::Wait
    }

    /// A run with the source before it and the sink behind it, as far as they are run along. `None` where all that is left is one
    /// operator.
    fn with_ends(&self, graph: &Graph, edges: &Edges, run: &[usize]) -> Option<Vec<usize>> {
        let (first, last) = (*run.first()?, *run.last()?);
        let has_room = run.len() + 2 <= CHAIN_MOST;
        // Among them are ends of a replicated stretch, which have turns with others of their kind.
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
