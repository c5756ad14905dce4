//! Operator kinds as a Markdown page of the book.

use super::kinds::parameters;
use super::table::Cell;
use onbeat::{Kind, PortInfo, Registry};
use serde_json::Value;

/// Kinds that differ only in the type of their samples.
struct Family<'r> {
    kinds: Vec<&'r Kind>,
    parameters: Vec<Vec<String>>,
}

/// Returns the whole page: tables of all kinds, and a section for each family.
pub fn page(registry: &Registry) -> String {
    let families = families(registry);
    let mut text = String::from(BEGIN);
    for table in &PAGE_TABLES {
        text += &index(table, &families);
    }
    text += "\n## One by one\n";
    for family in &families {
        text.push('\n');
        text += &section(family);
    }
    text
}

/// Returns the section of the family of a kind.
pub fn page_of(registry: &Registry, kind: &Kind) -> String {
    let families = families(registry);
    let family = families.iter().find(|family| family.kinds.iter().any(|one| one.name() == kind.name()));
    family.map_or(String::new(), section)
}

const BEGIN: &str = "\
<!-- Made by `onbeat operators --format markdown`; `ci/book` compares. Change the descriptions in the operators. -->

# All operators

Status: stable.

Message types:

| word | message type | |
|---|---|---|
| real, complex, bytes | `Chunk<f32>`, `Chunk<Complex<f32>>`, `Chunk<u8>` | a run of samples, with its sample rate and its tags |
| numbers | `u64` | counts and ticks |
| value | `f64` | one number at a time |
| text | `String` | one line at a time |
| frames | `Frame` | a message of an aircraft |

A quantity is a number in the unit in parentheses, or a text with its own unit: `2000000` and `\"2 MHz\"`
are the same frequency. `onbeat operators NAME` shows the same in the terminal.
";

/// Table of kinds: sources, sinks or operators between them.
struct PageTable {
    title: &'static str,
    about: &'static str,
    has_inputs: bool,
    has_outputs: bool,
}

const PAGE_TABLES: [PageTable; 3] = [
    PageTable {
        title: "Sources",
        about: "Sources have no input. They run until they are done or stopped.",
        has_inputs: false,
        has_outputs: true,
    },
    PageTable { title: "Sinks", about: "Sinks have no output.", has_inputs: true, has_outputs: false },
    PageTable {
        title: "Operators in between",
        about: "Their output does not depend on the boundaries of chunks.",
        has_inputs: true,
        has_outputs: true,
    },
];

fn index(part: &PageTable, families: &[Family<'_>]) -> String {
    let mut table =
        vec![("kind".to_string(), "in".to_string(), "out".to_string(), "description".to_string())];
    table.push(("---".to_string(), "---".to_string(), "---".to_string(), "---".to_string()));
    for family in families {
        let link = anchor(family.kinds[0].name());
        for kind in &family.kinds {
            let (inputs, outputs) = kind.ports();
            if (inputs.is_empty(), outputs.is_empty()) == (!part.has_inputs, !part.has_outputs) {
                let name = format!("[`{}`](#{link})", kind.name());
                table.push((name, types(&inputs), types(&outputs), cell(kind.summary())));
            }
        }
    }
    let row = |(name, input, output, about): (String, String, String, String)| {
        let ends = [(part.has_inputs, input), (part.has_outputs, output)].into_iter().filter(|(has, _)| *has);
        let ends: String = ends.map(|(_, end)| format!(" {end} |")).collect();
        format!("| {name} |{ends} {about} |\n")
    };
    let rows: String = table.into_iter().map(row).collect();
    format!("\n## {}\n\n{}\n\n{rows}", part.title, part.about)
}

fn families(registry: &Registry) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for kind in registry.kinds() {
        let parameters = rows(kind);
        let belongs = |family: &&mut Family<'_>| {
            let first = family.kinds[0];
            kind.name().strip_prefix(first.name()).is_some_and(|rest| rest.starts_with('.'))
                && family.parameters == parameters
                && first.summary() == kind.summary()
        };
        match families.iter_mut().find(belongs) {
            Some(family) => family.kinds.push(kind),
            None => families.push(Family { kinds: vec![kind], parameters }),
        }
    }
    families
}

/// Returns the name, type, default and description of each parameter, as cells.
fn rows(kind: &Kind) -> Vec<Vec<String>> {
    cells(kind.schema().as_value())
}

/// Returns the name, type, default and description of each key of a table.
pub(super) fn cells(schema: &Value) -> Vec<Vec<String>> {
    let text = |value: &Cell| match value {
        Cell::Text(text) => cell(text),
        _ => String::new(),
    };
    let rows = parameters(schema).rows;
    let row = |row: &Vec<Cell>| {
        let [name, types, default, about] = [0, 1, 2, 3].map(|at| text(&row[at]));
        let types: Vec<&str> = types.split(" \\| ").collect();
        // An enumeration becomes a list of words.
        let types = if let [one] = types[..] { one.to_string() } else { format!("`{}`", types.join("`, `")) };
        let default = match default.as_str() {
            "" => "-".to_string(),
            "required" => default,
            value => format!("`{value}`"),
        };
        vec![format!("`{name}`"), types, default, about]
    };
    rows.iter().map(row).collect()
}

fn section(family: &Family<'_>) -> String {
    let first = family.kinds[0];
    let mut text = format!("### `{}`\n\n", first.name());
    text += &format!("{}\n\n", sentence(first.summary()));
    if !first.details().is_empty() {
        text += &format!("{}\n\n", first.details().trim());
    }
    text += "| kind | in | out |\n|---|---|---|\n";
    for kind in &family.kinds {
        let (inputs, outputs) = kind.ports();
        text += &format!("| `{}` | {} | {} |\n", kind.name(), named(&inputs, true), named(&outputs, false));
    }
    if !family.parameters.is_empty() {
        text += "\n| parameter | type | default | description |\n|---|---|---|---|\n";
        for row in &family.parameters {
            text += &format!("| {} |\n", row.join(" | "));
        }
    }
    let settable: Vec<String> = first.settable().iter().map(|name| format!("`{name}`")).collect();
    if !settable.is_empty() {
        text += &format!("\nCan be changed during a run: {}.\n", settable.join(", "));
    }
    let example = first.example().trim();
    text += &format!("\n```toml fragment\n[[operator]]\nname = \"my-name\"\nkind = \"{}\"\n", first.name());
    if !example.is_empty() {
        text += &format!("{example}\n");
    }
    text + "```\n"
}

/// Returns the message types of ports, each once.
fn types(ports: &[PortInfo]) -> String {
    let mut types: Vec<String> = ports.iter().map(|port| word(&port.message)).collect();
    types.dedup();
    types.join(", ")
}

fn named(ports: &[PortInfo], are_inputs: bool) -> String {
    let one = |port: &PortInfo| {
        let edges = match (are_inputs, port.required, port.many) {
            (true, _, true) => ", from any number of edges",
            (_, false, _) => ", can be left unconnected",
            _ => "",
        };
        format!("`{}`: {}{edges}", port.name, word(&port.message))
    };
    ports.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Returns the short name of a message type.
fn word(message: &str) -> String {
    match message {
        "Chunk<f32>" => "real".to_string(),
        "Chunk<Complex<f32>>" => "complex".to_string(),
        "Chunk<u8>" => "bytes".to_string(),
        "u64" => "numbers".to_string(),
        "f64" => "value".to_string(),
        "String" => "text".to_string(),
        "Frame" => "frames".to_string(),
        other => format!("`{other}`"),
    }
}

/// Returns the anchor of a heading, as mdBook and others make it: letters, digits, `_` and `-` stay.
fn anchor(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).collect()
}

/// Escapes the bars in a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Makes a sentence of a summary. A formula stays as it is.
fn sentence(summary: &str) -> String {
    let mut letters = summary.chars();
    let capital = match letters.next() {
        Some(first) if !letters.as_str().starts_with(' ') => {
            first.to_uppercase().to_string() + letters.as_str()
        }
        _ => summary.to_string(),
    };
    format!("{capital}.")
}
