//! The paths of the parts.

use super::cut::CutEdge;
use super::split::{NodePart, add as put, operator, tables, text};
use onbeat_runtime::Error;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// A path within a node stays. One that crosses nodes becomes a path through each of them, from where it
/// enters to where it leaves, with the whole limit: the due time of a message crosses links. So the record of
/// a node explains the messages that were too late already when they left it.
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
        let (from_text, to_text) = (text(path, "from"), text(path, "to"));
        let (from, to) = (operator(from_text), operator(to_text));
        let enters = cuts.iter().filter(|cut| reaches(&edges, from, &cut.from));
        let leaves = cuts.iter().filter(|cut| reaches(&edges, &cut.to, to));
        // The operator in the part, and the one at this end of the edge.
        let begins: Vec<_> =
            [(from_text, from)].into_iter().chain(enters.map(|cut| (&*cut.name, &*cut.to))).collect();
        let ends: Vec<_> =
            [(to_text, to)].into_iter().chain(leaves.map(|cut| (&*cut.name, &*cut.from))).collect();
        for ((begin, first), (end, last)) in
            begins.iter().flat_map(|begin| ends.iter().map(move |end| (begin, end)))
        {
            if places[*first] != places[*last] || !reaches(&inside, first, last) {
                continue;
            }
            let is_whole = (*begin, *end) == (from_text, to_text);
            if !is_whole && path.contains_key("max_in_flight") {
                return Err(Error::new(format!(
                    "the path from `{from}` to `{to}` has `max_in_flight` and crosses nodes: limit the messages \
                     in flight by the `capacity` of its edges"
                )));
            }
            let mut own = path.clone();
            own.insert("from".to_string(), Value::String((*begin).to_string()));
            own.insert("to".to_string(), Value::String((*end).to_string()));
            put(parts, &places[*first], "path", own);
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
