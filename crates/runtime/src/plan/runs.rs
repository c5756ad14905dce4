//! Which operators are run as one step.

use super::Plan;
use crate::graph::Graph;
use crate::worker::RUN_MOST;
use onbeat_trace::record::WhenFull;

impl Plan {
    /// Chains of operators that change chunks in place and that nothing else comes between: no other edge, no other worker, no
    /// condition, and nothing that is measured at one of them alone.
    pub(super) fn find_runs(&self, graph: &Graph) -> Vec<Vec<usize>> {
        let count = self.operators.len();
        let (mut into, mut out_of) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for (edge, wire) in self.wires.iter().enumerate() {
            into[wire.to].push(edge);
            out_of[wire.from].push(edge);
        }
        let may = |number: usize| {
            let node = &graph.operators[self.order[number]];
            node.operator.carrier().is_some()
                && node.when.is_empty()
                && node.deadline_ns.is_none()
                && into[number].len() == 1
                && !self.wires[into[number][0]].feedback
                && !out_of[number].is_empty()
                && !self.paths.iter().any(|path| path.end == number)
        };
        let joins = |number: usize| {
            let next = number + 1;
            let [edge] = out_of[number][..] else { return false };
            let wire = &self.wires[edge];
            next < count
                && wire.to == next
                && self.operators[number].part == self.operators[next].part
                && self.edges[edge].when_full == WhenFull::Wait
                && may(next)
        };
        let mut runs = Vec::new();
        let mut number = 0;
        while number < count {
            let mut run = vec![number];
            while may(number) && joins(number) && run.len() < RUN_MOST {
                number += 1;
                run.push(number);
            }
            if run.len() > 1 {
                runs.push(run);
            }
            number += 1;
        }
        runs
    }
}
