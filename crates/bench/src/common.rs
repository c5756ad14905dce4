//! Parameters and notes that all benches share.

use onbeat_report::BenchResult;
use serde_json::{Map, Value};

/// Below this share, the ranges of the rounds are sufficient information.
const QUIET: f64 = 0.05;

/// Adds version and build profile to the bench's own parameters, which must be an object.
pub(crate) fn parameters(own: Value) -> Map<String, Value> {
    let mut all = match own {
        Value::Object(own) => own,
        _ => Map::new(),
    };
    all.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    all.insert("profile".to_owned(), profile().into());
    all
}

/// Build profile of this program.
pub(crate) fn profile() -> &'static str {
    if cfg!(debug_assertions) { "dev" } else { "release" }
}

/// Adds notes that a reader needs before quoting the figures: whether this is a debug build, how much of the
/// machine `others` used, and `about`, which says what to do then.
pub(crate) fn doubts(result: &mut BenchResult, others: Option<f64>, about: &str) {
    if cfg!(debug_assertions) {
        result.notes.push("this is a debug build: its figures say nothing about a release build".to_owned());
    }
    let Some(others) = others else { return };
    let percent = others * 100.0;
    result.add("machine.others", &[percent], "%");
    if others > QUIET {
        result.notes.push(format!(
            "other processes used {percent:.0} % of the machine during the \
                                   measurement: {about}"
        ));
    }
}

/// Advice if figures are compared within a round.
pub(crate) const AGAIN: &str = "measure again on a quiet machine";
/// Advice if figures stand alone.
pub(crate) const LEAST: &str = "the lowest of the runs is nearer to the truth than their median";
