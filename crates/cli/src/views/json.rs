//! JSON: everything there is.

use super::View;
use crate::documents::Document;

pub struct Json;

impl View for Json {
    fn text(&self, document: &Document) -> String {
        format!("{:#}\n", document.json)
    }
}
