//! What every bench tells in the same way.

use onbeat_report::BenchResult;
use serde_json::{Map, Value};

/// Below this the ranges of the rounds say enough.
const QUIET: f64 = 0.05;

/// What it was asked for, which is an object, and what it was made with.
pub(crate) fn parameters(own: Value) -> Map<String, Value> {
    let mut all = match own {
        Value::Object(own) => own,
        _ => Map::new(),
    };
    all.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    all.insert("profile".to_owned(), profile().into());
    all
}

/// How this program was built.
pub(crate) fn profile() -> &'static str {
    if cfg!(debug_assertions) { "dev" } else { "release" }
}

/// What a reader has to know before quoting the figures: how busy `others` kept the machine, and what to do `about` it.
pub(crate) fn doubts(result: &mut BenchResult, others: Option<f64>, about: &str) {
    if cfg!(debug_assertions) {
        result.notes.push("this is a debug build: its figures say nothing about a release build".to_owned());
    }
    let Some(others) = others else { return };
    let percent = others * 100.0;
    result.add("machine.others", &[percent], "%");
    if others > QUIET {
        result.notes.push(format!("others used {percent:.0} % of the machine meanwhile: {about}"));
    }
}

/// About what is compared within a round.
pub(crate) const AGAIN: &str = "measure again on a quiet one";
/// About what is measured by itself.
pub(crate) const LEAST: &str = "the least of the runs is nearer to the truth than their median";
