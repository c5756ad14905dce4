//! A value known of a machine, or the reason why it is unknown.

use crate::tree::Tree;
use std::io;

/// A fact, or the reason why there is none. A file that is missing or unreadable is never an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact<T> {
    /// The value.
    Known(T),
    /// Why the value is unknown: the file does not exist, is unreadable, or is not understood.
    Unknown(String),
}

impl<T> Fact<T> {
    /// Returns the value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Unknown(_) => None,
        }
    }

    /// Returns why the value is unknown; empty if it is known.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Fact::Known(_) => "",
            Fact::Unknown(why) => why,
        }
    }

    /// Converts the value.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known(value) => Fact::Known(make(value)),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Converts the value, or returns why that fails.
    pub fn and_then<U>(self, make: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Fact::Known(value) => make(value),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Returns `other` if this value is unknown.
    #[must_use]
    pub fn or(self, other: Fact<T>) -> Fact<T> {
        match (self, other) {
            (Fact::Unknown(_), Fact::Known(value)) => Fact::Known(value),
            (own, _) => own,
        }
    }
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Fact::Unknown("not examined".to_owned())
    }
}

/// Reads a file, without white space and zero bytes around its content.
pub fn text(tree: &dyn Tree, path: &str) -> Fact<String> {
    match tree.read(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Fact::Known(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
        }
        Err(error) => Fact::Unknown(reason(path, &error)),
    }
}

/// Reads a file and parses it with `read`.
pub fn parsed<T>(tree: &dyn Tree, path: &str, read: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
    text(tree, path).and_then(|text| match read(&text) {
        Some(value) => Fact::Known(value),
        None => Fact::Unknown(format!("/{path}: `{}` is not understood", short(&text))),
    })
}

/// Reads a whole number.
pub fn number(tree: &dyn Tree, path: &str) -> Fact<i64> {
    parsed(tree, path, |text| text.parse().ok())
}

/// Reads a switch: 0 or 1, N or Y.
pub fn switch(tree: &dyn Tree, path: &str) -> Fact<bool> {
    parsed(tree, path, |text| match text {
        "0" | "N" => Some(false),
        "1" | "Y" => Some(true),
        _ => None,
    })
}

/// Reads the selected word of a list: `always [madvise] never`.
pub fn chosen(tree: &dyn Tree, path: &str) -> Fact<String> {
    parsed(tree, path, |text| bracketed(text).map(str::to_owned))
}

/// Returns the word in `[brackets]` or `(parentheses)`.
pub fn bracketed(text: &str) -> Option<&str> {
    let open = text.find(['[', '('])?;
    let rest = &text[open + 1..];
    let word = &rest[..rest.find([']', ')'])?];
    (!word.is_empty()).then_some(word)
}

fn reason(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("/{path} does not exist"),
        io::ErrorKind::PermissionDenied => format!("/{path}: not permitted"),
        _ => format!("/{path}: {error}"),
    }
}

/// Shortens a text and replaces its control characters.
pub fn short(text: &str) -> String {
    const MOST: usize = 60;
    let clean: String = text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > MOST { clean + "..." } else { clean }
}
