//! One file per form of output.

mod csv;
mod human;
mod json;
pub mod live;

use crate::arguments::Format;
use crate::documents::Document;

/// A way to write a document.
pub trait View {
    /// The whole text, the last line ended.
    fn text(&self, document: &Document) -> String;
}

pub fn view(format: Format, colour: bool) -> Box<dyn View> {
    match format {
        Format::Human => Box::new(human::Human { colour }),
        Format::Json => Box::new(json::Json),
        Format::Csv => Box::new(csv::Csv),
    }
}
