//! Output formats, one file each.

mod csv;
mod human;
mod json;
pub mod live;

use crate::arguments::Format;
use crate::documents::Document;

/// Output format of a document.
pub trait View {
    /// Returns the whole text, with a newline at the end.
    fn text(&self, document: &Document) -> String;
}

pub fn view(format: Format, colour: bool) -> Box<dyn View> {
    match format {
        Format::Human => Box::new(human::Human { colour }),
        Format::Json => Box::new(json::Json),
        Format::Csv => Box::new(csv::Csv),
    }
}
