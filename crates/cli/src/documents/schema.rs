//! JSON Schema of the pipeline file, for editors.

mod operator;

use onbeat::Registry;
use operator::{keys, on_error, operator, subgraph_use, when};
use serde_json::{Map, Value, json};

/// Returns the schema (draft 2020-12), with the parameters of all kinds.
pub fn schema(registry: &Registry) -> Value {
    let mut definitions = Map::new();
    let mut kinds: Vec<Value> = registry.kinds().map(|kind| operator(kind, &mut definitions)).collect();
    kinds.push(subgraph_use(registry));
    definitions.insert("operator".into(), json!({ "oneOf": kinds }));
    let kind = json!({ "type": "string", "description": "Kind of operator, or a subgraph of this file." });
    definitions.insert(
        "any_operator".into(),
        json!({ "type": "object", "properties": keys(kind), "required": ["name", "kind"] }),
    );
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
        "properties": joined([workers(), memory(), clock(), supervision(), data(), graph()]),
        "$defs": definitions,
    })
}

/// Returns one object with the keys of all.
fn joined<const N: usize>(objects: [Value; N]) -> Value {
    let mut all = Map::new();
    for object in objects {
        if let Value::Object(object) = object {
            all.extend(object);
        }
    }
    all.into()
}

/// Keys about workers and their threads.
fn workers() -> Value {
    json!({
        "name": { "type": "string", "description": "Name of the run and of its record. Default: the file's name." },
        "scheduler": {
            "enum": ["greedy", "event", "pinned", "replicated", "custom"],
            "default": "greedy",
            "description": "How operators are distributed to workers. `greedy`: one worker, always in the same order. `event`: several that share all operators. `pinned`: several, each with its part of the graph. `replicated`: several, each with a copy of the graph. `custom`: pools.",
        },
        "cores": cores("Cores for the workers, one worker on each: `[0, 1]`, `\"0-1\"`, or `\"cpuset:0-1\"`, the first two of those that the process may use."),
        "house_keeping": cores("Cores for non-worker threads. Default: those without a worker, if each worker has a core and there are others; else all."),
        "workers": { "type": "integer", "minimum": 1, "description": "Number of workers, if no cores are named. Default: one on each core; `greedy` has one." },
        "share": {
            "enum": ["heavy", "always"],
            "default": "heavy",
            "description": "Operators that the workers of `event` share: those that take longer than the hand-over, or all.",
        },
        "idle": idle("How idle workers wait"),
        "policy": policy(),
    })
}

/// Keys about memory and rights.
fn memory() -> Value {
    json!({
        "lock_memory": flag("Locks the memory of the process in main memory during the run."),
        "prefault": quantity("size", "B", "Size of each worker's stack that is touched before the first step."),
        "huge_pages": flag("Requests huge pages for chunk stores."),
        "numa": flag("Places chunk stores on the NUMA node of the cores that fill them."),
        "timer_slack": quantity("time", "s", "Timer slack of the workers: the kernel can delay their timers by this time."),
        "dma_latency": quantity("time", "s", "Longest time that idle cores may take to wake up during the run."),
        "force": flag("Allows settings that can hang the machine."),
    })
}

/// Keys about time.
fn clock() -> Value {
    json!({
        "clock": { "enum": ["real", "manual"], "default": "real", "description": "`manual`: virtual time, which stands still while there is work." },
        "scale": {
            "type": "number",
            "minimum": 1e-6,
            "maximum": 1e6,
            "default": 1.0,
            "description": "Speed of the clock as a multiple of real time.",
        },
    })
}

/// Keys about failures, hangs and late messages.
fn supervision() -> Value {
    json!({
        "strict": {
            "type": "boolean",
            "default": false,
            "description": "Whether a requested setting that is not obtained is an error.",
        },
        "watchdog": quantity("time", "s", "Longest time of a step, after which the operator is reported as hanging; `off` for no limit. Default: 10 s."),
        "on_hang": {
            "enum": ["wait", "stop"],
            "default": "wait",
            "description": "What the run does when an operator hangs.",
        },
        "explain": {
            "enum": ["auto", "on", "off"],
            "default": "auto",
            "description": "Whether the causes of late messages are determined; auto: if the pipeline has a limit.",
        },
    })
}

/// Keys about files, the duration, and chunks.
fn data() -> Value {
    json!({
        "output": { "type": "string", "default": "out", "description": "Folder for the files of sinks and for the record." },
        "control": { "type": "string", "description": "Control socket, through which the run can be monitored and controlled." },
        "duration": quantity("time", "s", "Time after which the run stops, on the clock of the run, whatever the pace. Default: when all sources have ended."),
        "pace": { "enum": ["real", "fast"], "description": "Pace of all sources: at their rates, or as fast as possible. Default: set by each source." },
        "sync_files": { "type": "boolean", "default": true, "description": "Whether the end of the run waits until the files of its sinks are on the disk." },
        "store": quantity("size", "B", "Upper limit of the memory for chunks. Default: half of the machine's."),
        "defaults": {
            "type": "object",
            "description": "Defaults for edges.",
            "additionalProperties": false,
            "properties": { "capacity": capacity(), "quantum": quantum() },
        },
    })
}

/// Tables of the graph.
fn graph() -> Value {
    json!({
        "pool": { "type": "array", "items": pool() },
        "operator": list("operator"),
        "edge": list("edge"),
        "path": list("path"),
        "subgraph": { "type": "array", "items": subgraph() },
    })
}

fn idle(what: &str) -> Value {
    let description = format!(
        "{what}: `park`, `spin`, `spin:20us` (then park), `early:150us` (before a source is due). Default: `park`."
    );
    json!({ "type": "string", "description": description })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "default": false, "description": description })
}

fn policy() -> Value {
    json!({
        "type": "string",
        "pattern": "^(o:-?[0-9]+|[fr]:[0-9]+|d:[0-9]+[a-z]*(:[0-9]+[a-z]*){1,2})$",
        "description": "Kernel scheduling policy of a worker: `o:NICE`, `f:PRIO`, `r:PRIO`, `d:RUNTIME[:DEADLINE]:PERIOD`.",
    })
}

/// Pool of the scheduler `custom`.
fn pool() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "operators"],
        "properties": {
            "name": { "type": "string", "maxLength": 12, "pattern": "^[^./\\s]+$", "description": "Name of the pool, part of its thread names." },
            "cores": cores("Cores of the pool, one worker on each."),
            "workers": { "type": "integer", "minimum": 1, "description": "Number of workers, if no cores are named." },
            "policy": policy(),
            "idle": idle("How idle workers of the pool wait"),
            "operators": {
                "type": "array",
                "minItems": 1,
                "items": { "type": "string" },
                "description": "Operators of the pool; the name of a subgraph means all of its operators.",
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
    json!({ "type": "integer", "minimum": 1, "default": 4, "description": "Number of messages that an edge can hold." })
}

fn quantum() -> Value {
    quantity(
        "size",
        "B",
        "Largest size of a chunk. Default: 16 KiB, or that of `[defaults]`, but behind a source that keeps time at most 100 ms of samples, unless samples go round in a cycle; of one frame, if frames are known to be larger.",
    )
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
            "from": end("`operator.output`; the output can be omitted if there is only one."),
            "to": end("`operator.input`; the input can be omitted if there is only one."),
            "capacity": capacity(),
            "quantum": quantum(),
            "when_full": {
                "enum": ["wait", "drop_oldest", "drop_newest", "latest", "error"],
                "default": "wait",
                "description": "What a full edge does with a new message.",
            },
            "initial": {
                "type": ["number", "string", "boolean"],
                "description": "Message on the edge at the start; for chunks, the number of zero samples, or their time.",
            },
        },
    })
}

fn on_miss(words: &[&str]) -> Value {
    json!({ "enum": words, "default": "record", "description": "What happens when the limit is exceeded." })
}

fn path() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["from", "to"],
        "properties": {
            "from": end("Name of a source."),
            "to": end("Name of an operator."),
            "max_latency": quantity("time", "s", "Longest latency; a message that takes longer is a miss."),
            "max_in_flight": {
                "anyOf": [{ "type": "integer", "minimum": 1 }, quantity("time", "s", "")],
                "description": "Largest number of messages in flight, or their largest time span; the source waits at this limit.",
            },
            "on_miss": on_miss(&["record", "skip", "stop"]),
        },
    })
}

fn subgraph() -> Value {
    let ports = |what: &str| {
        let description = format!("Names of its {what}, and the inner ports they stand for.");
        json!({ "type": "object", "additionalProperties": { "type": "string" }, "description": description })
    };
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {
            "name": { "type": "string", "description": "Name of the subgraph, used as the kind of an operator." },
            "inputs": ports("inputs"),
            "outputs": ports("outputs"),
            "operator": list("operator"),
            "edge": list("edge"),
        },
    })
}
