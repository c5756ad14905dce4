//! The list of operator kinds, by what goes in and out.

use super::Document;
use super::table::{Column, Table, Unit};
use onbeat::{Kind, PortInfo, Registry};
use serde_json::json;
use std::collections::BTreeSet;

/// Words for message types, as the operators' documentation uses them.
const WORDS: [(&str, &str); 9] = [
    ("Chunk<Complex<f32>>", "complex"),
    ("Chunk<f32>", "real"),
    ("Chunk<u8>", "bytes"),
    ("u64", "number"),
    ("f64", "value"),
    ("String", "text"),
    ("Arc<str>", "text"),
    ("Frame", "frame"),
    ("Text", "text"),
];

/// Lists all kinds, or those in whose description each of `words` occurs, best matches first.
pub fn kinds(registry: &Registry, words: &[String]) -> Document {
    let wanted = split(words);
    let mut all: Vec<ListedKind> =
        registry.kinds().map(ListedKind::new).filter(|kind| kind.has_all(&wanted)).collect();
    all.sort_by_key(|listed| {
        (listed.distance(&wanted), listed.group, listed.flow.clone(), listed.kind.name())
    });
    let number =
        if all.len() == 1 { "1 operator kind".into() } else { format!("{} operator kinds", all.len()) };
    let count =
        if wanted.is_empty() { number } else { format!("{number} with {}, best first", wanted.join(", ")) };
    Document {
        head: vec![format!("{count}; `onbeat operators NAME` shows one, `--find WORD` searches")],
        tables: vec![Table {
            columns: vec![
                Column::new("kind", "kind", Unit::Text),
                Column::new("flow", "in → out", Unit::Text),
                Column::new("summary", "description", Unit::Text),
            ],
            rows: all
                .iter()
                .map(|listed| {
                    vec![listed.kind.name().into(), listed.flow.as_str().into(), listed.kind.summary().into()]
                })
                .collect(),
        }],
        tail: Vec::new(),
        json: all
            .iter()
            .map(|listed| {
                json!({ "name": listed.kind.name(), "flow": listed.flow, "summary": listed.kind.summary() })
            })
            .collect(),
    }
}

/// Whether each of `words` occurs in the description of a kind.
pub fn has_words(kind: &Kind, words: &[String]) -> bool {
    ListedKind::new(kind).has_all(&split(words))
}

fn split(words: &[String]) -> Vec<String> {
    words.iter().flat_map(|words| words.split_whitespace()).map(str::to_lowercase).collect()
}

/// A kind, and where it stands in the list.
struct ListedKind<'r> {
    kind: &'r Kind,
    /// 0 for sources, 1 for what has inputs and outputs, 2 for sinks.
    group: u8,
    flow: String,
    /// All texts in which a word is searched, in lower case.
    text: String,
}

impl<'r> ListedKind<'r> {
    fn new(kind: &'r Kind) -> Self {
        let (inputs, outputs) = kind.ports();
        let group = match (inputs.iter().any(|port| port.required), outputs.is_empty()) {
            (_, true) => 2,
            (false, _) if inputs.is_empty() => 0,
            _ => 1,
        };
        let flow = [types(&inputs), "→".to_string(), types(&outputs)].join(" ").trim().to_string();
        let mut text = [kind.name(), kind.summary(), kind.details(), &flow].join(" ");
        let schema = kind.schema();
        for (name, about) in schema.get("properties").and_then(|all| all.as_object()).into_iter().flatten() {
            text.push_str(&format!(" {name} {}", about["description"].as_str().unwrap_or_default()));
        }
        ListedKind { kind, group, flow, text: text.to_lowercase() }
    }

    fn has_all(&self, words: &[String]) -> bool {
        words.iter().all(|word| self.text.contains(word))
    }

    /// Sum over the words: 0 in the name, 1 in the summary, 2 elsewhere.
    fn distance(&self, words: &[String]) -> usize {
        let summary = self.kind.summary().to_lowercase();
        let one = |word: &String| match self.kind.name().contains(word.as_str()) {
            true => 0,
            false => 2 - usize::from(summary.contains(word.as_str())),
        };
        words.iter().map(one).sum()
    }
}

/// The types of ports, each once.
fn types(ports: &[PortInfo]) -> String {
    let word = |port: &PortInfo| {
        let known = WORDS.iter().find(|(message, _)| *message == port.message);
        known.map_or(port.message.clone(), |(_, word)| (*word).to_string())
    };
    ports.iter().map(word).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}
