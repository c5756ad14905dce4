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
    words.iter().flat_map(|words| words.split_whitespace()).map(plain).collect()
}

/// In lower case and without hyphens.
fn plain(word: &str) -> String {
    word.to_lowercase().replace('-', "")
}

/// Words of the trade for kinds whose descriptions use others, by the begins of their names.
const TRADE: [(&str, &str); 14] = [
    ("delay", "echo"),
    ("expression", "math formula"),
    ("fir.filter", "smooth"),
    ("gain", "volume amplify attenuate"),
    ("iir", "lowpass highpass bandpass smooth biquad"),
    ("mean", "moving average smooth"),
    ("mix", "mixes mixer volume"),
    ("saxpy", "scale multiply"),
    ("select", "switch"),
    ("sum", "add mix"),
    ("threshold", "count crossing trigger comparator"),
    ("valve", "switch mute"),
    ("wav.sink", "wave record recorder"),
    ("wav.source", "wave"),
];

/// Whether a word of a text is the searched one, or a longer form of it.
fn is_form(word: &str, searched: &str) -> bool {
    let longest = if searched.len() < 4 { 2 } else { 4 };
    word.strip_prefix(searched).is_some_and(|rest| rest.len() <= longest)
}

/// A kind, and where it stands in the list.
struct ListedKind<'r> {
    kind: &'r Kind,
    /// 0 for sources, 1 for what has inputs and outputs, 2 for sinks.
    group: u8,
    flow: String,
    /// The name, and the words of the summary and of all other texts.
    name: String,
    summary: Vec<String>,
    words: Vec<String>,
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
        let mut text = [kind.details(), &flow].join(" ");
        let trade = TRADE.iter().filter(|(name, _)| kind.name().starts_with(name));
        let summary = trade.fold(kind.summary().to_string(), |text, (_, words)| text + " " + words);
        let schema = kind.schema();
        for (name, about) in schema.get("properties").and_then(|all| all.as_object()).into_iter().flatten() {
            text.push_str(&format!(" {name} {}", about["description"].as_str().unwrap_or_default()));
        }
        let words = |text: &str| -> Vec<String> {
            let parts = text.split(|c: char| !c.is_alphanumeric() && c != '-');
            parts.filter(|word| !word.is_empty()).map(plain).collect()
        };
        ListedKind {
            kind,
            group,
            flow,
            name: plain(kind.name()),
            summary: words(&summary),
            words: words(&text),
        }
    }

    fn has_all(&self, words: &[String]) -> bool {
        words.iter().all(|word| self.distance_of(word).is_some())
    }

    /// Sum over the words.
    fn distance(&self, words: &[String]) -> usize {
        words.iter().filter_map(|word| self.distance_of(word)).sum()
    }

    /// 0 in the name, 1 in the summary, 2 elsewhere.
    fn distance_of(&self, word: &str) -> Option<usize> {
        let is_in = |words: &[String]| words.iter().any(|one| is_form(one, word));
        let is_named = self.name.contains(word);
        is_named.then_some(0).or(is_in(&self.summary).then_some(1)).or(is_in(&self.words).then_some(2))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_words_of_the_trade() {
        let registry = onbeat::operators::registry();
        let found = |words: &str| -> Vec<String> {
            let json = kinds(&registry, &[words.to_string()]).json;
            let names = json.as_array().expect("a list").iter();
            names.map(|kind| kind["name"].as_str().expect("a name").to_string()).collect()
        };
        for (words, name) in [
            ("moving average", "mean"),
            ("lowpass", "fir.filter"),
            ("low-pass", "fir.decimate"),
            ("echo", "delay"),
            ("mixer", "mix"),
            ("wave", "wav.sink"),
            ("count", "threshold"),
            ("FM", "quad.demod"),
        ] {
            assert!(found(words).iter().any(|known| known.starts_with(name)), "{words}: {:?}", found(words));
        }
        assert_eq!(found("add")[..2], ["add.complex", "add"], "the best matches are first");
        assert!(!found("sum").contains(&"value.sink".to_string()), "it summarises");
    }
}
