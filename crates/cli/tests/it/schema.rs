//! Schema of pipeline files: it accepts what the reader accepts, has every key, and refuses errors.

use super::harness::Place;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

fn schema() -> Value {
    let answer = Place::new().onbeat(&["schema"]);
    assert_eq!((answer.status, answer.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&answer.stdout).expect("JSON")
}

/// Validates a value: as much of JSON Schema as our schema needs. An unknown key of the schema fails the
/// test. Returns the errors.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let schema = match schema {
        Value::Bool(true) => return Vec::new(),
        Value::Bool(false) => return vec![format!("{at}: not allowed")],
        Value::Object(schema) => schema,
        other => panic!("{other} is not a schema"),
    };
    let mut wrong = Vec::new();
    for (key, rule) in schema {
        wrong.extend(check_rule(root, schema, (key, rule), value, at));
    }
    wrong
}

fn check_rule(
    root: &Value,
    schema: &Map<String, Value>,
    (key, rule): (&str, &Value),
    value: &Value,
    at: &str,
) -> Vec<String> {
    let list = || rule.as_array().expect("a list");
    let good = |ok: bool| if ok { Vec::new() } else { vec![format!("{at}: {value} against {key} {rule}")] };
    let all = |schema: &Value, value: &Value, at: String| check(root, schema, value, &at);
    match key {
        "$ref" => {
            let pointer = rule.as_str().and_then(|target| target.strip_prefix('#')).expect("a reference");
            let target = root.pointer(pointer).unwrap_or_else(|| panic!("{rule} leads nowhere"));
            check(root, target, value, at)
        }
        "type" => {
            let fits = |name: &Value| has_type(value, name.as_str().expect("a type"));
            good(rule.as_array().map_or_else(|| fits(rule), |names| names.iter().any(fits)))
        }
        "enum" => good(list().contains(value)),
        "const" => good(rule == value),
        "maxLength" => good(
            value
                .as_str()
                .is_none_or(|text| rule.as_u64().is_some_and(|most| text.chars().count() as u64 <= most)),
        ),
        "minimum" => good(value.as_f64().is_none_or(|value| value >= rule.as_f64().expect("a number"))),
        "maximum" => good(value.as_f64().is_none_or(|value| value <= rule.as_f64().expect("a number"))),
        "exclusiveMinimum" => {
            good(value.as_f64().is_none_or(|value| value > rule.as_f64().expect("a number")))
        }
        "exclusiveMaximum" => {
            good(value.as_f64().is_none_or(|value| value < rule.as_f64().expect("a number")))
        }
        "not" => good(!check(root, rule, value, at).is_empty()),
        "oneOf" | "anyOf" => {
            let tried: Vec<_> = list().iter().map(|schema| check(root, schema, value, at)).collect();
            let fitting = tried.iter().filter(|wrong| wrong.is_empty()).count();
            good(if key == "oneOf" { fitting == 1 } else { fitting > 0 })
        }
        "allOf" => list().iter().flat_map(|schema| check(root, schema, value, at)).collect(),
        "items" | "prefixItems" => check_items(root, rule, value, at),
        "properties" => {
            let Some(object) = value.as_object() else { return Vec::new() };
            let rules = rule.as_object().expect("properties");
            let known = object.iter().filter_map(|(key, value)| Some((key, value, rules.get(key)?)));
            known.flat_map(|(key, value, rule)| all(rule, value, format!("{at}.{key}"))).collect()
        }
        "additionalProperties" => {
            let Some(object) = value.as_object() else { return Vec::new() };
            let known = schema.get("properties").and_then(Value::as_object);
            let others = object.iter().filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)));
            others.flat_map(|(key, value)| all(rule, value, format!("{at}.{key}"))).collect()
        }
        "required" => {
            let has = |key: &&Value| value.get(key.as_str().expect("a key")).is_none();
            let missing: Vec<_> = list().iter().filter(has).collect();
            if value.is_object() && !missing.is_empty() {
                vec![format!("{at}: lacks {missing:?}")]
            } else {
                Vec::new()
            }
        }
        // Descriptions for people and editors.
        "$schema" | "$defs" | "title" | "description" | "default" | "format" | "x-unit" | "pattern"
        | "examples" | "minItems" | "maxItems" => Vec::new(),
        other => panic!("the schema has the key `{other}`, which this test does not know"),
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("type {other}"),
    }
}

fn check_items(root: &Value, rule: &Value, value: &Value, at: &str) -> Vec<String> {
    match (value.as_array(), rule) {
        (Some(values), Value::Array(rules)) => values
            .iter()
            .zip(rules)
            .flat_map(|(value, rule)| check(root, rule, value, &format!("{at}[]")))
            .collect(),
        (Some(values), rule) => values
            .iter()
            .enumerate()
            .flat_map(|(n, value)| check(root, rule, value, &format!("{at}[{n}]")))
            .collect(),
        (None, _) => Vec::new(),
    }
}

fn wrong(schema: &Value, text: &str) -> Vec<String> {
    let value: Value = toml::from_str(text).expect("TOML");
    check(schema, schema, &value, "file")
}

#[test]
fn every_example_fits() {
    let schema = schema();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the examples").flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = fs::read_to_string(&path).expect("an example");
            assert_eq!(wrong(&schema, &text), Vec::<String>::new(), "{}", path.display());
            count += 1;
        }
    }
    assert!(count > 1);
}

#[test]
fn the_example_of_every_kind_fits() {
    let schema = schema();
    let registry = onbeat::operators::registry();
    for kind in registry.kinds() {
        let text = format!("[[operator]]\nname = \"it\"\nkind = \"{}\"\n{}", kind.name(), kind.example());
        assert_eq!(wrong(&schema, &text), Vec::<String>::new(), "{}", kind.name());
    }
}

#[test]
fn what_the_reader_refuses_does_not_fit() {
    let schema = schema();
    for text in [
        "nam = \"x\"",
        "name = 7",
        "scheduler = \"fast\"",
        "[defaults]\ncap = 7",
        "[[operator]]\nkind = \"add\"",
        "[[operator]]\nname = \"a.b\"",
        "[[operator]]\nname = \"a\"\nkind = \"add\"\nb = 1",
        "[[operator]]\nname = \"a\"\nkind = \"wav.sink\"",
        "[[operator]]\nname = \"a\"\nkind = \"wav.sink\"\npath = 7",
        "[[edge]]\nfrom = \"a\"",
        "[[edge]]\nfrom = \"a\"\nto = \"b\"\nwhen_full = \"weep\"",
        "[[path]]\nfrom = \"a\"\nto = \"b\"\nlatency = 7",
        "[[subgraph]]\nname = \"a\"\noperators = []",
    ] {
        assert!(!wrong(&schema, text).is_empty(), "{text}");
    }
}

/// The schema has exactly the keys that the reader knows.
#[test]
fn the_keys_are_those_of_the_reader() {
    let schema = schema();
    let place = Place::new();
    for (text, pointer) in [
        ("zzzzzz = 1", "/properties"),
        ("[defaults]\nzzzzzz = 1", "/properties/defaults/properties"),
        ("[[edge]]\nfrom = \"a\"\nto = \"b\"\nzzzzzz = 1", "/$defs/edge/properties"),
        ("[[path]]\nfrom = \"a\"\nto = \"b\"\nzzzzzz = 1", "/$defs/path/properties"),
        ("[[subgraph]]\nname = \"a\"\nzzzzzz = 1", "/properties/subgraph/items/properties"),
    ] {
        fs::write(place.path("keys.toml"), text).expect("a file");
        let stderr = place.onbeat(&["check", "keys.toml"]).stderr;
        let known = stderr.split("its keys are ").nth(1).unwrap_or_else(|| panic!("{stderr}"));
        let mut known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let properties = schema.pointer(pointer).and_then(Value::as_object).expect("properties");
        let mut here: Vec<&str> = properties.keys().map(String::as_str).collect();
        known.sort_unstable();
        here.sort_unstable();
        assert_eq!(here, known, "{text}");
    }
    assert_eq!(
        schema["properties"]["operator"],
        json!({ "type": "array", "items": { "$ref": "#/$defs/operator" } })
    );
}
