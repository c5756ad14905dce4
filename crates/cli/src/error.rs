//! Errors, shown with the line of the file if there is one.

use crate::{stderr, views};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode, SourceSpan,
};
use onbeat::PipelineError;
use std::fmt::{self, Write};
use std::io::{self, IsTerminal};

/// Longest line of a drawn error, and the shortest one that is tried.
const WIDTH: usize = 100;
const NARROW: usize = 40;

/// Error of a command. It ends the command with status 1.
#[derive(Debug)]
pub struct CommandError {
    message: String,
    help: Option<String>,
    excerpt: Option<Excerpt>,
    /// `file:line:column: `, which the drawn form shows in its frame.
    prefix: String,
}

/// Place of an error in a file or a setting.
#[derive(Debug)]
struct Excerpt {
    source: NamedSource<String>,
    text: String,
    span: std::ops::Range<usize>,
}

impl CommandError {
    pub fn new(message: impl Into<String>) -> Self {
        CommandError { message: printable(&message.into()), help: None, excerpt: None, prefix: String::new() }
    }

    pub fn help(self, help: impl Into<String>) -> Self {
        CommandError { help: Some(help.into()), ..self }
    }

    /// Adds where relative paths start, if a file was not there. Devices name their own fix.
    pub fn if_of_file(self) -> Self {
        let help = "relative paths start at the folder of the pipeline file, or else at the current folder";
        let is_missing = ["cannot open", "No such file"].iter().all(|text| self.message.contains(text));
        if is_missing { self.help(help) } else { self }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prints the error on stderr: drawn on a terminal, else as `file:line:column: message`.
    pub fn show(&self) {
        let is_terminal = io::stderr().is_terminal();
        let text = if is_terminal { self.drawn(stderr::may_colour(is_terminal)) } else { self.plain() };
        stderr::to_stderr(&text);
    }

    fn drawn(&self, colour: bool) -> String {
        // The terminal would break longer lines within words.
        let width = views::stderr_width().map_or(WIDTH, |width| width.clamp(NARROW, WIDTH));
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(width).with_context_lines(1);
        let mut text = String::new();
        // Writing to a string fails only if a `Display` is wrong.
        match handler.render_report(&mut text, self) {
            Ok(()) => text,
            Err(fmt::Error) => self.plain(),
        }
    }

    fn plain(&self) -> String {
        let mut text = format!("{}{}\n", self.prefix, self.message);
        if let Some(excerpt) = &self.excerpt {
            excerpt.write(&mut text).expect("a string takes all");
        }
        if let Some(help) = &self.help {
            writeln!(text, "help: {}", help.replace('\n', "\n      ")).expect("a string takes all");
        }
        text
    }
}

impl Excerpt {
    /// Writes the line, and marks the place in it.
    fn write(&self, out: &mut String) -> fmt::Result {
        /// Characters shown before the place, and of the line in total.
        const BEFORE: usize = 60;
        const SHOWN: usize = 160;
        let line_start = self.text[..self.span.start].rfind('\n').map_or(0, |newline| newline + 1);
        let number = self.text[..line_start].matches('\n').count() + 1;
        let before = self.text[line_start..self.span.start].chars().count();
        let skipped = before.saturating_sub(BEFORE);
        let line = self.text[line_start..].lines().next().unwrap_or("");
        let shown: String =
            line.chars().skip(skipped).take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let marked = self.text[self.span.clone()].lines().next().unwrap_or("").chars().count();
        let marked = marked.clamp(1, SHOWN - (before - skipped));
        writeln!(out, "{number:>5} | {shown}")?;
        writeln!(out, "      | {}{}", " ".repeat(before - skipped), "^".repeat(marked))
    }
}

/// Replaces control characters, so that text from a file cannot control the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

impl From<PipelineError> for CommandError {
    fn from(error: PipelineError) -> Self {
        let excerpt = error.span().map(|span| Excerpt {
            source: NamedSource::new(error.file(), error.text().to_string()),
            text: error.text().to_string(),
            span,
        });
        let prefix = match error.line_column() {
            Some((line, column)) if !error.is_setting() => format!("{}:{line}:{column}: ", error.file()),
            _ => String::new(),
        };
        let message = if prefix.is_empty() { error.to_string() } else { error.message().to_string() };
        let message = printable(&message);
        CommandError { message, help: error.help().map(str::to_string), excerpt, prefix }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandError {}

impl Diagnostic for CommandError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| &excerpt.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        let label =
            LabeledSpan::new_with_span(Some("here".to_string()), SourceSpan::from(excerpt.span.clone()));
        Some(Box::new(std::iter::once(label)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat::{Overrides, Pipeline, Registry};

    fn failure(text: &str) -> CommandError {
        let error =
            Pipeline::parse(text, "x.toml", "", &Registry::default(), &Overrides::default()).unwrap_err();
        CommandError::from(error)
    }

    #[test]
    fn plain_errors_show_the_line() {
        assert_eq!(
            failure("name = \"x\"\n\tspeed = 3\n").plain(),
            "x.toml:2:2: unknown key `speed` in the pipeline\n    2 |  speed = 3\n      |  ^^^^^\n\
             help: its keys are `name`, `scheduler`, `cores`, `workers`, `share`, `idle`, `house_keeping`, `policy`, `lock_memory`, `prefault`, `huge_pages`, `numa`, `timer_slack`, `dma_latency`, `force`, `clock`, `scale`, `strict`, `watchdog`, \
             `on_hang`, `explain`, `output`, `control`, `duration`, `pace`, `sync_files`, `store`, \
             `defaults`, `pool`, `operator`, `edge`, `path`, `subgraph`\n"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = failure(&format!("x = \"{}\" }}", "y".repeat(100_000))).plain();
        assert!(text.len() < 1_000 && text.contains('}'), "{text}");
    }

    #[test]
    fn drawn_errors_show_the_line_too() {
        let text = failure("name = \"x\"\nspeed = 3\n").drawn(false);
        assert!(
            text.contains("x.toml:2:1") && text.contains("speed = 3") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
