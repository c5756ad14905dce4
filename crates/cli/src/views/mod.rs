//! Output formats, one file each.

mod csv;
mod human;
mod json;
pub mod live;

use crate::arguments::OutputFormat;
use crate::documents::Document;
use std::io::IsTerminal;

/// Output format of a document.
pub trait Renderer {
    /// Returns the whole text, with a newline at the end.
    fn text(&self, document: &Document) -> String;
}

/// Columns of the terminal that stdout is; `None` if it is none.
fn terminal_width() -> Option<usize> {
    width_of(&std::io::stdout())
}

/// Columns of the terminal that stderr is; `None` if it is none.
pub fn stderr_width() -> Option<usize> {
    width_of(&std::io::stderr())
}

fn width_of(stream: &impl IsTerminal) -> Option<usize> {
    let size = stream.is_terminal().then(|| ratatui::crossterm::terminal::size().ok()).flatten()?;
    Some(usize::from(size.0)).filter(|width| *width > 0)
}

/// Width of text on stdout, in characters.
pub fn text_width() -> usize {
    terminal_width().map_or(human::WIDTH, |width| width.min(human::WIDTH))
}

pub fn view(format: OutputFormat, colour: bool) -> Box<dyn Renderer> {
    match format {
        OutputFormat::Human => Box::new(human::Human { colour, width: terminal_width() }),
        OutputFormat::Json => Box::new(json::Json),
        OutputFormat::Csv => Box::new(csv::Csv),
    }
}
