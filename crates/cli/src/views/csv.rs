//! CSV (RFC 4180, with plain line ends): all tables with their headers, separated by empty lines.
//! Numbers are as in the record: nanoseconds, bytes, shares of 1. A missing value is empty.

use super::Renderer;
use crate::documents::{Cell, Document, Table};

pub struct Csv;

impl Renderer for Csv {
    fn text(&self, document: &Document) -> String {
        let tables = document.tables.iter().filter(|table| !table.rows.is_empty());
        tables.map(table_text).collect::<Vec<_>>().join("\n")
    }
}

fn table_text(table: &Table) -> String {
    let head: Vec<String> = table.columns.iter().map(|column| column.name.to_string()).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(field).collect::<Vec<_>>().join(","));
    std::iter::once(head.join(",")).chain(rows).map(|line| line + "\n").collect()
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Nothing => String::new(),
        Cell::Number(number) => number.to_string(),
        // A number that is not finite is a missing value.
        Cell::Decimal(number) if !number.is_finite() => String::new(),
        Cell::Decimal(number) => format!("{number:.6}"),
        Cell::Share(share) => format!("{share:.6}"),
        Cell::Text(text) | Cell::Usual(text) if text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Cell::Text(text) | Cell::Usual(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(field(&Cell::from("a,\"b\"")), "\"a,\"\"b\"\"\"");
        assert_eq!(field(&Cell::from("a b")), "a b");
        assert_eq!(field(&Cell::Nothing), "");
    }
}
