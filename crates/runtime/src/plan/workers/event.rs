//! Parts of the graph under `event`.

use super::{Alike, PARTS, WORTH_NS, cores, costs, fewer};
use crate::base::on_error::OnError;
use crate::base::options::Options;
use crate::graph::{Graph, Node};
use crate::operator::inline::Role;
use crate::plan::GraphError;
use crate::plan::replicate::Expanded;
use crate::plan::resolve::Wire;
use crate::plan::split::split;
use onbeat_trace::record::{ClockKind, WhenFull};

/// Makes each operator a part of its own if they are few. A single worker gets all of them in one part.
/// With `lanes`, the copies of stretches are parts.
pub(super) fn event(
    graph: &Graph,
    wires: &[Wire],
    order: &[usize],
    options: &Options,
    lanes: Option<&Expanded>,
) -> Result<Alike, GraphError> {
    let cores = cores(options)?;
    if cores.len() > PARTS {
        let cores = cores.len();
        return Err(GraphError::Cores(format!("{cores} workers in one pool: there may be {PARTS} at most")));
    }
    let together = together(graph, wires, order, options);
    let (together, lanes) = match lanes {
        Some(expanded) => in_lanes(graph, wires, order, options, &together, expanded),
        None => (together, Vec::new()),
    };
    let parts = together.iter().max().map_or(1, |&last| last + 1);
    let waves = waves(graph, wires, order, &together);
    // A wave can use one more worker for each operator between its ends except one.
    let helpers: usize = waves.iter().map(|wave| wave.len() - 3).sum();
    let used = cores.len().min(parts + helpers).max(1);
    let part_of = match used {
        1 => vec![0; order.len()],
        _ if parts <= PARTS => together,
        _ => split(&costs(graph, wires, order, options, PARTS), PARTS),
    };
    let obtained = fewer(cores.len(), used, options);
    let waves =
        if used > 1 && parts <= PARTS && options.clock == ClockKind::Real { waves } else { Vec::new() };
    let cores = cores.into_iter().take(used).collect();
    Ok(Alike { cores, part_of, shared: used > 1, obtained, waves, lanes })
}

/// Whether a step is not known to be worth the way to another worker.
fn is_light(node: &Node, options: &Options) -> bool {
    let known = options.costs.get(&node.name).copied().or(node.cost_ns.map(|cost_ns| cost_ns as f64));
    node.when.is_empty() && known.is_none_or(|cost| cost < WORTH_NS)
}

/// Parts, by operator number, where the copies of stretches are parts: the first one with the parts before
/// and after the stretch if these are light, each other one alone. Also returns the parts of the others.
fn in_lanes(
    graph: &Graph,
    wires: &[Wire],
    order: &[usize],
    options: &Options,
    together: &[usize],
    expanded: &Expanded,
) -> (Vec<usize>, Vec<usize>) {
    let mut keys = vec![PartKey::Rest(0); order.len()];
    for (&place, &part) in order.iter().zip(together) {
        let copy = expanded.stretch[place].map(|stretch| PartKey::Copy(stretch, expanded.worker[place]));
        keys[place] = copy.unwrap_or(PartKey::Rest(part));
    }
    // Only neighbours: a heavy operator behind them, whose cost is not known, keeps a part of its own.
    let before = keys.clone();
    for (edge, wire) in wires.iter().enumerate() {
        let (rest, copy) = match (before[wire.from], before[wire.to]) {
            (rest @ PartKey::Rest(_), copy @ PartKey::Copy(..)) => (rest, copy),
            (copy @ PartKey::Copy(..), rest @ PartKey::Rest(_)) => (rest, copy),
            _ => continue,
        };
        let mut members = (0..order.len()).filter(|&place| keys[place] == rest);
        let is_plain = graph.edges[edge].when_full == WhenFull::Wait && !wire.feedback;
        if is_plain && members.all(|place| is_light(&graph.operators[place], options)) {
            keys.iter_mut().filter(|key| **key == rest).for_each(|key| *key = copy);
        }
    }
    let mut known: Vec<PartKey> = Vec::new();
    let part = |&place: &usize| {
        known.iter().position(|other| *other == keys[place]).unwrap_or_else(|| {
            known.push(keys[place]);
            known.len() - 1
        })
    };
    let part_of = order.iter().map(part).collect();
    let is_further = |&part: &usize| matches!(known[part], PartKey::Copy(_, 1..));
    (part_of, (0..known.len()).filter(is_further).collect())
}

/// What makes the operators of a part belong together.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PartKey {
    /// A copy of a stretch: the numbers of both.
    Copy(usize, usize),
    /// A part of the rest.
    Rest(usize),
}

/// Parts that may run as waves, by operator number.
/// A wave has both ends and several operators between them, with direct hand-over of chunks.
fn waves(graph: &Graph, wires: &[Wire], order: &[usize], together: &[usize]) -> Vec<Vec<usize>> {
    let (mut takes, mut sends) = (vec![false; order.len()], vec![false; order.len()]);
    for wire in wires {
        (takes[wire.to], sends[wire.from]) = (true, true);
    }
    let node = |number: usize| &graph.operators[order[number]];
    let may = |part: &[usize]| {
        let [source, inside @ .., sink] = part else { return false };
        let stops = part.iter().all(|&number| node(number).on_error == OnError::Stop);
        inside.len() > 1
            && stops
            && !inside.iter().any(|&number| node(number).role == Some(Role::Rewrite))
            && !takes[order[*source]]
            && !sends[order[*sink]]
            && (node(*source).role, node(*sink).role) == (Some(Role::Fill), Some(Role::Drain))
    };
    let numbers: Vec<usize> = (0..order.len()).collect();
    let parts = numbers.chunk_by(|&one, &next| together[one] == together[next]);
    parts.filter(|part| may(part)).map(<[usize]>::to_vec).collect()
}

/// Part of each operator, by operator number. Neighbours that can share a step form one part, unless each is
/// known to be expensive enough to move alone. A source before them and a sink after them join if they have
/// no state: waiting for the outside of such an end does not delay the others.
fn together(graph: &Graph, wires: &[Wire], order: &[usize], options: &Options) -> Vec<usize> {
    let mut number_of = vec![0; order.len()];
    for (number, &place) in order.iter().enumerate() {
        number_of[place] = number;
    }
    let (mut into, mut out_of) = (vec![Vec::new(); order.len()], vec![Vec::new(); order.len()]);
    for (edge, wire) in wires.iter().enumerate() {
        out_of[number_of[wire.from]].push(number_of[wire.to]);
        into[number_of[wire.to]].push(edge);
    }
    let node = |number: usize| &graph.operators[order[number]];
    let is_light = |number: usize| is_light(node(number), options);
    let is_carried = |number: usize| node(number).role.is_some_and(Role::is_inside);
    let is_end = |number: usize| {
        let has_one = into[number].is_empty() != out_of[number].is_empty();
        has_one && node(number).operator.replica().is_some()
    };
    let mut parts: Vec<usize> = Vec::with_capacity(order.len());
    for (number, into) in into.iter().enumerate() {
        let before = parts.last().copied();
        let joins = |edge: usize| {
            let last = number - 1;
            let is_one_step = is_carried(last) && (is_carried(number) || is_end(number))
                || is_end(last) && is_carried(number);
            is_one_step
                && out_of[last] == [number]
                && !wires[edge].feedback
                && graph.edges[edge].when_full == WhenFull::Wait
                && is_light(last)
                && is_light(number)
        };
        let joins = number > 0 && matches!(into[..], [edge] if joins(edge));
        parts.push(before.map_or(0, |before| before + usize::from(!joins)));
    }
    parts
}
