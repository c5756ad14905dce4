//! Where the operators of a file are written, for mistakes that show only when an operator starts or works.

use super::error::{Fault, PipelineError};
use super::overrides::Overrides;
use super::source::Source;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Places of an operator and of its parameters.
#[derive(Debug, Clone, Default)]
pub(super) struct OperatorPlace {
    /// Place of its name.
    pub name: Range<usize>,
    /// Its keys, each with the places of its values, and with their texts if these are texts.
    values: Vec<(String, Option<String>, Range<usize>)>,
}

impl OperatorPlace {
    pub fn new(name: Range<usize>, table: &DeTable<'_>) -> Self {
        let mut values = Vec::new();
        for (key, value) in
            table.iter().filter(|(key, _)| !["name", "kind"].contains(&key.get_ref().as_ref()))
        {
            add(key.get_ref(), value, &mut values);
        }
        OperatorPlace { name, values }
    }

    /// Place of what a message is about: a parameter that it names, or whose text it contains, or else the
    /// operator.
    pub fn of(&self, message: &str) -> Range<usize> {
        let named = |word: &str| self.values.iter().find(|(key, ..)| key == word);
        let quoted = message.split('`').skip(1).step_by(2).find_map(named);
        let shown = || {
            let contained = self
                .values
                .iter()
                .filter(|(_, text, _)| text.as_ref().is_some_and(|text| contains(message, text)));
            contained.max_by_key(|(_, text, _)| text.as_ref().map(String::len))
        };
        quoted.or_else(shown).map_or_else(|| self.name.clone(), |(.., at)| at.clone())
    }
}

fn add(key: &str, value: &Spanned<DeValue<'_>>, values: &mut Vec<(String, Option<String>, Range<usize>)>) {
    match value.get_ref() {
        DeValue::Array(items) if !items.is_empty() => {
            items.iter().for_each(|item| add(key, item, values));
        }
        DeValue::String(text) => values.push((key.to_string(), Some(text.to_string()), value.span())),
        _ => values.push((key.to_string(), None, value.span())),
    }
}

/// Whether a message has this text in it, not as a part of a longer word.
fn contains(message: &str, text: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    !text.is_empty()
        && message.match_indices(text).any(|(at, _)| {
            is_edge(message[..at].chars().next_back()) && is_edge(message[at + text.len()..].chars().next())
        })
}

/// The text that a pipeline was read from, with the places of its operators. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Written(Arc<WrittenText>);

#[derive(Debug)]
struct WrittenText {
    file: String,
    text: String,
    overrides: Overrides,
    operators: HashMap<String, OperatorPlace>,
}

impl Written {
    pub(super) fn new(source: &Source<'_>, operators: HashMap<String, OperatorPlace>) -> Self {
        let (file, text, overrides) = source.owned();
        Written(Arc::new(WrittenText { file, text, overrides, operators }))
    }

    /// Makes an error of what an operator reports, placed at the parameter that the message is about, or else
    /// at the operator's name.
    pub fn error(&self, operator: &str, message: &str) -> PipelineError {
        let WrittenText { file, text, overrides, operators } = &*self.0;
        // Its name may be that of a parameter, too.
        let about = message.strip_prefix(&format!("operator `{operator}`: ")).unwrap_or(message);
        let span = operators.get(operator).map(|place| place.of(about));
        Source::new(file, text, overrides).error(Fault { message: message.to_string(), span, help: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_belongs_to_the_parameter_that_it_is_about() {
        let text = "name = \"gain\"\nkind = \"k\"\ngain = 3\npath = \"a.wav\"\nmore = [\"b.wav\", \"b\"]\n";
        let table = DeTable::parse(text).unwrap().into_inner();
        let place = OperatorPlace::new(table["name"].span(), &table);
        let overrides = Overrides::default();
        let written = Written::new(
            &Source::new("a.toml", text, &overrides),
            HashMap::from([("gain".to_string(), place)]),
        );
        for (message, line) in [
            ("operator `gain`: it failed", Some(1)),
            ("operator `gain`: `gain` is 3", Some(3)),
            ("operator `gain`: cannot open folder/a.wav: no", Some(4)),
            // Longer words and other files are not meant.
            ("operator `gain`: cannot open aa.wav: no", Some(1)),
            ("operator `gain`: cannot open b.wav: no", Some(5)),
            ("dead-lock", Some(1)),
        ] {
            let error = written.error("gain", message);
            assert_eq!(error.line_column().map(|(line, _)| line), line, "{message}");
        }
        assert_eq!(written.error("other", "it failed").to_string(), "a.toml: it failed");
    }
}
