//! JSON: all data of a document.

use super::Renderer;
use crate::documents::Document;

pub struct Json;

impl Renderer for Json {
    fn text(&self, document: &Document) -> String {
        format!("{:#}\n", document.json)
    }
}
