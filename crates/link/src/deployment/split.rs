//! The parts of a pipeline, with both ends of a link where an edge was cut.

use super::cut::{cut, edges_of, ends, link_settings};
use super::{Hosts, paths};
use onbeat_runtime::Error;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// What one node runs.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePart {
    /// The node.
    pub node: String,
    /// Address of its `onbeat node`.
    pub endpoint: String,
    /// Its pipeline.
    pub pipeline: Table,
    /// Operators of the whole pipeline that it has.
    pub operators: BTreeSet<String>,
}

/// An edge of the plan, with the type of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedEdge {
    /// "operator.port"
    pub from: String,
    /// "operator.port"
    pub to: String,
    /// Rust's name of the type.
    pub message: String,
    /// Most messages in its queue.
    pub capacity: usize,
}

/// Keys that depend on the machine, which the pipeline as a whole is checked without.
const MACHINE: [&str; 10] = [
    "cores",
    "house_keeping",
    "workers",
    "policy",
    "pool",
    "lock_memory",
    "prefault",
    "huge_pages",
    "numa",
    "scheduler",
];

/// Returns the pipeline without the keys that depend on the machine.
#[must_use]
pub fn without_machine(pipeline: &Table) -> Table {
    pipeline
        .iter()
        .filter(|(key, _)| !MACHINE.contains(&key.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// Tables of a list in the file.
pub(super) fn tables<'t>(pipeline: &'t Table, key: &str) -> Vec<&'t Table> {
    pipeline.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table).collect()
}

pub(super) fn text<'t>(table: &'t Table, key: &str) -> &'t str {
    table.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The operator of the file that "operator.port" or "subgraph/operator" belongs to.
pub(super) fn operator(port: &str) -> &str {
    port.split(['.', '/']).next().unwrap_or(port)
}

/// Cuts a pipeline that was checked. `edges` are those of its plan.
///
/// # Errors
/// If an operator has no node, or an edge cannot be cut.
pub fn split(
    pipeline: &Table,
    edges: &[TypedEdge],
    hosts: &Hosts,
    name: &str,
) -> Result<Vec<NodePart>, Error> {
    let names: Vec<String> =
        tables(pipeline, "operator").iter().map(|table| text(table, "name").to_string()).collect();
    let places = hosts.places(&names)?;
    let mut parts: BTreeMap<&str, NodePart> = BTreeMap::new();
    for (node, host) in &hosts.node {
        let operators: BTreeSet<String> =
            names.iter().filter(|name| places[*name] == *node).cloned().collect();
        if operators.is_empty() {
            return Err(Error::new(format!("node `{node}` has no operators: remove it, or give it some")));
        }
        let pipeline = own_part(pipeline, &operators, &host.options, &format!("{name}.{node}"));
        let part = NodePart { node: node.clone(), endpoint: host.endpoint.clone(), pipeline, operators };
        parts.insert(node, part);
    }
    let mut cuts = Vec::new();
    for edge in tables(pipeline, "edge") {
        let (from, to) = (text(edge, "from"), text(edge, "to"));
        let (producer, consumer) = (&places[operator(from)], &places[operator(to)]);
        if producer == consumer {
            add(&mut parts, producer, "edge", edge.clone());
            continue;
        }
        let cut = cut(edge, edges, &mut cuts)?;
        let settings = link_settings(&cut, &hosts.link);
        let listen = hosts.node[consumer].links();
        let [sink, source] = ends(&cut, &settings, &listen, hosts.is_proved.then_some([producer, consumer]));
        let [inward, outward] = edges_of(edge, &cut, &settings);
        add(&mut parts, producer, "operator", sink);
        add(&mut parts, producer, "edge", inward);
        add(&mut parts, consumer, "operator", source);
        add(&mut parts, consumer, "edge", outward);
    }
    paths::add(pipeline, &places, &cuts, &mut parts)?;
    Ok(parts.into_values().collect())
}

/// The pipeline of a node, without edges and paths.
fn own_part(pipeline: &Table, operators: &BTreeSet<String>, options: &Table, name: &str) -> Table {
    let mut part = pipeline.clone();
    for key in ["operator", "edge", "path"] {
        part.remove(key);
    }
    let own = |table: &&Table| operators.contains(text(table, "name"));
    let own: Vec<Value> =
        tables(pipeline, "operator").into_iter().filter(own).cloned().map(Value::Table).collect();
    part.insert("operator".to_string(), Value::Array(own));
    let pools: Vec<Value> =
        tables(pipeline, "pool").into_iter().filter_map(|pool| own_pool(pool, operators)).collect();
    part.remove("pool");
    if !pools.is_empty() {
        part.insert("pool".to_string(), Value::Array(pools));
    }
    part.insert("name".to_string(), Value::String(name.to_string()));
    part.extend(options.clone());
    part
}

/// A pool with the operators of this node; `None` if it has none of them.
fn own_pool(pool: &Table, operators: &BTreeSet<String>) -> Option<Value> {
    let mut pool = pool.clone();
    if let Some(Value::Array(listed)) = pool.get_mut("operators") {
        listed.retain(|operator| operator.as_str().is_none_or(|operator| operators.contains(operator)));
        if listed.is_empty() {
            return None;
        }
    }
    Some(Value::Table(pool))
}

pub(super) fn add(parts: &mut BTreeMap<&str, NodePart>, node: &str, key: &str, table: Table) {
    let Some(part) = parts.get_mut(node) else { return };
    let list = part.pipeline.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.push(Value::Table(table));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIPELINE: &str = r#"
        scheduler = "event"
        [[operator]]
        name = "iq"
        kind = "null.source.complex"
        [[operator]]
        name = "demod"
        kind = "quad.demod"
        [[operator]]
        name = "end"
        kind = "null.sink"
        [[edge]]
        from = "iq.out"
        to = "demod"
        capacity = 8
        when_full = "drop_oldest"
        [[edge]]
        from = "demod.out"
        to = "end.in"
        [[path]]
        from = "iq"
        to = "end"
        max_latency = "5 ms"
        [[pool]]
        name = "quick"
        operators = ["iq", "end"]
    "#;

    fn edges() -> Vec<TypedEdge> {
        let edge = |from: &str, to: &str, message: &str| TypedEdge {
            from: from.to_string(),
            to: to.to_string(),
            message: message.to_string(),
            capacity: 8,
        };
        vec![edge("iq.out", "demod.in", "Chunk<Complex<f32>>"), edge("demod.out", "end.in", "Chunk<f32>")]
    }

    fn parts(hosts: &str) -> Result<Vec<NodePart>, Error> {
        let pipeline: Table = toml::from_str(PIPELINE).expect("a pipeline");
        split(&pipeline, &edges(), &Hosts::parse(hosts)?, "job")
    }

    const TWO: &str = r#"
        [node.a]
        endpoint = "10.0.0.1:7400"
        operators = ["iq"]
        [node.b]
        endpoint = "10.0.0.2:7400"
        links = "10.1.0.2:9000"
        rest = true
        options = { scheduler = "greedy" }
        [link]
        on_cut = "degrade"
    "#;

    #[test]
    fn both_ends_of_a_cut_edge_fit() {
        let parts = parts(TWO).unwrap();
        let text = parts.iter().map(|part| toml::to_string(&part.pipeline).unwrap()).collect::<Vec<_>>();
        let expected: [Table; 2] = [
            r#"
            name = "job.a"
            scheduler = "event"
            [[operator]]
            name = "iq"
            kind = "null.source.complex"
            [[operator]]
            name = "iq→demod"
            kind = "link.sink.complex"
            link = "iq→demod"
            connect = "10.1.0.2:9000"
            window = 1
            on_cut = "degrade"
            [[edge]]
            from = "iq.out"
            to = "iq→demod"
            capacity = 8
            when_full = "drop_oldest"
            [[path]]
            from = "iq"
            to = "iq→demod"
            max_latency = "5 ms"
            [[pool]]
            name = "quick"
            operators = ["iq"]
            "#,
            r#"
            name = "job.b"
            scheduler = "greedy"
            [[operator]]
            name = "demod"
            kind = "quad.demod"
            [[operator]]
            name = "end"
            kind = "null.sink"
            [[operator]]
            name = "iq→demod"
            kind = "link.source.complex"
            link = "iq→demod"
            listen = "10.1.0.2:9000"
            window = 1
            on_cut = "degrade"
            [[edge]]
            from = "iq→demod"
            to = "demod"
            capacity = 1
            [[edge]]
            from = "demod.out"
            to = "end.in"
            [[path]]
            from = "iq→demod"
            to = "end"
            max_latency = "5 ms"
            [[pool]]
            name = "quick"
            operators = ["end"]
            "#,
        ]
        .map(|text| toml::from_str(text).unwrap());
        for (found, expected) in text.iter().zip(expected) {
            assert_eq!(toml::from_str::<Table>(found).unwrap(), expected);
        }
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |from: &str, to: &str| parts(&TWO.replace(from, to)).unwrap_err().to_string();
        assert!(
            wrong(r#"["iq"]"#, r#"["qi"]"#)
                .contains("which the pipeline does not have: it has iq, demod, end")
        );
        assert!(wrong("rest = true", "").contains("`demod` is on no node"));
        assert!(wrong(r#"["iq"]"#, r#"["iq", "demod", "end"]"#).contains("node `b` has no operators"));
        assert!(wrong("10.0.0.1:7400", "10.0.0.1").contains("`endpoint` of node `a`"));
        assert!(wrong("on_cut", "cut_on").contains("unknown key `cut_on`"));
        assert!(wrong("rest = true", "operators = [\"iq\", \"demod\", \"end\"]").contains("is on two nodes"));
    }
}
