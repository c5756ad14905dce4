//! Output formats, one file each.

mod csv;
mod human;
mod json;
pub mod live;

use crate::arguments::OutputFormat;
use crate::documents::Document;

/// Output format of a document.
pub trait Renderer {
    /// Returns the whole text, with a newline at the end.
    fn text(&self, document: &Document) -> String;
}

pub fn view(format: OutputFormat, colour: bool) -> Box<dyn Renderer> {
    match format {
        OutputFormat::Human => Box::new(human::Human { colour }),
        OutputFormat::Json => Box::new(json::Json),
        OutputFormat::Csv => Box::new(csv::Csv),
    }
}
