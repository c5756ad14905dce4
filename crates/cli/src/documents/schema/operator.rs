//! Schema of an operator: its parameters, conditions and failures.

use super::{on_miss, quantity};
use onbeat::{Kind, Registry};
use serde_json::{Map, Value, json};

/// Returns the keys of an operator that are not parameters.
fn own(kind: Value) -> Map<String, Value> {
    let mut own = Map::new();
    own.insert(
        "name".into(),
        json!({ "type": "string", "pattern": "^[^./\\s]+$", "description": "Name in edges, tables and records." }),
    );
    own.insert("kind".into(), kind);
    own
}

/// Returns the keys of an operator that all kinds have.
pub(super) fn keys(kind: Value) -> Map<String, Value> {
    let mut keys = own(kind);
    let deadline = "Limit on the time from the due time of its source to the end of its step; a step that ends later is a miss.";
    keys.insert("deadline".into(), quantity("time", "s", deadline));
    let budget = "Longest computing time of a step; a longer one counts as a cause of late messages.";
    keys.insert("budget".into(), quantity("time", "s", budget));
    keys.insert("on_miss".into(), on_miss(&["record", "skip", "degrade", "stop"]));
    let cost = "Cost per message of its source, for the distribution to workers. Default: measured.";
    keys.insert("cost".into(), quantity("time", "s", cost));
    keys.insert("when".into(), json!({ "$ref": "#/$defs/when" }));
    keys.insert("on_error".into(), json!({ "$ref": "#/$defs/on_error" }));
    keys.insert("restart".into(), json!({ "$ref": "#/$defs/restart" }));
    keys
}

pub(super) fn operator(kind: &Kind, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = kind.schema().to_value();
    let prefix = format!("{}:", kind.name());
    move_references(&mut schema, &prefix);
    if let Some(Value::Object(inner)) = schema.as_object_mut().and_then(|schema| schema.remove("$defs")) {
        definitions.extend(inner.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)));
    }
    let Some(object) = schema.as_object_mut() else { return schema };
    object.remove("$schema");
    object.insert("title".into(), kind.name().into());
    object.insert("description".into(), kind.summary().into());
    let mut properties = keys(json!({ "const": kind.name() }));
    if let Some(Value::Object(parameters)) = object.remove("properties") {
        properties.extend(parameters);
    }
    object.insert("properties".into(), properties.into());
    let mut required = vec![json!("name"), json!("kind")];
    if let Some(Value::Array(parameters)) = object.remove("required") {
        required.extend(parameters);
    }
    object.insert("required".into(), required.into());
    schema
}

/// Returns the schema of an operator whose kind is a subgraph, not a registered kind.
pub(super) fn subgraph_use(registry: &Registry) -> Value {
    let names: Vec<&str> = registry.names().collect();
    json!({
        "title": "subgraph",
        "description": "Use of a subgraph of this file.",
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "kind"],
        "properties": own(json!({ "type": "string", "not": { "enum": names } })),
    })
}

/// Prefixes references with the name of the kind, since the definitions of all kinds share one object.
fn move_references(value: &mut Value, prefix: &str) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(target) if key == "$ref" => {
                        *target = target.replacen("#/$defs/", &format!("#/$defs/{prefix}"), 1);
                    }
                    other => move_references(other, prefix),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| move_references(value, prefix)),
        _ => {}
    }
}

/// Returns the definitions of an operator's conditions.
pub(super) fn when() -> Value {
    let form = |properties: Value, required: &[&str]| json!({ "type": "object", "additionalProperties": false, "properties": properties, "required": required });
    let port = || json!({ "type": "string", "description": "Name of the port, if there are several." });
    let number = |least: u32| json!({ "type": "integer", "minimum": least });
    let inputs =
        || json!({ "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "const": "all" }] });
    let timeout =
        || quantity("time", "s", "Time since the last step after which the next one comes in any case.");
    let several = |key: &str, required: &[&str]| {
        form(json!({ key: inputs(), "messages": number(1), "timeout": timeout() }), required)
    };
    let one = json!({ "oneOf": [
        form(json!({ "messages": number(1), "port": port() }), &["messages"]),
        form(json!({ "room": number(0), "port": port() }), &["room"]),
        form(
            json!({ "batch": number(1), "delay": quantity("time", "s", "Time after which fewer messages are enough."), "port": port() }),
            &["batch", "delay"],
        ),
        several("any", &["any"]),
        several("all", &["all"]),
        several("sum", &["sum", "messages"]),
        form(json!({ "count": number(1) }), &["count"]),
        form(json!({ "gate": { "type": "string" }, "open": { "type": "boolean" } }), &["gate"]),
        form(json!({ "event": { "type": "string" } }), &["event"]),
        form(json!({ "readable": { "type": "string", "description": "Path of a file." } }), &["readable"]),
        form(
            json!({
                "period": quantity("time", "s", "Time between two steps."),
                "overrun": { "enum": ["skip", "catch_up", "min_gap", "stop"], "default": "skip" },
            }),
            &["period"],
        ),
        form(json!({ "chunk_room": number(1) }), &["chunk_room"]),
        form(
            json!({ "any_of": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/condition" } } }),
            &["any_of"],
        ),
        { "type": "object", "properties": { "own": { "type": "string" } }, "required": ["own"] },
    ] });
    json!({ "condition": one, "when": {
        "description": "Conditions that must hold before a step.",
        "anyOf": [
            { "$ref": "#/$defs/condition" },
            { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/condition" } },
        ],
    } })
}

/// Returns the definitions for failures of an operator.
pub(super) fn on_error() -> Value {
    json!({ "on_error": {
        "enum": ["stop", "restart", "isolate"],
        "default": "stop",
        "description": "What the run does when a step fails or panics: stop, restart the operator, or continue without it. Default: `stop`.",
    }, "restart": {
        "type": "object",
        "additionalProperties": false,
        "description": "How an operator is restarted.",
        "properties": {
            "limit": { "type": "integer", "minimum": 1, "default": 5, "description": "Restarts in a row." },
            "delay": quantity("time", "s", "Delay before the first restart in a row, doubled for each further one. Default: 100 ms."),
            "within": quantity("time", "s", "Time without a failure after which the count starts again. Default: 60 s."),
            "then": { "enum": ["stop", "isolate"], "default": "stop", "description": "What the run does after the last restart failed." },
        },
    } })
}
