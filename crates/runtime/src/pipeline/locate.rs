//! Place in the file of a mistake in the graph.

use super::build::Places;
use super::entries::EdgeEntry;
use super::error::Fault;
use super::section::Section;
use crate::base::wording::list;
use crate::graph::kind::{Kind, Registry};
use crate::graph::{Graph, PortRef};
use crate::plan::GraphError;
use std::ops::Range;
use toml::Spanned;
use toml::de::DeValue;

/// Returns the error with its place, if it can be found.
pub(super) fn located(
    error: &GraphError,
    graph: &Graph,
    places: &Places,
    top: &Section<'_, '_>,
    registry: &Registry,
) -> Fault {
    let search = Search { graph, places, top };
    let help = match error {
        GraphError::Types { from_type, to_type, .. } => converters(from_type, to_type, registry),
        GraphError::UnknownPort { operator, port, .. } => {
            let node = graph.operators.iter().find(|node| node.name == *operator);
            node.and_then(|node| several(port, registry.get(&node.kind)?))
        }
        error => help(error, registry),
    };
    Fault { message: error.to_string(), span: search.span(error), help }
}

/// Names the kinds with one input of the first type and one output of the second.
fn converters(from_type: &str, to_type: &str, registry: &Registry) -> Option<String> {
    let converts = |kind: &&Kind| match kind.ports() {
        (inputs, outputs) if inputs.len() == 1 && outputs.len() == 1 => {
            inputs[0].message == from_type && outputs[0].message == to_type
        }
        _ => false,
    };
    let names: Vec<&str> = registry.kinds().filter(converts).map(Kind::name).collect();
    match &names[..] {
        [] => Some(format!("no kind of operator does that in one step{}", takers(from_type, registry))),
        [name] => Some(format!("there is one: {}", list(&[*name]))),
        [..] => Some(format!("these do: {}", list(&names))),
    }
}

/// Names kinds that end a stream of this type.
fn takers(message: &str, registry: &Registry) -> String {
    const SHOWN: usize = 6;
    let takes = |kind: &&Kind| {
        let (inputs, outputs) = kind.ports();
        inputs.len() == 1 && outputs.is_empty() && inputs[0].message == message
    };
    let names: Vec<&str> = registry.kinds().filter(takes).map(Kind::name).take(SHOWN).collect();
    if names.is_empty() { String::new() } else { format!("; sinks that take {message}: {}", list(&names)) }
}

/// Names the kind that discards a stream of this type.
fn discards(message: &str, registry: &Registry) -> String {
    let discards = |kind: &&Kind| {
        let (inputs, outputs) = kind.ports();
        kind.name().contains("null")
            && outputs.is_empty()
            && inputs.len() == 1
            && inputs[0].message == message
    };
    let kind = registry.kinds().find(discards);
    kind.map_or(String::new(), |kind| format!("\n`{}` takes what is not needed", kind.name()))
}

fn help(error: &GraphError, registry: &Registry) -> Option<String> {
    match error {
        GraphError::Unconnected { direction: "input", port, other, .. } => {
            let from = other.as_deref().unwrap_or("operator.port");
            Some(format!("write an edge that ends there:\n[[edge]]\nfrom = \"{from}\"\nto = \"{port}\""))
        }
        GraphError::Unconnected { port, other, message, .. } => {
            let to = other.as_deref().unwrap_or("operator.port");
            Some(format!(
                "write an edge that begins there:\n[[edge]]\nfrom = \"{port}\"\nto = \"{to}\"{}",
                discards(message, registry)
            ))
        }
        GraphError::Empty(_) => Some("write one as [[operator]] with a `name` and a `kind`".to_string()),
        _ => None,
    }
}

/// Says which parameter gives an operator several ports: the one whose description names such a port.
fn several(port: &str, kind: &Kind) -> Option<String> {
    let first = format!("`{}0`", port.trim_end_matches(|c: char| c.is_ascii_digit()));
    let schema = kind.schema();
    let described = |(name, of): (&String, &serde_json::Value)| {
        let text = of.get("description")?.as_str()?;
        text.contains(&first).then(|| format!("`{name}`: {text}"))
    };
    schema.get("properties")?.as_object()?.iter().find_map(described)
}

struct Search<'s> {
    graph: &'s Graph,
    places: &'s Places,
    top: &'s Section<'s, 's>,
}

impl Search<'_> {
    fn span(&self, error: &GraphError) -> Option<Range<usize>> {
        match error {
            GraphError::Strict(_) => self.key("strict"),
            GraphError::StoreTooSmall { .. } => self.key("store"),
            GraphError::BadName(name) | GraphError::DuplicateName(name) => self.operator(name),
            GraphError::UnknownOperator { name, .. } => {
                self.end(|target| operator_of(target) == name).or_else(|| self.path_end(name))
            }
            GraphError::UnknownPort { operator, port, .. } => self
                .end(|target| {
                    target.split_once('.').unwrap_or((target, "")) == (operator.as_str(), port.as_str())
                })
                .or_else(|| self.operator(operator)),
            GraphError::WhichPort { operator, direction, .. } => {
                let is_there = |(from, to, edge): (&str, &str, &EdgeEntry)| match *direction {
                    "input" => (to == operator).then(|| edge.to.span()),
                    _ => (from == operator).then(|| edge.from.span()),
                };
                self.edges().find_map(is_there).or_else(|| self.operator(operator))
            }
            GraphError::Types { from, to, .. } => self.edge(from, to).map(|edge| edge.to.span()),
            GraphError::Unconnected { port, .. } => self.operator(operator_of(port)),
            GraphError::ConnectedTwice { port, second, .. } => {
                self.edge(second, port).map(|edge| edge.to.span())
            }
            GraphError::Cycle(names) => names.windows(2).find_map(|pair| {
                let edge = self
                    .edges()
                    .find(|(from, to, _)| [operator_of(from), operator_of(to)] == [&*pair[0], &*pair[1]]);
                edge.map(|(.., edge)| edge.from.span())
            }),
            GraphError::Scale(_) => self.key("scale"),
            GraphError::Cores(_) => {
                self.key("cores").or_else(|| self.key("workers")).or_else(|| self.key("scheduler"))
            }
            GraphError::HouseKeeping(_) => self.key("house_keeping"),
            GraphError::Initial { edge, .. } | GraphError::InitialCount { edge, .. } => {
                self.of_edge(edge, |edge| edge.initial.as_ref().map(Spanned::span), "initial")
            }
            GraphError::Capacity { edge, .. } => {
                self.of_edge(edge, |edge| edge.capacity_at.clone(), "capacity")
            }
            GraphError::NoQuantum { edge, .. }
            | GraphError::QuantumTooSmall { edge, .. }
            | GraphError::QuantumTooLarge { edge, .. } => {
                self.of_edge(edge, |edge| edge.quantum_at.clone(), "quantum")
            }
            GraphError::NoPath { from, to }
            | GraphError::InFlight { from, to, .. }
            | GraphError::PathDegrades { from, to }
            | GraphError::PathStart { from, to, .. } => {
                let named = |path: &&super::entries::PathEntry| {
                    path.from.get_ref() == from && path.to.get_ref() == to
                };
                self.places.paths.iter().find(named).map(|path| path.from.span())
            }
            GraphError::Pool { pool, key, operator, .. } => self.pool(pool, key, operator.as_deref()),
            GraphError::Empty(_) | GraphError::Mistake(_) => None,
        }
    }

    fn key(&self, key: &str) -> Option<Range<usize>> {
        self.top.raw(key).map(Spanned::span)
    }

    /// Place of a key of a pool, or of an operator that the pool names. The last pool of this name is the
    /// duplicate.
    fn pool(&self, name: &str, key: &str, operator: Option<&str>) -> Option<Range<usize>> {
        let is_text = |value: &Spanned<DeValue<'_>>, text: &str| matches!(value.get_ref(), DeValue::String(found) if found == text);
        let tables = self.top.tables("pool").ok()?.iter().rev();
        let mut pools = tables.filter_map(|value| match value.get_ref() {
            DeValue::Table(table) => Some((table, value.span())),
            _ => None,
        });
        let (pool, head) =
            pools.find(|(pool, _)| pool.get("name").is_some_and(|found| is_text(found, name)))?;
        let value = pool.get(key).or_else(|| self.top.raw(key));
        let item = value.and_then(|value| match (value.get_ref(), operator) {
            (DeValue::Array(items), Some(operator)) => {
                items.iter().rev().find(|item| is_text(item, operator)).map(Spanned::span)
            }
            _ => None,
        });
        Some(item.or_else(|| value.map(Spanned::span)).unwrap_or(head))
    }

    /// Place of the operator, or of the subgraph that contains it.
    fn operator(&self, name: &str) -> Option<Range<usize>> {
        let outer = std::iter::successors(Some(name), |name| name.rsplit_once('/').map(|(outer, _)| outer));
        outer.filter_map(|name| self.places.operators.get(name)).next().map(|place| place.name.clone())
    }

    /// All edges with the inner ports of their ends, last first: the last one was added most recently.
    fn edges(&self) -> impl Iterator<Item = (&str, &str, &EdgeEntry)> {
        let edges = self.graph.edges.iter().zip(&self.places.edges).rev();
        edges.map(|(edge, entry)| (self.target(&edge.from), self.target(&edge.to), entry))
    }

    fn target<'t>(&'t self, port: &'t PortRef) -> &'t str {
        let PortRef::Name(name) = port else { return "" };
        let inner = |name: &&'t String| self.graph.exposed.get(*name);
        std::iter::successors(Some(name), inner).take(1 + self.graph.exposed.len()).last().unwrap_or(name)
    }

    /// Place of the end of an edge for which `is` holds.
    fn end(&self, is: impl Fn(&str) -> bool) -> Option<Range<usize>> {
        self.edges().find_map(|(from, to, edge)| {
            let from = is(from).then(|| edge.from.span());
            from.or_else(|| is(to).then(|| edge.to.span()))
        })
    }

    fn path_end(&self, name: &str) -> Option<Range<usize>> {
        let ends = self.places.paths.iter().flat_map(|path| [&path.from, &path.to]);
        ends.filter(|end| end.get_ref() == name).map(Spanned::span).next()
    }

    /// Place of the last edge between two ports with full names.
    fn edge(&self, from: &str, to: &str) -> Option<&EdgeEntry> {
        self.edges().find(|edge| stands_for(edge.0, from) && stands_for(edge.1, to)).map(|(.., edge)| edge)
    }

    /// Place of a value of the edge "a.out → b.in", or of the default for all edges.
    fn of_edge(
        &self,
        edge: &str,
        value: impl Fn(&EdgeEntry) -> Option<Range<usize>>,
        default: &str,
    ) -> Option<Range<usize>> {
        let (from, to) = edge.split_once(" → ")?;
        let edge = self.edge(from, to)?;
        let defaults = || self.top.raw("defaults")?.get_ref().get(default).map(Spanned::span);
        value(edge).or_else(defaults).or_else(|| Some(edge.from.span()))
    }
}

fn operator_of(port: &str) -> &str {
    port.split_once('.').map_or(port, |(operator, _)| operator)
}

/// Whether the end of an edge is this port. The name of an only port may be left out.
fn stands_for(end: &str, port: &str) -> bool {
    end == port || (!end.contains('.') && operator_of(port) == end)
}
