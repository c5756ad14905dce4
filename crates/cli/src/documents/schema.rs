//! JSON Schema of the pipeline file: what editors check and complete.

use onbeat::{Kind, Registry};
use serde_json::{Map, Value, json};

/// Draft 2020-12, with the parameters of all kinds.
pub fn schema(registry: &Registry) -> Value {
    let mut definitions = Map::new();
    let mut kinds: Vec<Value> = registry.kinds().map(|kind| operator(kind, &mut definitions)).collect();
    kinds.push(subgraph_use(registry));
    definitions.insert("operator".into(), json!({ "oneOf": kinds }));
    definitions.insert("edge".into(), edge());
    definitions.insert("path".into(), path());
    for several in [when(), on_error()] {
        if let Value::Object(several) = several {
            definitions.extend(several);
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "onbeat pipeline",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "description": "Names the run and its record." },
            "scheduler": {
                "enum": ["greedy", "event", "pinned", "replicated", "custom"],
                "default": "greedy",
                "description": "The recipe that makes workers of the graph.",
            },
            "cores": cores("Cores to run on, one worker on each."),
            "house_keeping": cores("Cores for all threads that are no workers."),
            "workers": { "type": "integer", "minimum": 1, "description": "How many workers `pinned` or `event` has." },
            "share": {
                "enum": ["heavy", "always"],
                "default": "heavy",
                "description": "What the workers of `event` share: operators that are worth the way, or all.",
            },
            "idle": { "type": "string", "description": "How workers wait: `park`, `spin`, `spin:20us`, `early:150us`." },
            "policy": policy(),
            "lock_memory": flag("Keeps the memory of the process in main memory while it runs."),
            "prefault": quantity("size", "B", "How much of each worker's stack is brought in before the first step."),
            "huge_pages": flag("Chunk stores ask for huge pages."),
            "numa": flag("Chunk stores lie on the node of the cores that fill them."),
            "timer_slack": quantity("time", "s", "By how much timers of workers may be late."),
            "dma_latency": quantity("time", "s", "How long idle cores may take to wake up while it runs."),
            "force": flag("Runs what may hang the machine."),
            "clock": { "enum": ["real", "manual"], "default": "real", "description": "Real or virtual time." },
            "scale": {
                "type": "number",
                "minimum": 1e-6,
                "maximum": 1e6,
                "default": 1.0,
                "description": "How many times faster than real time the clock goes.",
            },
            "strict": {
                "type": "boolean",
                "default": false,
                "description": "A setting that is asked for and not obtained is an error.",
            },
            "watchdog": quantity("time", "s", "An operator whose code has not returned for so long is said to hang; `off` for never. 10 s unless said otherwise."),
            "on_hang": {
                "enum": ["wait", "stop"],
                "default": "wait",
                "description": "What becomes of the run when an operator hangs.",
            },
            "explain": {
                "enum": ["auto", "on", "off"],
                "default": "auto",
                "description": "Whether it is found out why messages were late; auto: where something has a limit.",
            },
            "output": { "type": "string", "default": "out", "description": "Folder for what is written." },
            "control": { "type": "string", "description": "A socket by which the run can be watched and steered." },
            "duration": quantity("time", "s", "Stops the run after this time."),
            "pace": { "enum": ["real", "fast"], "description": "How all sources keep time." },
            "store": quantity("size", "B", "The most memory for chunks."),
            "defaults": {
                "type": "object",
                "description": "Of edges that say nothing else.",
                "additionalProperties": false,
                "properties": { "capacity": capacity(), "quantum": quantum() },
            },
            "pool": { "type": "array", "items": pool() },
            "operator": list("operator"),
            "edge": list("edge"),
            "path": list("path"),
            "subgraph": { "type": "array", "items": subgraph() },
        },
        "$defs": definitions,
    })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "default": false, "description": description })
}

fn policy() -> Value {
    json!({
        "type": "string",
        "pattern": "^(o:-?[0-9]+|[fr]:[0-9]+|d:[0-9]+[a-z]*(:[0-9]+[a-z]*){1,2})$",
        "description": "What the kernel's scheduler gives a worker: `o:N`, `f:80`, `r:50`, `d:RUNTIME[:DEADLINE]:PERIOD`.",
    })
}

/// Of `custom`.
fn pool() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "operators"],
        "properties": {
            "name": { "type": "string", "maxLength": 12, "pattern": "^[^./\\s]+$", "description": "Its threads have it too." },
            "cores": cores("Its cores, one worker on each."),
            "workers": { "type": "integer", "minimum": 1, "description": "How many workers it has, where no cores are named." },
            "policy": policy(),
            "idle": { "type": "string", "description": "How its workers wait: `park`, `spin`, `spin:20us`, `early:150us`." },
            "operators": {
                "type": "array",
                "minItems": 1,
                "items": { "type": "string" },
                "description": "Its operators; the name of a subgraph stands for all that are in it.",
            },
        },
    })
}

fn list(definition: &str) -> Value {
    json!({ "type": "array", "items": { "$ref": format!("#/$defs/{definition}") } })
}

fn quantity(noun: &str, unit: &str, description: &str) -> Value {
    json!({ "type": ["number", "string"], "format": noun, "x-unit": unit, "description": description })
}

fn cores(description: &str) -> Value {
    json!({ "type": ["integer", "string", "array"], "items": { "type": "integer" }, "description": description })
}

fn capacity() -> Value {
    json!({ "type": "integer", "minimum": 1, "default": 4, "description": "Messages that an edge holds." })
}

fn quantum() -> Value {
    quantity("size", "B", "The most bytes of a chunk.")
}

fn end(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn edge() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["from", "to"],
        "properties": {
            "from": end("`operator.output`; the output may be left out where there is one."),
            "to": end("`operator.input`; the input may be left out where there is one."),
            "capacity": capacity(),
            "quantum": quantum(),
            "when_full": {
                "enum": ["wait", "drop_oldest", "drop_newest", "latest", "error"],
                "default": "wait",
                "description": "What it does with a message for which it has no room.",
            },
            "initial": {
                "type": ["number", "string", "boolean"],
                "description": "A message that it has from the start; of chunks, how many samples of 0.",
            },
        },
    })
}

/// Conditions of an operator.
fn when() -> Value {
    let form = |properties: Value, required: &[&str]| json!({ "type": "object", "additionalProperties": false, "properties": properties, "required": required });
    let port = || json!({ "type": "string", "description": "Which one, where there are several." });
    let number = |least: u32| json!({ "type": "integer", "minimum": least });
    let inputs =
        || json!({ "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "const": "all" }] });
    let timeout = || quantity("time", "s", "Since the last step: then the next one comes anyway.");
    let several = |key: &str, required: &[&str]| {
        form(json!({ key: inputs(), "messages": number(1), "timeout": timeout() }), required)
    };
    let one = json!({ "oneOf": [
        form(json!({ "messages": number(1), "port": port() }), &["messages"]),
        form(json!({ "room": number(0), "port": port() }), &["room"]),
        form(
            json!({ "batch": number(1), "delay": quantity("time", "s", "When fewer are enough."), "port": port() }),
            &["batch", "delay"],
        ),
        several("any", &["any"]),
        several("all", &["all"]),
        several("sum", &["sum", "messages"]),
        form(json!({ "count": number(1) }), &["count"]),
        form(json!({ "gate": { "type": "string" }, "open": { "type": "boolean" } }), &["gate"]),
        form(json!({ "event": { "type": "string" } }), &["event"]),
        form(json!({ "readable": { "type": "string", "description": "A file." } }), &["readable"]),
        form(
            json!({
                "period": quantity("time", "s", "From step to step."),
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
        "description": "What must hold before it is stepped.",
        "anyOf": [
            { "$ref": "#/$defs/condition" },
            { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/condition" } },
        ],
    } })
}

/// What becomes of the run when an operator fails.
fn on_error() -> Value {
    json!({ "on_error": {
        "enum": ["stop", "restart", "isolate"],
        "default": "stop",
        "description": "What becomes of the run when its step fails or panics: it ends, starts the operator anew, or goes on without it.",
    }, "restart": {
        "type": "object",
        "additionalProperties": false,
        "description": "How an operator is started anew.",
        "properties": {
            "limit": { "type": "integer", "minimum": 1, "default": 5, "description": "Restarts in a row." },
            "delay": quantity("time", "s", "Time before the first of a row, 100 ms unless said otherwise; doubled for each further one."),
            "within": quantity("time", "s", "A row ends after this time without a failure, 60 s unless said otherwise."),
            "then": { "enum": ["stop", "isolate"], "default": "stop", "description": "What becomes of the run after one failure more." },
        },
    } })
}

fn on_miss(words: &[&str]) -> Value {
    json!({ "enum": words, "default": "record", "description": "What happens when the limit was missed." })
}

fn path() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["from", "to"],
        "properties": {
            "from": end("A source."),
            "to": end("An operator."),
            "max_latency": quantity("time", "s", "A message that takes longer is a miss."),
            "max_in_flight": {
                "anyOf": [{ "type": "integer", "minimum": 1 }, quantity("time", "s", "")],
                "description": "Messages, or a time of them, that may be under way at once: the source waits.",
            },
            "on_miss": on_miss(&["record", "skip", "stop"]),
        },
    })
}

fn subgraph() -> Value {
    let ports = |what: &str| {
        let description = format!("Its {what}, and the inner ports that they stand for.");
        json!({ "type": "object", "additionalProperties": { "type": "string" }, "description": description })
    };
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {
            "name": { "type": "string", "description": "The kind of the operators that it stands for." },
            "inputs": ports("inputs"),
            "outputs": ports("outputs"),
            "operator": list("operator"),
            "edge": list("edge"),
        },
    })
}

/// What every operator has beside its parameters.
fn own(kind: Value) -> Map<String, Value> {
    let mut own = Map::new();
    own.insert("name".into(), json!({ "type": "string", "pattern": "^[^./\\s]+$" }));
    own.insert("kind".into(), kind);
    own
}

fn operator(kind: &Kind, definitions: &mut Map<String, Value>) -> Value {
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
    let mut properties = own(json!({ "const": kind.name() }));
    properties
        .insert("deadline".into(), quantity("time", "s", "A step that ends later than this is a miss."));
    properties.insert(
        "budget".into(),
        quantity(
            "time",
            "s",
            "How long a step of it may compute; what is beyond makes a late message its fault.",
        ),
    );
    properties.insert("on_miss".into(), on_miss(&["record", "skip", "degrade", "stop"]));
    properties.insert("cost".into(), quantity("time", "s", "What it costs per message of its source."));
    properties.insert("when".into(), json!({ "$ref": "#/$defs/when" }));
    properties.insert("on_error".into(), json!({ "$ref": "#/$defs/on_error" }));
    properties.insert("restart".into(), json!({ "$ref": "#/$defs/restart" }));
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

/// Whatever is not the name of a kind may be that of a subgraph.
fn subgraph_use(registry: &Registry) -> Value {
    let names: Vec<&str> = registry.names().collect();
    json!({
        "title": "subgraph",
        "description": "The name of a subgraph of this file.",
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "kind"],
        "properties": own(json!({ "type": "string", "not": { "enum": names } })),
    })
}

/// Definitions of all kinds lie side by side: each under the name of its kind.
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
