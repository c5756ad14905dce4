//! Kinds of operators that are searched, missed or not needed.

use super::typed::{Case, try_all};

const CASES: &[Case] = &[
    (
        "an output that is not needed",
        &["check", "open_end.toml"],
        1,
        &[],
        &["output `tone.out` (Chunk<f32>) is not connected", "`null.sink` takes what is not needed"],
    ),
    (
        "an operator in Python",
        &["check", "python.toml"],
        1,
        &[],
        &["there is no operator kind `python`", "python3 -m onbeat run FILE"],
    ),
    ("a word of the trade", &["operators", "--find", "crossing"], 0, &["threshold"], &[]),
    (
        "a word of another trade",
        &["operators", "--find", "zeppelin"],
        1,
        &[],
        &["no operator kind has the words zeppelin", "help: `onbeat operators` lists all kinds\n"],
    ),
];

#[test]
fn kinds_are_found() {
    try_all(CASES);
}
