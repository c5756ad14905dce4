//! Formulas over samples and over values.
//!
//! | type | description |
//! |---|---|
//! | [`SampleExpression`] | a formula for each sample of one or several streams |
//! | [`ValueExpression`] | a formula for each value |

mod functions;
mod parser;
mod program;
mod samples;
mod tokens;
mod values;

pub use samples::SampleExpression;
pub use values::{OtherValues, ValueExpression};

use crate::check;
use onbeat_runtime::{Error, Kind, Registry};
use parser::compile;
use program::FormulaProgram;

/// Names of the inputs.
const INPUTS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Compiles a formula over some of the inputs and the variables `more`, which come first. If the number of
/// inputs is not given, they go up to the last one that the formula has. Returns the program and their
/// number.
fn compiled(formula: &str, inputs: Option<usize>, more: &[&str]) -> Result<(FormulaProgram, usize), Error> {
    if let Some(count) = inputs {
        check::within("inputs", count as f64, 1.0, INPUTS.len() as f64, "use two expressions")?;
    }
    let most = inputs.unwrap_or(INPUTS.len());
    let program = compile(formula, &[more, &INPUTS[..most]].concat())?;
    let used = (0..most).rev().find(|input| program.has(more.len() + input)).map_or(1, |last| last + 1);
    Ok((program, inputs.unwrap_or(used)))
}

/// Checks that a new formula has no further inputs: ports do not change during a run.
fn check_inputs(known: usize, count: usize) -> Result<(), Error> {
    if known == 0 || count <= known {
        return Ok(());
    }
    Err(Error::new(format!(
        "`formula` has the input `{}`, but there are {known} inputs: set `inputs` to {count} before the run",
        INPUTS[count - 1]
    )))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::combine::<SampleExpression>());
    registry.add(Kind::operator::<ValueExpression>());
}
