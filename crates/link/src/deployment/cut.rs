//! An edge between two nodes, and both ends of the link in its place.

use super::split::{TypedEdge, operator, text};
use onbeat_runtime::Error;
use toml::{Table, Value};

/// An edge between two nodes.
#[derive(Clone)]
pub(super) struct CutEdge {
    /// Name of the link, and of the operators at both ends.
    pub name: String,
    pub from: String,
    pub to: String,
    /// What the kinds of its message type end with.
    suffix: &'static str,
    capacity: i64,
    waits: bool,
}

impl CutEdge {
    /// Messages in flight over the link. Of an edge that waits, at most its capacity is in flight or in a
    /// queue, with one message in each of the two queues beside the link.
    fn window(&self) -> i64 {
        if self.waits { (self.capacity - 2).max(1) } else { 1 }
    }
}

pub(super) fn cut(edge: &Table, edges: &[TypedEdge], cuts: &mut Vec<CutEdge>) -> Result<CutEdge, Error> {
    let (from, to) = (text(edge, "from"), text(edge, "to"));
    let what = format!("the edge from `{from}` to `{to}`");
    if edge.contains_key("initial") {
        return Err(Error::new(format!("{what} has `initial`: put both operators on one node")));
    }
    let is_it = |typed: &&TypedEdge| matches(from, &typed.from) && matches(to, &typed.to);
    let typed = edges.iter().find(is_it).ok_or_else(|| Error::new(format!("{what} is not in the plan")))?;
    let suffix = match typed.message.as_str() {
        "Chunk<f32>" => "",
        "Chunk<Complex<f32>>" => ".complex",
        "Chunk<u8>" => ".bytes",
        "u64" => ".numbers",
        "f64" => ".value",
        "String" => ".text",
        "Frame" => ".frames",
        other => {
            let text = format!("{what} carries {other}, which links do not: put both operators on one node");
            return Err(Error::new(text));
        }
    };
    let base = format!("{}→{}", operator(from), operator(to));
    let mut name = base.clone();
    let mut number = 1;
    while cuts.iter().any(|cut: &CutEdge| cut.name == name) {
        number += 1;
        name = format!("{base}-{number}");
    }
    let made = CutEdge {
        name,
        from: operator(from).to_string(),
        to: operator(to).to_string(),
        suffix,
        capacity: i64::try_from(typed.capacity).unwrap_or(i64::MAX),
        waits: matches!(text(edge, "when_full"), "" | "wait"),
    };
    cuts.push(made.clone());
    Ok(made)
}

/// Whether an end of an edge in the file is this one of the plan: with or without its port, or inside of a
/// subgraph.
fn matches(file: &str, plan: &str) -> bool {
    let (name, port) = file.split_once('.').map_or((file, None), |(name, port)| (name, Some(port)));
    match plan.strip_prefix(name) {
        Some(rest) if rest.starts_with('/') => true,
        Some(rest) => rest.strip_prefix('.').is_some_and(|found| port.is_none_or(|port| port == found)),
        None => false,
    }
}

/// Settings of a link.
pub(super) fn link_settings(cut: &CutEdge, defaults: &Table) -> Table {
    let mut settings = defaults.clone();
    settings.entry("window").or_insert(Value::Integer(cut.window()));
    settings
}

/// Both ends. `peers` are the names that they must prove to each other: the producer sees the second.
pub(super) fn ends(cut: &CutEdge, settings: &Table, listen: &str, peers: Option<[&str; 2]>) -> [Table; 2] {
    [("sink", "connect", 1), ("source", "listen", 0)].map(|(end, key, other)| {
        let mut table = settings.clone();
        table.insert("name".to_string(), Value::String(cut.name.clone()));
        table.insert("kind".to_string(), Value::String(format!("link.{end}{}", cut.suffix)));
        table.insert("link".to_string(), Value::String(cut.name.clone()));
        table.insert(key.to_string(), Value::String(listen.to_string()));
        if let Some(peers) = peers {
            table.insert("peer".to_string(), Value::String(peers[other].to_string()));
        }
        table
    })
}

/// The edges to the sink and from the source.
pub(super) fn edges_of(edge: &Table, cut: &CutEdge, settings: &Table) -> [Table; 2] {
    let mut inward = edge.clone();
    inward.insert("to".to_string(), Value::String(cut.name.clone()));
    if cut.waits && settings.get("window").and_then(Value::as_integer) == Some(cut.window()) {
        inward.insert("capacity".to_string(), Value::Integer(1));
    }
    let mut outward = edge.clone();
    outward.remove("when_full");
    outward.insert("from".to_string(), Value::String(cut.name.clone()));
    outward.insert("capacity".to_string(), Value::Integer(1));
    [inward, outward]
}
