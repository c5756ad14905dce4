//! Operator kinds, from their own descriptions.

use super::Document;
use super::table::{Cell, Column, Table, Unit};
use onbeat::{Kind, PortInfo};
use serde_json::{Value, json};

pub fn kind(kind: &Kind) -> Document {
    let (inputs, outputs) = kind.ports();
    let schema = kind.schema();
    let settable = kind.settable();
    let mut tail: Vec<String> = kind.details().lines().map(str::to_string).collect();
    if !tail.is_empty() {
        tail.push(String::new());
    }
    tail.extend(["[[operator]]".to_string(), "name = \"my-name\"".to_string()]);
    tail.push(format!("kind = \"{}\"", kind.name()));
    tail.extend(kind.example().lines().map(|line| line.trim_end().to_string()));
    let mut head = vec![format!("{}: {}", kind.name(), kind.summary())];
    if !settable.is_empty() {
        head.push(format!("can be changed during a run: {}", settable.join(", ")));
    }
    Document {
        head,
        tables: vec![ports(&inputs, &outputs), parameters(schema.as_value())],
        tail,
        json: json!({
            "name": kind.name(),
            "summary": kind.summary(),
            "about": kind.details(),
            "inputs": inputs,
            "outputs": outputs,
            "parameters": schema,
            "settable": settable,
            "example": kind.example(),
        }),
    }
}

fn ports(inputs: &[PortInfo], outputs: &[PortInfo]) -> Table {
    let row = |direction: &'static str, port: &PortInfo| {
        let edges = match (port.required, port.many) {
            (true, true) => "one or more",
            (true, false) => "one",
            (false, true) => "any number",
            (false, false) => "one or none",
        };
        vec![port.name.as_str().into(), direction.into(), port.message.as_str().into(), edges.into()]
    };
    let inputs = inputs.iter().map(|port| row("input", port));
    Table {
        columns: vec![
            Column::new("port", "port", Unit::Text),
            Column::new("direction", "", Unit::Text),
            Column::new("message", "message", Unit::Text),
            Column::new("edges", "edges", Unit::Text),
        ],
        rows: inputs.chain(outputs.iter().map(|port| row("output", port))).collect(),
    }
}

pub(super) fn parameters(schema: &Value) -> Table {
    let mut rows = Vec::new();
    add_rows(&mut rows, schema, schema, "", 0);
    Table {
        columns: vec![
            Column::new("parameter", "parameter", Unit::Text),
            Column::new("type", "type", Unit::Text),
            Column::new("default", "default", Unit::Text),
            Column::new("description", "description", Unit::Text),
        ],
        rows,
    }
}

/// Longest list of words that the column of types shows, in bytes. Longer ones are in the description.
const LONGEST: usize = 80;

/// Depth to which nested tables are shown as `outer.inner`.
const DEPTH: usize = 4;

fn add_rows(rows: &mut Vec<Vec<Cell>>, root: &Value, table: &Value, prefix: &str, depth: usize) {
    let Some(properties) = table.get("properties").and_then(Value::as_object) else { return };
    let required = |name: &str| {
        let names = table.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    for (name, about) in properties {
        let full = format!("{prefix}{name}");
        let target = resolved(root, about);
        let description = about.get("description").or(target.get("description")).and_then(Value::as_str);
        let default = match about.get("default") {
            _ if required(name) => "required".to_string(),
            None | Some(Value::Null) => String::new(),
            Some(default) => default_words(default, target),
        };
        if depth < DEPTH && target.get("properties").is_some() {
            add_rows(rows, root, target, &format!("{full}."), depth + 1);
            continue;
        }
        let description = description.unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
        let mut words = type_words(root, target) + &limit_words(about);
        let mut description = description;
        if words.len() > LONGEST {
            description = format!("{description} One of: {}.", words.replace(" | ", ", "));
            words = "one of a list".to_string();
        }
        rows.push(vec![full.into(), words.into(), default.into(), description.into()]);
    }
}

/// Resolves references, and optional values to their type.
fn resolved<'v>(root: &'v Value, about: &'v Value) -> &'v Value {
    let mut found = about;
    for _ in 0..DEPTH {
        let reference =
            found.get("$ref").and_then(Value::as_str).and_then(|path| root.pointer(path.strip_prefix('#')?));
        let some = found.get("anyOf").and_then(Value::as_array).and_then(|any| {
            let mut some = any.iter().filter(|one| one.get("type").is_none_or(|word| word != "null"));
            some.next().filter(|_| some.next().is_none())
        });
        match reference.or(some) {
            Some(next) => found = next,
            None => break,
        }
    }
    found
}

fn type_words(root: &Value, about: &Value) -> String {
    let about = resolved(root, about);
    if let (Some(noun), Some(unit)) = (about.get("format"), about.get("x-unit")) {
        return format!("{} ({})", noun.as_str().unwrap_or("quantity"), unit.as_str().unwrap_or("number"));
    }
    if let Some(words) = words(about) {
        return words.join(" | ");
    }
    let types: Vec<&str> = match about.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => {
            many.iter().filter_map(Value::as_str).filter(|&word| word != "null").collect()
        }
        _ => Vec::new(),
    };
    let named = types.iter().map(|&word| match word {
        "integer" => "whole number".to_string(),
        "object" => "table".to_string(),
        "array" => match about.get("items") {
            Some(items) => format!("array of {}", type_words(root, items)),
            None => "array".to_string(),
        },
        other => other.to_string(),
    });
    named.collect::<Vec<_>>().join(" or ")
}

/// Returns the limits of a number, after its type: ", above 0 Hz, at most 1e6 Hz".
fn limit_words(about: &Value) -> String {
    let unit = about.get("x-unit").and_then(Value::as_str).map_or(String::new(), |unit| format!(" {unit}"));
    let limits = [
        ("minimum", "at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "below"),
    ];
    let said = limits.iter().filter_map(|(key, words)| {
        let limit = about.get(key).and_then(Value::as_f64)?;
        // What an integer type says of itself.
        (limit.abs() < 4e9 && !(limit == 0.0 && about["type"] == "integer"))
            .then(|| format!(", {words} {limit}{unit}"))
    });
    said.collect()
}

/// Returns the words of an enumeration.
fn words(about: &Value) -> Option<Vec<&str>> {
    if let Some(words) = about.get("enum").and_then(Value::as_array) {
        return words.iter().map(Value::as_str).collect();
    }
    let variants = about.get("oneOf").and_then(Value::as_array)?;
    let mut words = Vec::new();
    for variant in variants {
        match (variant.get("const").and_then(Value::as_str), variant.get("enum").and_then(Value::as_array)) {
            (Some(word), _) => words.push(word),
            (None, Some(some)) => words.extend(some.iter().filter_map(Value::as_str)),
            (None, None) => return None,
        }
    }
    Some(words)
}

fn default_words(default: &Value, about: &Value) -> String {
    let unit = about.get("x-unit").and_then(Value::as_str).filter(|_| default.is_number());
    let value = match default {
        Value::Number(number)
            if number.as_f64().is_some_and(|value| value.fract() == 0.0 && value.abs() < 1e15) =>
        {
            format!("{}", number.as_f64().unwrap_or(0.0))
        }
        other => other.to_string(),
    };
    unit.map_or(value.clone(), |unit| format!("{value} {unit}"))
}
