//! What stands in the attributes: `#[operator(...)]`, `#[parameter(...)]`, `#[port(...)]`.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, Result};

/// Text of the comments on an item, or the one expression that they are, as `#[doc = include_str!(...)]`.
pub enum Comment {
    Text(String),
    Expression(Expr),
}

/// Reads the comments of an item.
pub fn comment(attributes: &[Attribute]) -> Comment {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        match &attribute.meta {
            Meta::NameValue(pair) => match &pair.value {
                Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => lines.push(line.value()),
                other => return Comment::Expression(other.clone()),
            },
            _ => continue,
        }
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    Comment::Text(lines.join("\n").trim().to_string())
}

/// The first paragraph of a text, on one line, and the rest.
pub fn paragraphs(text: &str) -> (String, String) {
    let (first, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    (first.replace('\n', " "), rest.trim().to_string())
}

/// A summary as kinds have it: without a full stop, and with a small first letter.
pub fn summary(paragraph: &str) -> String {
    let text = paragraph.trim_end_matches('.');
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return String::new() };
    // An abbreviation stays as it is.
    if letters.clone().next().is_some_and(char::is_uppercase) {
        return text.to_string();
    }
    first.to_lowercase().chain(letters).collect()
}

/// Value of `#[parameter(default)]` and its like.
pub enum Start {
    /// `default`: what the type begins with.
    OfType,
    /// `default = "20 ms"`: a text, read like one in a file.
    Text(LitStr),
    /// `default = 3`: any other expression.
    Value(Expr),
}

/// Reads an expression, or a text.
pub fn value(meta: &ParseNestedMeta) -> Result<Start> {
    Ok(match meta.value()?.parse::<Expr>()? {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Start::Text(text),
        other => Start::Value(other),
    })
}
