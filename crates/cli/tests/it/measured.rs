//! `onbeat plan FILE --measure`, `onbeat bench pipeline` and `onbeat bench plan`, with runs so short that
//! their figures mean nothing.

use super::harness::Place;
use serde_json::Value;
use std::fs;

const PIPELINE: &str = r#"
# two neighbours that do little
scheduler = "greedy"   # for now

[[operator]]
name = "numbers"
kind = "null.source"
count = 2000

[[operator]]
name = "gain"
kind = "saxpy"
a = 0.5

[[operator]]
name = "file"
kind = "file.sink"
path = "all.f32"

[[edge]]
from = "numbers.out"
to = "gain.in"

[[edge]]
from = "gain.out"
to = "file.in"
"#;

/// Returns a place with that pipeline and its own cache folder.
fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("p.toml"), PIPELINE).expect("a file");
    place
}

#[test]
fn a_plan_measures_recommends_and_keeps_what_it_learned() {
    let place = place();
    let cache = place.path("cache");
    let cache = cache.to_str().expect("a path in text");
    let measure = |more: &[&str]| {
        let all = [&["plan", "p.toml", "--measure", "--seconds", "0.05"][..], more].concat();
        let answer = place.onbeat_with(&all, &[("XDG_CACHE_HOME", cache)]);
        assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
        answer.stdout
    };
    let text = measure(&[]);
    for part in ["is recommended", "messages/s", "on this machine", "gain", "the engine, per step"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!place.path("out/all.f32").exists());
    // Costs measured next to busy programs are not cached, and the output says so.
    let is_kept = |text: &str| text.contains("cached in") && text.contains("costs.json");
    let is_told = |text: &str| is_kept(text) || text.contains("and not cached");
    assert!(is_told(&text), "{text}");
    assert_eq!(place.path("cache/onbeat/costs.json").exists(), is_kept(&text), "{text}");
    if is_kept(&text) {
        assert!(measure(&[]).contains("cached from an earlier measurement; --fresh"));
    }
    assert!(is_told(&measure(&["--fresh"])));
    let json: Value = serde_json::from_str(&measure(&["--format", "json"])).expect("JSON");
    assert!(json["expected"][0]["messages_per_s"].is_f64() && json["machine"]["hop_ns"].is_f64(), "{json}");
    assert!(json["why"][0].is_string() && json["recommended"].is_string(), "{json}");
    assert!(measure(&["--write"]).contains("p.toml "));
    let written = fs::read_to_string(place.path("p.toml")).expect("a file");
    assert!(written.contains("# two neighbours") && written.contains("# for now"), "{written}");
    assert!(written.contains("[[operator]]\nname = \"numbers\""), "{written}");
}

#[test]
fn a_pipeline_runs_under_each_scheduler() {
    let place = place();
    let arguments = ["bench", "pipeline", "p.toml", "--rounds", "2", "--seconds", "0.02"];
    let answer = place.onbeat(&arguments);
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    for part in ["medians of 2 rounds", "greedy", "event", "pinned", "messages of numbers.out → gain.in"] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    assert!(!place.path("out/all.f32").exists(), "what sinks write is gone");
    let more = [&arguments[..], &["--mode", "greedy", "--format", "json"]].concat();
    let found: Value = serde_json::from_str(&place.onbeat(&more).stdout).expect("JSON");
    assert_eq!(found["bench"], "pipeline");
    assert!(found["figures"]["pipeline.greedy.rate"]["value"].is_f64(), "{found}");
}

#[test]
fn graphs_are_drawn_and_tried() {
    let place = place();
    let answer = place.onbeat_with(
        &["bench", "plan", "--shapes", "1", "--rounds", "1", "--seconds", "0.02"],
        &[("XDG_CACHE_HOME", "relative"), ("HOME", "")],
    );
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    for part in ["plan: 1 random graph", "recommended", "error of rate", "not cached"] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let place = place();
    let custom = PIPELINE.replace("greedy\"", "custom\"\n[[pool]]\nname = \"a\"\noperators = [\"gain\"]\n#");
    fs::write(place.path("custom.toml"), custom).expect("a file");
    fs::write(
        place.path("out.toml"),
        PIPELINE.replace("\"file.sink\"\npath = \"all.f32\"", "\"stdout.sink\""),
    )
    .expect("a file");
    for (arguments, parts) in [
        (&["plan", "p.toml", "--write"][..], &["--measure"][..]),
        (&["plan", "p.toml", "--measure", "--dot"], &["cannot be used with"]),
        (&["plan", "p.toml", "--measure", "--seconds", "0"], &["seconds is 0: it must be from 0.001 to 600"]),
        (&["plan", "none.toml", "--measure"], &["none.toml"]),
        (&["plan", "custom.toml", "--measure", "--write"], &["defines its own pools", "omit --write"]),
        (
            &["plan", "out.toml", "--measure"],
            &["an operator of it writes to stdout", "write to a file instead"],
        ),
        (&["bench", "pipeline", "out.toml"], &["bench pipeline runs the pipeline many times"]),
        (&["bench", "pipeline", "p.toml", "--scheduler", "greedy"], &["choose them with --mode"]),
        (&["bench", "pipeline", "p.toml", "--mode", "fast"], &["'fast' for '--mode", "greedy"]),
        (&["bench", "pipeline", "p.toml", "--seconds", "0"], &["seconds from 0.001 to 600"]),
        (&["bench", "pipeline", "p.toml", "--set", "gain.c=1"], &["unknown"]),
        (&["bench", "plan", "--shapes", "0"], &["'0' for '--shapes"]),
        (&["bench", "plan", "--idle", "nap"], &["`nap` is not an idle setting"]),
    ] {
        let answer = place.onbeat(arguments);
        assert_eq!((answer.status, &*answer.stdout), (Some(1), ""), "{arguments:?}: {answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{arguments:?}: {part}: {}", answer.stderr);
        }
    }
}
