//! Resolution of names to numbers, with the mistakes that it can find.

use super::GraphError;
use crate::base::on_error::OnError;
use crate::base::wording::nearest;
use crate::graph::{Graph, PortRef};
use crate::operator::ports::{InputInfo, OutputInfo};
use std::collections::HashMap;

/// An edge by numbers: first by places in the graph, in the plan by operator numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wire {
    pub from: usize,
    pub out: usize,
    pub to: usize,
    pub input: usize,
    /// Whether the consumer waits for messages of this edge.
    pub required: bool,
    /// Whether it has messages from the start. The order of operators ignores such edges.
    pub feedback: bool,
}

pub(super) fn check_names(graph: &Graph) -> Result<(), GraphError> {
    if let Some(mistake) = graph.mistakes.first() {
        return Err(GraphError::Mistake(mistake.clone()));
    }
    if graph.operators.is_empty() {
        return Err(GraphError::Empty(graph.name.clone()));
    }
    let mut seen = HashMap::new();
    for node in &graph.operators {
        if node.name.is_empty()
            || node.name.contains(|c: char| c == '.' || c.is_whitespace() || c.is_control())
        {
            return Err(GraphError::BadName(node.name.clone()));
        }
        if seen.insert(node.name.as_str(), ()).is_some() {
            return Err(GraphError::DuplicateName(node.name.clone()));
        }
        let same = |names: &[&String]| {
            (1..names.len()).find(|&i| names[..i].contains(&names[i])).map(|i| names[i].clone())
        };
        let inputs: Vec<_> = node.ports.inputs.iter().map(|port| &port.name).collect();
        let outputs: Vec<_> = node.ports.outputs.iter().map(|port| &port.name).collect();
        if let Some(port) = same(&inputs).or(same(&outputs)) {
            return Err(GraphError::Mistake(format!(
                "operator `{}` names the port `{port}` twice",
                node.name
            )));
        }
    }
    Ok(())
}

/// Checks that operators with `on_error = "restart"` can be started again.
pub(super) fn check_restarts(graph: &Graph) -> Result<(), GraphError> {
    for node in graph.operators.iter().filter(|node| matches!(node.on_error, OnError::Restart(_))) {
        node.operator.restartable().map_err(|error| {
            GraphError::Mistake(format!(
                "`on_error` of operator `{}`: it cannot be started again: {error}",
                node.name
            ))
        })?;
    }
    Ok(())
}

pub(crate) fn wires(graph: &Graph) -> Result<Vec<Wire>, GraphError> {
    let names: HashMap<&str, usize> =
        graph.operators.iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
    let mut wires: Vec<Wire> = Vec::with_capacity(graph.edges.len());
    // The first edge into each port that takes one, by (operator, port).
    let mut taken: HashMap<(usize, usize), usize> = HashMap::new();
    let mut pairs = HashMap::new();
    for edge in &graph.edges {
        let (from, out) = port(graph, &names, &edge.from, outputs)?;
        let (to, input) = port(graph, &names, &edge.to, inputs)?;
        let output_info = &graph.operators[from].ports.outputs[out];
        let input_info = &graph.operators[to].ports.inputs[input];
        let number = wires.len();
        if output_info.message != input_info.message {
            return Err(GraphError::Types {
                from: output_name(graph, from, out),
                from_type: output_info.label.clone(),
                to: input_name(graph, to, input),
                to_type: input_info.label.clone(),
            });
        }
        let feedback = !edge.initial.is_empty();
        wires.push(Wire { from, out, to, input, required: input_info.required, feedback });
        let before = taken.insert((to, input), number).filter(|_| input_info.merge.is_none());
        if let Some(before) = before.or(pairs.insert((from, out, to, input), number)) {
            let first: &Wire = &wires[before];
            return Err(GraphError::ConnectedTwice {
                port: input_name(graph, to, input),
                first: output_name(graph, first.from, first.out),
                second: output_name(graph, from, out),
                message: input_info.label.clone(),
            });
        }
    }
    all_connected(graph, &wires)?;
    Ok(wires)
}

fn all_connected(graph: &Graph, wires: &[Wire]) -> Result<(), GraphError> {
    let mut sending: Vec<Vec<bool>> =
        graph.operators.iter().map(|node| vec![false; node.ports.outputs.len()]).collect();
    let mut receiving: Vec<Vec<bool>> =
        graph.operators.iter().map(|node| vec![false; node.ports.inputs.len()]).collect();
    for wire in wires {
        sending[wire.from][wire.out] = true;
        receiving[wire.to][wire.input] = true;
    }
    let (mut open_inputs, mut open_outputs) = (Vec::new(), Vec::new());
    for (place, node) in graph.operators.iter().enumerate() {
        let inputs = node.ports.inputs.iter().enumerate();
        let open = inputs.filter(|&(at, port)| port.required && !receiving[place][at]);
        open_inputs.extend(open.map(|(at, port)| (input_name(graph, place, at), port.message, &port.label)));
        let outputs = node.ports.outputs.iter().enumerate();
        let open = outputs.filter(|&(at, port)| port.required && !sending[place][at]);
        open_outputs
            .extend(open.map(|(at, port)| (output_name(graph, place, at), port.message, &port.label)));
    }
    for (direction, open, others) in
        [("input", &open_inputs, &open_outputs), ("output", &open_outputs, &open_inputs)]
    {
        let Some((port, message, label)) = open.first() else { continue };
        let mut fitting = others.iter().filter(|(_, other, _)| other == message);
        let other = fitting.next().filter(|_| fitting.next().is_none()).map(|(name, ..)| name.clone());
        let (port, message) = (port.clone(), (*label).clone());
        return Err(GraphError::Unconnected { direction, port, message, other });
    }
    Ok(())
}

/// Names of one operator's ports of one direction, with that direction's word.
type Side = fn(&Graph, usize) -> (&'static str, Vec<&str>);

fn inputs(graph: &Graph, place: usize) -> (&'static str, Vec<&str>) {
    ("input", graph.operators[place].ports.inputs.iter().map(|port: &InputInfo| port.name.as_str()).collect())
}

fn outputs(graph: &Graph, place: usize) -> (&'static str, Vec<&str>) {
    (
        "output",
        graph.operators[place].ports.outputs.iter().map(|port: &OutputInfo| port.name.as_str()).collect(),
    )
}

fn port(
    graph: &Graph,
    names: &HashMap<&str, usize>,
    port: &PortRef,
    side: Side,
) -> Result<(usize, usize), GraphError> {
    let text = match port {
        PortRef::Number(place, port) => return Ok((*place, *port)),
        PortRef::Name(text) => text,
    };
    let mut name = text.as_str();
    // A subgraph's exposed port stands for an inner one, which may be exposed itself.
    for _ in 0..=graph.exposed.len() {
        match graph.exposed.get(name) {
            Some(inner) => name = inner,
            None => break,
        }
    }
    let (operator, port) = match name.split_once('.') {
        Some((operator, port)) => (operator, Some(port)),
        None => (name, None),
    };
    let Some(&place) = names.get(operator) else {
        let subgraphs = graph.exposed.keys().filter_map(|port| port.split_once('.')).map(|(name, _)| name);
        if subgraphs.clone().any(|subgraph| subgraph == operator) {
            let prefix = format!("{operator}.");
            let known: Vec<_> = graph.exposed.keys().filter_map(|port| port.strip_prefix(&prefix)).collect();
            return Err(GraphError::UnknownPort {
                operator: operator.to_string(),
                direction: "exposed port",
                port: port.unwrap_or("").to_string(),
                hint: format!("; it has {}", known.join(", ")),
            });
        }
        return Err(GraphError::UnknownOperator {
            name: operator.to_string(),
            hint: nearest(operator, names.keys().copied().chain(subgraphs)),
        });
    };
    let (direction, known) = side(graph, place);
    let unknown = |port: &str| GraphError::UnknownPort {
        operator: operator.to_string(),
        direction,
        port: port.to_string(),
        hint: match known.as_slice() {
            [] if port.is_empty() => String::new(),
            [] => format!("; it has no {direction}s"),
            known => format!("; it has {}", known.join(", ")),
        },
    };
    match (port, known.as_slice()) {
        (Some(port), _) => {
            known.iter().position(|&name| name == port).map(|at| (place, at)).ok_or_else(|| unknown(port))
        }
        (None, [_]) => Ok((place, 0)),
        (None, []) => Err(unknown("")),
        (None, [first, ..]) => Err(GraphError::WhichPort {
            operator: operator.to_string(),
            direction,
            count: known.len(),
            known: known.join(", "),
            first: (*first).to_string(),
        }),
    }
}

fn input_name(graph: &Graph, place: usize, port: usize) -> String {
    let node = &graph.operators[place];
    format!("{}.{}", node.name, node.ports.inputs[port].name)
}

fn output_name(graph: &Graph, place: usize, port: usize) -> String {
    let node = &graph.operators[place];
    format!("{}.{}", node.name, node.ports.outputs[port].name)
}
