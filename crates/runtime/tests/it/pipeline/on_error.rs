//! `on_error` and `restart` from text.

use super::{pointed, read};
use serde_json::json;

fn with(keys: &str) -> String {
    super::CHAIN.replace("kind = \"end\"\n", &format!("kind = \"end\"\n{keys}\n"))
}

#[test]
fn all_forms_are_read_and_shown() {
    let usual = json!({ "limit": 5, "delay": 0.1, "within": 60.0, "then": "stop" });
    let own = json!({ "limit": 2, "delay": 0.002, "within": 1.5, "then": "isolate" });
    let full =
        "on_error = \"restart\"\nrestart = { limit = 2, delay = \"2 ms\", within = 1.5, then = \"isolate\" }";
    for (keys, on_error, restart) in [
        ("", None, None),
        ("on_error = \"stop\"", None, None),
        ("on_error = \"isolate\"", Some("isolate"), None),
        ("on_error = \"restart\"", Some("restart"), Some(&usual)),
        ("on_error = \"restart\"\nrestart = {}", Some("restart"), Some(&usual)),
        (full, Some("restart"), Some(&own)),
    ] {
        let record = read(&with(keys)).unwrap().start().unwrap().wait().unwrap();
        let shown = &record.config["operator"][1];
        assert_eq!(shown.get("on_error").and_then(|word| word.as_str()), on_error, "{keys}");
        assert_eq!(shown.get("restart"), restart, "{keys}");
    }
}

/// The keys, what is said, and the text that it is about.
#[test]
fn wrong_keys_are_refused_at_their_place() {
    let operator = "operator `end`";
    let of = "`restart` of operator `end`";
    for (keys, message, at) in [
        (
            "on_error = \"again\"",
            format!("`on_error` of {operator}: `again` is none of `stop`, `restart`, `isolate`"),
            "\"again\"",
        ),
        (
            "on_error = \"restrat\"",
            format!(
                "`on_error` of {operator}: `restrat` is none of `stop`, `restart`, `isolate`: did you mean `restart`?"
            ),
            "\"restrat\"",
        ),
        ("on_error = 3", format!("`on_error` of {operator}: expected a string"), "3"),
        (
            "restart = { limit = 3 }",
            format!("{of} says how it is started again, but `on_error` does not ask for it"),
            "{ limit = 3 }",
        ),
        (
            "on_error = \"isolate\"\nrestart = {}",
            format!("{of} says how it is started again, but `on_error` does not ask for it"),
            "{}",
        ),
        ("on_error = \"restart\"\nrestart = 3", format!("{of}: expected a table, found an integer"), "3"),
        ("on_error = \"restart\"\nrestart = { limits = 3 }", "unknown key `limits`".to_string(), "limits"),
        (
            "on_error = \"restart\"\nrestart = { limit = 0 }",
            format!("`limit` of {of}: 0 must be 1 to 4294967295"),
            "0",
        ),
        (
            "on_error = \"restart\"\nrestart = { limit = -1 }",
            format!("`limit` of {of}: -1 must be 1 to 4294967295"),
            "-1",
        ),
        (
            "on_error = \"restart\"\nrestart = { limit = 5000000000 }",
            format!("`limit` of {of}: 5000000000 must be 1 to 4294967295"),
            "5000000000",
        ),
        (
            "on_error = \"restart\"\nrestart = { delay = 0 }",
            format!("`delay` of {of}: 0 s must be above 0 and below 584 years"),
            "0",
        ),
        ("on_error = \"restart\"\nrestart = { within = \"soon\" }", String::new(), "\"soon\""),
        (
            "on_error = \"restart\"\nrestart = { then = \"restart\" }",
            format!("`then` of {of}: `restart` is none of `stop`, `isolate`"),
            "\"restart\"",
        ),
    ] {
        let error = read(&with(keys)).unwrap_err();
        assert!(error.to_string().contains(&message), "{keys}: {error}");
        assert_eq!(pointed(&error), at, "{keys}");
    }
}

#[test]
fn the_watchdog_is_a_time_or_off() {
    let top = |keys: &str| format!("{keys}\n{}", super::CHAIN);
    for (keys, watchdog, on_hang) in [
        ("", json!(10.0), json!("wait")),
        ("watchdog = \"250 ms\"\non_hang = \"stop\"", json!(0.25), json!("stop")),
        ("watchdog = \"off\"", json!("off"), json!("wait")),
    ] {
        let record = read(&top(keys)).unwrap().start().unwrap().wait().unwrap();
        assert_eq!((&record.config["watchdog"], &record.config["on_hang"]), (&watchdog, &on_hang), "{keys}");
        let is_watched = record.threads.iter().any(|thread| thread.name == "onbeat-watch");
        assert_eq!(is_watched, keys != "watchdog = \"off\"", "{keys}");
    }
    for (keys, message, at) in [
        ("watchdog = \"soon\"", "`watchdog` of the pipeline", "\"soon\""),
        ("watchdog = \"1 ms\"", "it must be 10 ms or more, or \"off\"", "\"1 ms\""),
        ("watchdog = 0", "must be above 0", "0"),
        ("watchdog = -1", "must be above 0", "-1"),
        ("watchdog = false", "`watchdog` of the pipeline", "false"),
        ("on_hang = \"maybe\"", "`maybe` is none of `wait`, `stop`", "\"maybe\""),
        ("on_hang = 1", "`on_hang` of the pipeline", "1"),
    ] {
        let error = read(&top(keys)).unwrap_err();
        assert!(error.to_string().contains(message), "{keys}: {error}");
        assert_eq!(pointed(&error), at, "{keys}");
    }
}
