//! Keys of a pipeline file as a Markdown page of the book, from the schema.

use super::page::cells;
use super::schema::schema;
use onbeat::Registry;
use serde_json::{Value, json};

const BEGIN: &str = "\
<!-- Made by `onbeat schema --format markdown`; `ci/book` compares. Change the descriptions in the schema. -->

# Keys of a pipeline file

Status: stable.

A quantity is a number in the unit in parentheses, or a text with its own unit: `0.01` and `\"10 ms\"` are the same
time. An unknown key is an error that shows the line and the nearest known key. The parameters of each kind of operator are on the
page [All operators](kinds.md). More about threads is in [Workers and time](workers.md), about limits in
[Why was it late?](late.md), about `when` in [Conditions](conditions.md), about `on_error`, `restart` and `watchdog` in
[When something fails](failures.md), about `control` in [Watching and steering a run](control.md).
";

/// Tables of the file: title, and where they are in the schema.
const TABLES: [(&str, &str); 6] = [
    ("`[defaults]`", "/properties/defaults"),
    ("`[[operator]]`", "/$defs/any_operator"),
    ("`[[edge]]`", "/$defs/edge"),
    ("`[[path]]`", "/$defs/path"),
    ("`[[pool]]`, with `scheduler = \"custom\"`", "/properties/pool/items"),
    ("`[[subgraph]]`", "/properties/subgraph/items"),
];

/// Returns the page.
pub fn keys(registry: &Registry) -> String {
    let whole = schema(registry);
    let tables = ["pool", "operator", "edge", "path", "subgraph", "defaults"];
    let mut top = whole["properties"].clone();
    if let Value::Object(top) = &mut top {
        top.retain(|name, _| !tables.contains(&name.as_str()));
    }
    let mut text = String::from(BEGIN);
    text += &section("At the top", &json!({ "properties": top, "$defs": whole["$defs"] }));
    for (title, place) in TABLES {
        let mut table = whole.pointer(place).cloned().unwrap_or_default();
        table["$defs"] = whole["$defs"].clone();
        text += &section(title, &table);
    }
    text
}

fn section(title: &str, table: &Value) -> String {
    let mut text = format!("\n## {title}\n\n| key | type | default | meaning |\n|---|---|---|---|\n");
    for row in cells(table) {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}
