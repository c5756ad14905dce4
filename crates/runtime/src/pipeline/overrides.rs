//! Settings from outside the file: `--set channel.gain=2`.

use super::error::Fault;
use super::source::shifted;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Settings that replace those of a file before it is read.
///
/// A key is one of the file's top level (`duration`, `defaults.capacity`) or `operator.key`. An operator of a
/// subgraph has a name such as `radio/demod`. A value is TOML; if it does not parse, it is plain text.
///
/// ```
/// use onbeat_runtime::Overrides;
/// let mut overrides = Overrides::default();
/// overrides.set("radio/demod.gain=2");
/// overrides.flag("--duration", "duration", "30s");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Overrides(pub(super) Vec<Override>);

/// One setting from outside.
#[derive(Debug, Clone)]
pub(super) struct Override {
    /// Flag that gave the setting: `--set`.
    pub flag: String,
    /// Text of the setting: `radio/demod.gain=2`.
    pub text: String,
    /// Key of the setting, if the flag determines it.
    key: Option<String>,
    /// Whether the value is always text.
    is_text: bool,
}

impl Overrides {
    /// Adds a setting, written `key=value`. Mistakes are reported when the pipeline is read.
    pub fn set(&mut self, assignment: impl Into<String>) {
        self.0.push(Override {
            flag: "--set".to_string(),
            text: assignment.into(),
            key: None,
            is_text: false,
        });
    }

    /// Adds a setting that has a flag of its own. Errors name that flag.
    pub fn flag(&mut self, flag: &str, key: &str, value: impl Into<String>) {
        let (flag, key) = (flag.to_string(), Some(key.to_string()));
        self.0.push(Override { flag, text: value.into(), key, is_text: false });
    }

    /// Adds a setting as [`flag`](Overrides::flag) does, with a value that is always text:
    /// `7` may be the name of a file.
    pub fn text(&mut self, flag: &str, key: &str, value: impl Into<String>) {
        let (flag, key) = (flag.to_string(), Some(key.to_string()));
        self.0.push(Override { flag, text: value.into(), key, is_text: true });
    }
}

/// A setting with its key split into parts and its value parsed.
#[derive(Debug, Clone)]
pub(super) struct Setting<'i> {
    /// Parts of the key. If there are several, the first may be an operator.
    pub path: Vec<&'i str>,
    /// Place of the key.
    pub span: Range<usize>,
    pub value: Spanned<DeValue<'i>>,
}

impl Override {
    /// Parses the setting. `base` is the place of its text in the source.
    pub fn read(&self, base: usize) -> Result<Setting<'_>, Fault> {
        let (key, value) = match &self.key {
            Some(key) => (key.as_str(), self.text.as_str()),
            None => self.text.split_once('=').ok_or_else(|| {
                Fault::at(base..base + self.text.len(), "a setting is written KEY=VALUE")
                    .help("such as channel.gain=2, radio/demod.gain=2 or duration=30s")
            })?,
        };
        let start = base + self.text.len() - value.len();
        let span = if self.key.is_some() { start..start + value.len() } else { base..base + key.len() };
        let path: Vec<&str> = key.trim().split('.').collect();
        if path.iter().any(|part| part.is_empty()) {
            return Err(Fault::at(
                span,
                format!("`{key}` is not a key: write operator.key, or a key of the top level"),
            ));
        }
        let blanks = value.len() - value.trim_start().len();
        let value = match DeValue::parse(value.trim()) {
            Ok(value) if !self.is_text => shifted(value, start + blanks),
            _ => Spanned::new(start..start + value.len(), DeValue::String(Cow::Borrowed(value))),
        };
        Ok(Setting { path, span, value })
    }
}

impl<'i> Setting<'i> {
    /// Puts the value into `table`, under the parts of its key from `depth` on.
    pub fn apply(&self, table: &mut DeTable<'i>, depth: usize) -> Result<(), Fault> {
        let (&key, rest) = self.path[depth..].split_first().expect("a key has at least one part");
        if rest.is_empty() {
            table.insert(Spanned::new(self.span.clone(), Cow::Borrowed(key)), self.value.clone());
            return Ok(());
        }
        if !table.contains_key(key) {
            let empty = Spanned::new(self.value.span(), DeValue::Table(DeTable::new()));
            table.insert(Spanned::new(self.span.clone(), Cow::Borrowed(key)), empty);
        }
        match table.get_mut(key).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => self.apply(inner, depth + 1),
            _ => Err(Fault::at(
                self.span.clone(),
                format!("`{key}` is not a table: it has no `{}`", rest.join(".")),
            )),
        }
    }
}
