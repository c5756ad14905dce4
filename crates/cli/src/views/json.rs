//! JSON: all data of a document.

use super::View;
use crate::documents::Document;

pub struct Json;

impl View for Json {
    fn text(&self, document: &Document) -> String {
        format!("{:#}\n", document.json)
    }
}
