//! The paths of the parts.

use super::split::{CutEdge, NodePart, add as put, operator, tables, text};
use onbeat_runtime::Error;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Paths within a node stay. One that crosses nodes becomes a path from each link on its way into the last
/// node: the due time of a message crosses links, so its latency is that from the first operator.
pub(super) fn add(
    pipeline: &Table,
    places: &BTreeMap<String, String>,
    cuts: &[CutEdge],
    parts: &mut BTreeMap<&str, NodePart>,
) -> Result<(), Error> {
    let edges: Vec<(String, String)> = tables(pipeline, "edge")
        .iter()
        .map(|edge| (operator(text(edge, "from")).to_string(), operator(text(edge, "to")).to_string()))
        .collect();
    let is_inside = |(from, to): &&(String, String)| places[from] == places[to];
    let inside: Vec<(String, String)> = edges.iter().filter(is_inside).cloned().collect();
    for path in tables(pipeline, "path") {
        let (from, to) = (text(path, "from"), text(path, "to"));
        let node = &places[operator(to)];
        if reaches(&inside, operator(from), operator(to)) {
            put(parts, node, "path", path.clone());
            continue;
        }
        if path.contains_key("max_in_flight") {
            return Err(Error::new(format!(
                "the path from `{from}` to `{to}` has `max_in_flight` and crosses nodes: limit what is in flight by \
                 the `capacity` of its edges"
            )));
        }
        let is_on_way = |cut: &&CutEdge| {
            places[&cut.to] == *node
                && reaches(&inside, &cut.to, operator(to))
                && reaches(&edges, operator(from), &cut.from)
        };
        for cut in cuts.iter().filter(is_on_way) {
            let mut own = path.clone();
            own.insert("from".to_string(), Value::String(cut.name.clone()));
            put(parts, node, "path", own);
        }
    }
    Ok(())
}

/// Whether edges lead from one operator to another, or they are the same.
fn reaches(edges: &[(String, String)], from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        for (_, next) in edges.iter().filter(|(begin, _)| begin == at) {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}
