//! Checks that conditions of operators can hold, and their effect on edges.

use super::GraphError;
use super::resolve::Wire;
use super::sizes::Size;
use crate::base::wording::nearest;
use crate::graph::{Graph, Node};
use crate::operator::when::{Requirement, When};

/// Ports by place and capacities by edge, for the checks.
struct Around<'g> {
    graph: &'g Graph,
    place: usize,
    wires: &'g [Wire],
    sizes: &'g [Size],
}

/// Checks all conditions. `wires` has places in the graph.
pub(super) fn check(graph: &Graph, wires: &[Wire], sizes: &[Size]) -> Result<(), GraphError> {
    for (place, node) in graph.operators.iter().enumerate() {
        let around = Around { graph, place, wires, sizes };
        for when in &node.when {
            around.check(when, false)?;
        }
    }
    Ok(())
}

impl Around<'_> {
    fn node(&self) -> &Node {
        &self.graph.operators[self.place]
    }

    fn wrong(&self, text: impl AsRef<str>) -> GraphError {
        GraphError::Mistake(format!("a condition of operator `{}`: {}", self.node().name, text.as_ref()))
    }

    fn check(&self, When(what): &When, nested: bool) -> Result<(), GraphError> {
        match what {
            Requirement::Messages { port, least } => {
                self.fits(*least, self.capacity(self.input(port)?), port)
            }
            Requirement::Room { .. } if nested => {
                Err(self.wrong("`room` cannot be one of `any_of`: an output without room always waits"))
            }
            Requirement::Room { port, least } => self.room(port, *least),
            Requirement::Inputs { ports, least, how, .. } => {
                let ports: Vec<&str> = match ports.as_slice() {
                    [] => self.node().ports.inputs.iter().map(|port| port.name.as_str()).collect(),
                    ports => ports.iter().map(String::as_str).collect(),
                };
                if ports.is_empty() {
                    return Err(self.wrong("it is about inputs, and there are none"));
                }
                if let Some(port) = (1..ports.len()).find(|&at| ports[..at].contains(&ports[at])) {
                    return Err(self.wrong(format!("it names the input `{}` twice", ports[port])));
                }
                let mut sum = 0usize;
                for port in &ports {
                    let capacity = self.capacity(self.input(port)?);
                    sum = sum.saturating_add(capacity);
                    if *how != crate::operator::when::How::Sum {
                        self.fits(*least, capacity, port)?;
                    }
                }
                self.fits(*least, sum, &ports.join(" and "))
            }
            Requirement::Batch { port, size, .. } => self.fits(*size, self.capacity(self.input(port)?), port),
            Requirement::Misused(text) => Err(self.wrong(text)),
            Requirement::Count(0) => Err(self.wrong("a count of 0 steps: leave the operator out")),
            Requirement::Period { period_ns: 0, .. } => {
                Err(self.wrong("a period of 0 ns: it must be 1 ns or more"))
            }
            Requirement::ChunkRoom(0) => Err(self.wrong("0 free chunks are always there")),
            Requirement::ChunkRoom(_)
                if !self.node().ports.outputs.iter().any(|port| port.sample_bytes.is_some()) =>
            {
                Err(self.wrong("`chunk_room` is about outputs with samples, and there are none"))
            }
            Requirement::AnyOf(list) if list.is_empty() => Err(self.wrong("`any_of` nothing never holds")),
            Requirement::AnyOf(list) => list.iter().try_for_each(|when| self.check(when, true)),
            Requirement::Count(_)
            | Requirement::Gate(_)
            | Requirement::Event(_)
            | Requirement::Readable(_)
            | Requirement::Period { .. } => Ok(()),
            Requirement::ChunkRoom(_) | Requirement::Own(_) => Ok(()),
        }
    }

    fn input(&self, name: &str) -> Result<usize, GraphError> {
        let names: Vec<&str> = self.node().ports.inputs.iter().map(|port| port.name.as_str()).collect();
        self.port(name, "input", &names)
    }

    fn port(&self, name: &str, what: &str, names: &[&str]) -> Result<usize, GraphError> {
        match (name, names) {
            ("", [_]) => Ok(0),
            ("", []) => Err(self.wrong(format!("it is about an {what}, and there is none"))),
            ("", names) => Err(self.wrong(format!("say which {what} it is about: {}", names.join(", ")))),
            (name, names) => names.iter().position(|port| *port == name).ok_or_else(|| {
                let hint = nearest(name, names.iter().copied());
                self.wrong(format!("there is no {what} `{name}`{hint}"))
            }),
        }
    }

    /// Most messages that can wait at an input.
    fn capacity(&self, input: usize) -> usize {
        let into = self
            .wires
            .iter()
            .zip(self.sizes)
            .filter(|(wire, _)| wire.to == self.place && wire.input == input);
        into.map(|(_, size)| size.capacity).fold(0, usize::saturating_add)
    }

    fn fits(&self, least: usize, capacity: usize, port: &str) -> Result<(), GraphError> {
        if least == 0 {
            return Err(self.wrong("it waits for 0 messages, which are always there"));
        }
        if least <= capacity {
            return Ok(());
        }
        let port = if port.is_empty() { "its input" } else { port };
        Err(self.wrong(format!(
            "it waits for {least} messages at {port}, where at most {capacity} can wait: raise the `capacity` of the edge"
        )))
    }

    fn room(&self, port: &str, least: usize) -> Result<(), GraphError> {
        let names: Vec<&str> = self.node().ports.outputs.iter().map(|port| port.name.as_str()).collect();
        let out = self.port(port, "output", &names)?;
        let from =
            self.wires.iter().zip(self.sizes).filter(|(wire, _)| wire.from == self.place && wire.out == out);
        match from.map(|(_, size)| size.capacity).min() {
            Some(capacity) if least > capacity => Err(self.wrong(format!(
                "it waits for room for {least} messages at {}, where at most {capacity} can wait: raise the `capacity` of the \
                 edge",
                names[out]
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether a condition concerns an input. Then the default condition "one message" does not apply.
pub(crate) fn is_about(node: &Node, input: usize) -> bool {
    fn about(When(what): &When, name: &str) -> bool {
        match what {
            Requirement::Messages { port, .. } | Requirement::Batch { port, .. } => {
                port.is_empty() || port == name
            }
            Requirement::Inputs { ports, .. } => ports.is_empty() || ports.iter().any(|port| port == name),
            Requirement::AnyOf(list) => list.iter().any(|when| about(when, name)),
            _ => false,
        }
    }
    let name = &node.ports.inputs[input].name;
    node.when.iter().any(|when| about(when, name))
}

/// Number of messages for which an output must have room.
pub(crate) fn room(node: &Node, out: usize) -> usize {
    let name = &node.ports.outputs[out].name;
    let rooms = node.when.iter().filter_map(|When(what)| match what {
        Requirement::Room { port, least } if port.is_empty() || port == name => Some(*least),
        _ => None,
    });
    rooms.max().unwrap_or(1)
}
