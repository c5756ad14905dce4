//! The JSON of a record: pinned, documented, read back, and refused with a useful message.

mod sample;

use std::collections::BTreeSet;
use std::fs;

use onbeat_trace::record::{Outcome, WhenFull};
use onbeat_trace::{ReadError, Record};
use serde_json::Value;

/// A change of this snapshot changes what other programs parse: see "Version" in SCHEMA.md.
#[test]
fn the_json_is_pinned() {
    insta::assert_snapshot!(sample::record().to_json_pretty());
}

#[test]
fn a_record_survives_json() {
    let record = sample::record();
    assert_eq!(Record::from_json(&record.to_json_pretty()).unwrap(), record);
}

/// The names of all fields in `value`, but those of the configuration, which are the user's.
fn field_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                names.insert(name.clone());
                if name != "config" {
                    field_names(value, names);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| field_names(item, names)),
        _ => {}
    }
}

#[test]
fn the_schema_page_has_every_field_and_no_other() {
    let page = include_str!("../../../SCHEMA.md");
    let documented: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name.to_owned())
        .collect();
    let mut written = BTreeSet::new();
    field_names(&serde_json::to_value(sample::record()).unwrap(), &mut written);
    assert_eq!(written.difference(&documented).collect::<Vec<_>>(), [""; 0], "not in SCHEMA.md");
    assert_eq!(documented.difference(&written).collect::<Vec<_>>(), [""; 0], "only in SCHEMA.md");
}

#[test]
fn fields_of_later_onbeats_are_skipped() {
    let record = sample::record();
    let json = record.to_json_pretty().replacen('{', "{\n  \"from_the_future\": 1,", 1);
    assert_eq!(Record::from_json(&json).unwrap(), record);
}

#[test]
fn what_is_no_record_of_this_version_is_refused_with_a_remedy() {
    let good = sample::record().to_json_pretty();
    let cases = [
        ("", "not JSON: EOF while parsing a value at line 1 column 0"),
        (&good[..good.len() / 2], "not JSON: EOF"),
        ("[]", "its schema is missing, not \"onbeat.record\": give the file that `onbeat run` wrote"),
        (r#"{"schema": "other"}"#, "its schema is \"other\", not \"onbeat.record\""),
        (
            r#"{"schema": "onbeat.record", "version": 9}"#,
            "it is version 9 of onbeat.record and this onbeat reads version 1: open it with the onbeat",
        ),
        (r#"{"schema": "onbeat.record"}"#, "it is version missing of onbeat.record"),
        (
            r#"{"schema": "onbeat.record", "version": 1}"#,
            "it calls itself onbeat.record version 1 but does not fit it: missing field `name`",
        ),
    ];
    for (json, message) in cases {
        let error = Record::from_json(json).unwrap_err();
        assert!(error.to_string().starts_with(message), "{json:.60}: {error}");
    }
}

#[test]
fn a_misfit_names_the_line() {
    let json = sample::record().to_json_pretty().replace("\"drop_oldest\"", "\"drop_some\"");
    let error = Record::from_json(&json).unwrap_err();
    assert!(matches!(error, ReadError::Malformed { .. }));
    assert!(error.to_string().contains("unknown variant `drop_some`, expected one of `wait`"), "{error}");
    assert!(error.to_string().contains(" at line "), "{error}");
}

#[test]
fn words_are_displayed_as_they_are_written() {
    assert_eq!(format!("[{:<12}]", WhenFull::DropOldest), "[drop_oldest ]");
    assert_eq!(serde_json::to_value(Outcome::Ended).unwrap(), Outcome::Ended.to_string());
}

#[test]
fn a_record_is_written_in_one_piece() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.json");
    fs::write(&path, "an old record").unwrap();
    let record = sample::record();
    record.write(&path).unwrap();
    assert_eq!(Record::from_json(&fs::read_to_string(&path).unwrap()).unwrap(), record);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing temporary is left");
}

#[test]
fn a_full_disk_is_an_error_that_names_the_path() {
    let error = sample::record().write("/dev/full").unwrap_err();
    assert!(error.to_string().starts_with("/dev/full: No space left"), "{error}");
}
