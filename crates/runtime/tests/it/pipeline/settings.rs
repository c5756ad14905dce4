//! Settings from outside the file.

use super::{CHAIN, pointed, read_with};

fn refused(settings: &[&str]) -> String {
    read_with(CHAIN, settings).unwrap_err().to_string()
}

#[test]
fn settings_replace_what_the_file_says() {
    let pipeline =
        read_with(CHAIN, &["numbers.to=7", "duration=90 s", "defaults.capacity=9", "output=a b/c"]).unwrap();
    assert_eq!(pipeline.options.duration_ns, Some(90_000_000_000));
    assert_eq!(pipeline.plan.edges[0].capacity, 9);
    assert_eq!(pipeline.output.to_str(), Some("a b/c"));
    let record = pipeline.start().unwrap().wait();
    assert!(record.is_ok_and(|record| record.edges[0].received == 7));
}

#[test]
fn the_last_one_wins() {
    let pipeline = read_with(CHAIN, &["duration=1", "duration=\"2s\"", "numbers.rate=3 kHz"]).unwrap();
    assert_eq!(pipeline.options.duration_ns, Some(2_000_000_000));
}

#[test]
fn nested_tables_are_made() {
    let text = CHAIN.replace("kind = \"count\"\nto = 3", "kind = \"times\"");
    let error = read_with(&text, &["numbers.shape.small=300"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--set numbers.shape.small=300: `shape.small` of operator `numbers`: \
         expected a whole number from 0 to 255, found integer `300`"
    );
    assert_eq!(pointed(&error), "300");
    let error = read_with(&text, &["numbers.by.x=1", "numbers.by.y=2"]).unwrap_err();
    assert!(error.to_string().contains("expected a number, found a table"), "{error}");
    assert!(
        read_with(&text, &["numbers.kind.x=1"]).unwrap_err().to_string().contains("`kind` is not a table")
    );
}

#[test]
fn errors_name_the_setting() {
    let unit = refused(&["duration=1s", "numbers.rate=3 kHZ"]);
    assert!(unit.starts_with("--set numbers.rate=3 kHZ: `rate` of operator `numbers`: "), "{unit}");
    assert_eq!(
        refused(&["numbrs.to=3"]),
        "--set numbrs.to=3: there is no operator `numbrs`: did you mean `numbers`?"
    );
    let key = refused(&["numbers.too=3"]);
    assert_eq!(
        key,
        "--set numbers.too=3: unknown key `too` in operator `numbers` (count): did you mean `to`?"
    );
    let top = refused(&["duratoin=3"]);
    assert_eq!(top, "--set duratoin=3: unknown key `duratoin` in the pipeline: did you mean `duration`?");
    assert!(refused(&["numbers=3"]).starts_with("--set numbers=3: `numbers` is an operator"));
    assert!(refused(&["numbers.name=x"]).contains("cannot be set"));
    assert!(refused(&["numbers"]).contains("KEY=VALUE"));
    assert!(refused(&["=3"]).contains("is not a key"));
    assert!(refused(&["numbers..to=3"]).contains("is not a key"));
    assert!(refused(&[""]).contains("KEY=VALUE"));
}

#[test]
fn what_was_given_by_a_flag_names_the_flag() {
    let mut overrides = onbeat_runtime::Overrides::default();
    overrides.flag("--duration", "duration", "soon");
    let error =
        onbeat_runtime::Pipeline::parse(CHAIN, "test.toml", "", &super::registry(), &overrides).unwrap_err();
    assert!(
        error.to_string().starts_with("--duration soon: `duration` of the pipeline: `soon` is not a time"),
        "{error}"
    );
}
