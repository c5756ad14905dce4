//! Paths from sources to sinks whose latency is measured.

use super::{GraphError, PathPlan, Plan, order};
use crate::base::wording::nearest;
use crate::graph::Graph;
use crate::graph::limits::{OnMiss, PathLimits};
use onbeat_trace::record::WhenFull;

/// Most pairs of source and sink that become paths without being named.
/// If there are more, only named paths are measured.
const PATHS_UNASKED: usize = 64;

impl Plan {
    /// Finds the named paths, and the other paths from a source to a sink if they are few.
    pub(super) fn find_paths(&self, graph: &Graph) -> Result<Vec<PathPlan>, GraphError> {
        let mut paths: Vec<PathPlan> = Vec::new();
        let numbers = |name: &str| {
            let all: Vec<usize> =
                (0..self.operators.len()).filter(|&n| self.operators[n].name == name).collect();
            if all.is_empty() {
                return Err(GraphError::UnknownOperator {
                    name: name.to_string(),
                    hint: nearest(name, self.operators.iter().map(|operator| operator.name.as_str())),
                });
            }
            Ok(all)
        };
        let source_numbers = self.source_numbers();
        let sources: Vec<usize> = (0..self.operators.len()).filter(|&n| self.operators[n].source).collect();
        let after = order::Reach::new(self.operators.len(), &self.wires);
        let path = |from: usize, end: usize, limits: PathLimits| PathPlan {
            from: self.operators[from].name.clone(),
            to: self.operators[end].name.clone(),
            max_latency_ns: limits.max_latency_ns,
            max_in_flight: limits.max_in_flight,
            on_miss: limits.on_miss,
            source: source_numbers[from],
            end,
        };
        for asked in &graph.paths {
            let (froms, tos) = (numbers(&asked.from)?, numbers(&asked.to)?);
            if !froms.iter().all(|&from| self.operators[from].source) {
                let leads = |source: usize| tos.iter().any(|&to| after.from(source)[to]);
                let leading = sources.iter().filter(|&&source| leads(source));
                let names = leading.map(|&source| format!("`{}`", self.operators[source].name));
                return Err(GraphError::PathStart {
                    from: asked.from.clone(),
                    to: asked.to.clone(),
                    sources: names.collect::<Vec<_>>().join(" or "),
                });
            }
            let pairs = froms.iter().flat_map(|&from| tos.iter().map(move |&to| (from, to)));
            let there: Vec<_> = pairs.filter(|&(from, to)| from != to && after.from(from)[to]).collect();
            if there.is_empty() {
                return Err(GraphError::NoPath { from: asked.from.clone(), to: asked.to.clone() });
            }
            if asked.limits.max_in_flight.is_some() {
                self.can_count(&there, &after)?;
            }
            if asked.limits.on_miss == OnMiss::Degrade {
                return Err(GraphError::PathDegrades { from: asked.from.clone(), to: asked.to.clone() });
            }
            paths.extend(there.into_iter().map(|(from, to)| path(from, to, asked.limits)));
        }
        let mut sends = vec![false; self.operators.len()];
        for wire in &self.wires {
            sends[wire.from] = true;
        }
        let mut unasked = Vec::new();
        for &from in sources.iter().take(PATHS_UNASKED + 1) {
            let reached = after.from(from);
            for to in (0..self.operators.len()).filter(|&to| !sends[to] && to != from && reached[to]) {
                if !paths.iter().any(|path| path.source == source_numbers[from] && path.end == to) {
                    unasked.push(path(from, to, PathLimits::default()));
                }
            }
            if unasked.len() > PATHS_UNASKED {
                unasked.clear();
                break;
            }
        }
        paths.extend(unasked);
        Ok(paths)
    }

    /// Checks that arrivals on these paths can be counted, from operator to operator.
    fn can_count(&self, paths: &[(usize, usize)], after: &order::Reach) -> Result<(), GraphError> {
        let refuse = |from: usize, to: usize, why: String| {
            let name = |number: usize| self.operators[number].name.clone();
            Err(GraphError::InFlight { from: name(from), to: name(to), why })
        };
        for &(from, to) in paths {
            if paths.len() > 1 {
                return refuse(from, to, "under `replicated` its operators have copies".to_owned());
            }
            let leads = |other: &usize| self.operators[*other].source && after.from(*other)[to];
            if let Some(other) = (0..self.operators.len()).filter(|other| *other != from).find(leads) {
                let other = &self.operators[other].name;
                return refuse(
                    from,
                    to,
                    format!("messages of `{other}` get there too, and could be counted instead"),
                );
            }
            let is_on = |number: usize, wire_to: usize| {
                (number == from || after.from(from)[number]) && (wire_to == to || after.from(wire_to)[to])
            };
            let mut wires = self.wires.iter().zip(&self.edges).filter(|(wire, _)| is_on(wire.from, wire.to));
            let drops = |when_full: WhenFull| !matches!(when_full, WhenFull::Wait | WhenFull::Error);
            if let Some((_, edge)) = wires.find(|(_, edge)| drops(edge.when_full)) {
                let (name, when_full) = (format!("{} → {}", edge.from, edge.to), edge.when_full);
                let why = format!("the edge {name} drops messages (when_full = \"{when_full}\")");
                return refuse(from, to, why);
            }
        }
        Ok(())
    }
}
