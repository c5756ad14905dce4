//! [`PipelineError`]: the reason why a pipeline cannot be read, and the place in the file.

use std::fmt;
use std::ops::Range;

/// A mistake with its place in the text of the [`Source`](super::source::Source).
/// `Source::error` makes a [`PipelineError`] of it.
#[derive(Debug)]
pub(super) struct Fault {
    pub message: String,
    pub span: Option<Range<usize>>,
    pub help: Option<String>,
}

impl Fault {
    pub fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Fault { message: message.into(), span: Some(span), help: None }
    }

    pub fn help(self, help: impl Into<String>) -> Self {
        Fault { help: Some(help.into()), ..self }
    }
}

/// Reason why a pipeline cannot be read: a message, and the place in the file or setting.
///
/// ```
/// use onbeat_runtime::{Folders, Overrides, Pipeline, Registry};
/// let text = "[[operator]]\nname = \"iq\"\nkind = \"sigmf.source\"\n";
/// let (registry, overrides) = (Registry::default(), Overrides::default());
/// let error = Pipeline::parse(text, "fm.toml", ".", &registry, &overrides).unwrap_err();
/// assert_eq!(error.to_string(), "fm.toml:3:8: there is no operator kind `sigmf.source`");
/// ```
pub struct PipelineError(Box<Inner>);

struct Inner {
    message: String,
    help: Option<String>,
    file: String,
    text: String,
    /// Byte range within `text`, at character boundaries.
    span: Option<Range<usize>>,
    is_setting: bool,
}

impl PipelineError {
    /// Makes an error without a place in the text.
    pub(super) fn whole(file: &str, message: String) -> Self {
        let (file, text) = (file.to_string(), String::new());
        PipelineError(Box::new(Inner { message, help: None, file, text, span: None, is_setting: false }))
    }

    /// Makes an error for `span` of `text`. `file` is the name of the file, or the flag of the setting.
    pub(super) fn placed(
        fault: Fault,
        file: &str,
        text: &str,
        span: Option<Range<usize>>,
        is_setting: bool,
    ) -> Self {
        let span = span.map(|span| {
            let start = border(text, span.start);
            start..border(text, span.end.max(start))
        });
        PipelineError(Box::new(Inner {
            message: fault.message,
            help: fault.help,
            file: file.to_string(),
            text: text.to_string(),
            span,
            is_setting,
        }))
    }

    /// The message, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Additional help on the fix.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// Name of the file, or the flag of the command line (`--set`) if the mistake is in its value.
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// Whether the mistake is in a setting and not in the file.
    pub fn is_setting(&self) -> bool {
        self.0.is_setting
    }

    /// Text of that file, or value of that flag. Empty if the file cannot be read.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Byte range of the mistake in [`text`](PipelineError::text).
    pub fn span(&self) -> Option<Range<usize>> {
        self.0.span.clone()
    }

    /// Line and column of the place, both from 1; the column counts characters.
    pub fn line_column(&self) -> Option<(usize, usize)> {
        Some(line_column(&self.0.text, self.0.span.as_ref()?.start))
    }
}

/// `file:line:column: message`, or `--set key=value: message`.
impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, file, text, is_setting, .. } = &*self.0;
        match self.line_column() {
            _ if *is_setting => write!(f, "{file} {text}: {message}"),
            Some((line, column)) => write!(f, "{file}:{line}:{column}: {message}"),
            None => write!(f, "{file}: {message}"),
        }
    }
}

impl fmt::Debug for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        self.help().map_or(Ok(()), |help| write!(f, " ({help})"))
    }
}

impl std::error::Error for PipelineError {}

pub(super) fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..border(text, at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Last character boundary of `text` at or before `at`.
fn border(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
