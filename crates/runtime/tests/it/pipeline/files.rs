//! One file per case. The first line of an invalid file has `# error: ` and a part of the message.

use super::{kinds::registry, read};
use onbeat_runtime::{Overrides, Pipeline};
use std::path::PathBuf;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pipelines").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn valid_files_are_read() {
    for file in files("valid") {
        Pipeline::read(&file, &registry(), &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn invalid_files_are_refused_with_a_reason() {
    let mut wrong = Vec::new();
    for file in files("invalid") {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut comments = text.lines().map_while(|line| line.strip_prefix("# "));
        let expected = comments.next().and_then(|line| line.strip_prefix("error: ")).expect("its first line");
        let at = comments.next().and_then(|line| line.strip_prefix("at: "));
        let found = Pipeline::read(&file, &registry(), &Overrides::default()).unwrap_err();
        let all = format!("{} | {}", found.message(), found.help().unwrap_or(""));
        let pointed = found.span().map(|span| &found.text()[span]);
        if !all.contains(expected) || (at.is_some() && at != pointed) {
            wrong.push(format!(
                "{}\n  expected: {expected} at {at:?}\n  found: {all} at {pointed:?}",
                file.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What cannot be written into a file that people edit.
#[test]
fn texts_that_nobody_wrote_are_refused() {
    let deep = format!("x = {}", "[".repeat(100_000));
    let dotted = format!("{} = 1", vec!["a"; 10_000].join("."));
    let tables = format!("[{}]", vec!["a"; 10_000].join("."));
    let inline = format!("x = {}1{}", "{ a = ".repeat(5_000), "}".repeat(5_000));
    for text in [
        &deep,
        &dotted,
        &tables,
        &inline,
        "\0",
        "name = \"a\0b\"",
        "name = \"a\\u0000b\"",
        "\u{feff}\u{feff}",
    ] {
        assert!(read(text).is_err());
    }
    let huge =
        "[[operator]]\nname = \"a\"\nkind = \"count\"\nto = 9999999999999999999999999999999999999999999999\n";
    assert!(read(huge).unwrap_err().message().contains("too large"));
    let long = format!("{} = 1", "x".repeat(1 << 20));
    assert!(read(&long).unwrap_err().message().len() < 500);
}
