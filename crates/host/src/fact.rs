//! Something that is known of a machine, or why it is not.

use crate::tree::Tree;
use std::io;

/// A fact, or the reason why there is none. Nothing that a machine says, or refuses to say, is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact<T> {
    /// It is so.
    Known(T),
    /// Why it is not known: the file is not there, may not be read, or is not understood.
    Unknown(String),
}

impl<T> Fact<T> {
    /// What is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Unknown(_) => None,
        }
    }

    /// Why it is not known; nothing where it is.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Fact::Known(_) => "",
            Fact::Unknown(why) => why,
        }
    }

    /// What is made of it.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known(value) => Fact::Known(make(value)),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// What is made of it, where that is possible.
    pub fn and_then<U>(self, make: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Fact::Known(value) => make(value),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// The other one, where this is not known.
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
        Fact::Unknown("nobody has looked".to_owned())
    }
}

/// The content of a file without blanks and zero bytes around it.
pub fn text(tree: &dyn Tree, path: &str) -> Fact<String> {
    match tree.read(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Fact::Known(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
        }
        Err(error) => Fact::Unknown(reason(path, &error)),
    }
}

/// The content of a file as `read` understands it.
pub fn parsed<T>(tree: &dyn Tree, path: &str, read: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
    text(tree, path).and_then(|text| match read(&text) {
        Some(value) => Fact::Known(value),
        None => Fact::Unknown(format!("/{path}: `{}` is not understood", short(&text))),
    })
}

/// A whole number.
pub fn number(tree: &dyn Tree, path: &str) -> Fact<i64> {
    parsed(tree, path, |text| text.parse().ok())
}

/// 0 or 1, N or Y.
pub fn switch(tree: &dyn Tree, path: &str) -> Fact<bool> {
    parsed(tree, path, |text| match text {
        "0" | "N" => Some(false),
        "1" | "Y" => Some(true),
        _ => None,
    })
}

/// The word in brackets, of those that there are: `always [madvise] never`.
pub fn chosen(tree: &dyn Tree, path: &str) -> Fact<String> {
    parsed(tree, path, |text| bracketed(text).map(str::to_owned))
}

/// The word in `[brackets]`, or in `(parentheses)`.
pub fn bracketed(text: &str) -> Option<&str> {
    let open = text.find(['[', '('])?;
    let rest = &text[open + 1..];
    let word = &rest[..rest.find([']', ')'])?];
    (!word.is_empty()).then_some(word)
}

fn reason(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("/{path} is not there"),
        io::ErrorKind::PermissionDenied => format!("/{path}: not permitted"),
        _ => format!("/{path}: {error}"),
    }
}

/// The begin of a text, without what would steer a terminal.
pub fn short(text: &str) -> String {
    const MOST: usize = 60;
    let clean: String = text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > MOST { clean + "..." } else { clean }
}
