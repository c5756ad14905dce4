//! Parameters of one operator: known keys, and errors that point at the value.

use super::error::Fault;
use super::section::{Section, unknown_key};
use super::written::OperatorPlace;
use crate::base::wording::plain;
use crate::graph::kind::{Folders, Kind, MakeError};
use crate::graph::values::{NamedValues, ParameterStatus};
use crate::operator::Operator;
use std::collections::HashMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys that every operator has in addition to its parameters.
const OWN: [&str; 9] =
    ["name", "kind", "deadline", "budget", "on_miss", "cost", "when", "on_error", "restart"];

/// Keys of the kinds.
#[derive(Default)]
pub(super) struct KnownKeys {
    /// Names of the parameters by kind; `None` if any key is allowed.
    names: HashMap<&'static str, Option<Vec<String>>>,
    /// Units by kind and parameter.
    units: HashMap<&'static str, HashMap<String, String>>,
}

impl KnownKeys {
    /// Checks that the kind knows every key of the operator in `section`.
    pub fn check(&mut self, kind: &Kind, section: &Section<'_, '_>) -> Result<(), Fault> {
        let known = self.names.entry(kind.name()).or_insert_with(|| parameter_names(kind));
        let Some(known) = known else { return Ok(()) };
        let is_known = |key: &str| OWN.contains(&key) || known.iter().any(|name| name == key);
        let unknown = section.table.keys().filter(|key| !is_known(key.get_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        let all: Vec<&str> = known.iter().map(String::as_str).chain(OWN).collect();
        Err(unknown_key(key, &format!("{} ({})", section.what, kind.name()), &all))
    }

    /// The parameters of an operator that can be changed during a run, of all that it was made with.
    pub fn values(
        &mut self,
        kind: &Kind,
        operator: &str,
        made: &dyn Operator,
        all: &serde_json::Value,
    ) -> NamedValues {
        let settable = made.settable();
        if settable.is_empty() {
            return Vec::new();
        }
        let units = self.units.entry(kind.name()).or_insert_with(|| units(kind));
        let of_name = |name: &&str| {
            let (value, unit) = (all.get(name)?.clone(), units.get(*name).cloned());
            Some((
                operator.to_string(),
                ParameterStatus { name: name.to_string(), value, unit, sample: None, before: None },
            ))
        };
        settable.iter().filter_map(of_name).collect()
    }
}

/// Units of the parameters that have one.
fn units(kind: &Kind) -> HashMap<String, String> {
    let schema = kind.schema();
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    let unit = |about: &serde_json::Value| Some(about.get("x-unit")?.as_str()?.to_string());
    let all = properties.into_iter().flatten();
    all.filter_map(|(name, about)| Some((name.clone(), unit(about)?))).collect()
}

fn parameter_names(kind: &Kind) -> Option<Vec<String>> {
    let schema = kind.schema();
    let object = schema.as_object()?;
    // With several shapes, or keys that are data, serde reports the mistakes.
    let open = ["oneOf", "anyOf", "allOf", "$ref"].iter().any(|key| object.contains_key(*key));
    let more = object.get("additionalProperties").is_some_and(|more| more != &serde_json::Value::Bool(false));
    if open || more {
        return None;
    }
    let properties = object.get("properties").and_then(|properties| properties.as_object());
    Some(properties.map_or_else(Vec::new, |properties| properties.keys().cloned().collect()))
}

/// Makes the operator in `section`, which is written at `place`.
pub(super) fn make(
    kind: &Kind,
    section: &Section<'_, '_>,
    folders: &Folders,
    place: &OperatorPlace,
) -> Result<(Box<dyn Operator>, serde_json::Value), Fault> {
    let mut parameters = section.table.clone();
    for own in OWN {
        parameters.remove(own);
    }
    let what = &section.what;
    kind.make(Spanned::new(section.span.clone(), parameters), folders).map_err(|error| match error {
        MakeError::Parameter(error) => {
            let span = error.span().unwrap_or(section.span.clone());
            if let Some(missing) = error.message().strip_prefix("missing field ") {
                let key = key_at(section.table, &span).map_or(String::new(), |key| format!("`{key}` of "));
                let fault = Fault::at(span, format!("{key}{what} ({}) lacks {missing}", kind.name()));
                return match description(kind, missing.trim_matches('`')) {
                    Some(about) => fault.help(format!("{missing}: {about}")),
                    None => fault,
                };
            }
            let (message, help) = plain(error.message());
            let key = key_at(section.table, &span).map_or(String::new(), |key| format!("`{key}` of "));
            Fault { message: format!("{key}{what}: {message}"), span: Some(span), help }
        }
        MakeError::Operator(error) => {
            let message = error.to_string();
            Fault::at(place.of(&message), format!("{what}: {message}"))
        }
    })
}

/// First sentence of a parameter's description.
fn description(kind: &Kind, parameter: &str) -> Option<String> {
    let schema = kind.schema();
    let text = schema.pointer(&format!("/properties/{parameter}/description"))?.as_str()?;
    let paragraph = text.split("\n\n").next()?.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |end| end + 1);
    Some(paragraph[..end].to_string())
}

/// Dotted key whose value is at `span`.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let (key, value) = table.iter().find(|(_, value)| contains(value, span))?;
    match value.get_ref() {
        DeValue::Table(inner) => Some(match key_at(inner, span) {
            Some(rest) => format!("{}.{rest}", key.get_ref()),
            None => key.get_ref().to_string(),
        }),
        _ => Some(key.get_ref().to_string()),
    }
}

/// Span of a value. Spans of tables with dotted keys or heads of their own do not contain their values.
fn contains(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> bool {
    let at = value.span();
    let inside = match value.get_ref() {
        DeValue::Table(table) => table.iter().any(|(_, value)| contains(value, span)),
        _ => false,
    };
    inside || (at.start <= span.start && span.end <= at.end)
}
