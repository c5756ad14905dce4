//! Writer of HTML and SVG. All text from outside this crate is escaped.

use std::fmt::{Display, Write};

/// Part of a page. Names of elements and attributes are constants; everything else goes through [`escape`].
#[derive(Debug, Default, Clone)]
pub(super) struct Html(String);

/// Attribute: its name and its value.
pub(super) type Attribute<'a> = (&'static str, &'a dyn Display);

impl Html {
    /// Writes constant HTML of this crate.
    pub fn constant(&mut self, html: &'static str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    pub fn open(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) -> &mut Self {
        self.begin(tag, attributes);
        self.0.push('>');
        self
    }

    pub fn close(&mut self, tag: &'static str) -> &mut Self {
        write!(self.0, "</{tag}>").expect("a string takes all");
        self
    }

    /// Writes an empty SVG element.
    pub fn shape(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) -> &mut Self {
        self.begin(tag, attributes);
        self.0.push_str("/>");
        self
    }

    pub fn text(&mut self, text: impl Display) -> &mut Self {
        escape(&mut self.0, &text.to_string());
        self
    }

    /// Writes an element that contains only text.
    pub fn element(&mut self, tag: &'static str, class: &'static str, text: impl Display) -> &mut Self {
        if class.is_empty() {
            self.open(tag, &[]);
        } else {
            self.open(tag, &[("class", &class)]);
        }
        self.text(text).close(tag)
    }

    pub fn add(&mut self, other: &Html) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    pub fn into_string(self) -> String {
        self.0
    }

    fn begin(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        write!(self.0, "<{tag}").expect("a string takes all");
        for (name, value) in attributes {
            write!(self.0, " {name}=\"").expect("a string takes all");
            escape(&mut self.0, &value.to_string());
            self.0.push('"');
        }
    }
}

/// Escapes the special characters of HTML. Replaces control characters and those that change the text
/// direction by U+FFFD.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' | '\r' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                out.push('\u{fffd}');
            }
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}
