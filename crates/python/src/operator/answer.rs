//! What a step of a Python operator returns.

use onbeat::{Context, Step};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyTuple};

/// When an operator wants its next step: `WAIT`, `AGAIN`, `DONE`, or `until(time_ns)`.
#[pyclass(frozen, eq, module = "onbeat", name = "Step")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepWord {
    /// When the inputs have messages.
    Wait(),
    /// As soon as the outputs have room.
    Again(),
    /// Never.
    Done(),
    /// At this time, in nanoseconds on the run's clock, or when a message comes.
    Until(u64),
}

#[pymethods]
impl StepWord {
    fn __repr__(&self) -> String {
        match self {
            StepWord::Wait() => "onbeat.WAIT".to_owned(),
            StepWord::Again() => "onbeat.AGAIN".to_owned(),
            StepWord::Done() => "onbeat.DONE".to_owned(),
            StepWord::Until(time_ns) => format!("onbeat.until({time_ns})"),
        }
    }
}

impl StepWord {
    pub fn step(self, cx: &mut Context) -> Step {
        match self {
            StepWord::Wait() => Step::Wait,
            StepWord::Again() => Step::Again,
            StepWord::Done() => Step::Done,
            StepWord::Until(time_ns) => cx.until(time_ns),
        }
    }
}

/// Asks for a step at a time, in nanoseconds on the run's clock, or when a message comes.
#[pyfunction]
pub fn until(time_ns: u64) -> StepWord {
    StepWord::Until(time_ns)
}

/// What a step has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepAnswer {
    /// Samples that it has used of each input.
    pub used: usize,
    /// Samples that it has made for each output.
    pub made: usize,
    /// When it wants the next step, if it said so.
    pub step: Option<StepWord>,
}

impl StepAnswer {
    /// Reads the result of a step that got `samples` samples and room for `room`.
    pub fn of(
        result: &Bound<'_, PyAny>,
        samples: usize,
        room: usize,
        has_inputs: bool,
        has_outputs: bool,
    ) -> PyResult<Self> {
        if result.is_none() {
            return Ok(StepAnswer { used: samples, made: room, step: None });
        }
        if let Ok(word) = result.cast::<StepWord>() {
            let word = *word.get();
            let used = if word == StepWord::Done() { samples } else { 0 };
            return Ok(StepAnswer { used, made: 0, step: Some(word) });
        }
        let wrong = || {
            let kind =
                result.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "`step` returned {kind}: it returns None (all samples used and made), a number of samples, \
                 (used, made), onbeat.WAIT, onbeat.AGAIN, onbeat.DONE or onbeat.until(time_ns)"
            ))
        };
        let is_number = |value: &Bound<'_, PyAny>| {
            !value.is_instance_of::<PyBool>()
                && (value.is_instance_of::<PyInt>() || value.hasattr("__index__").unwrap_or(false))
        };
        if let Ok(tuple) = result.cast::<PyTuple>() {
            if !(2..=3).contains(&tuple.len()) {
                return Err(wrong());
            }
            let (used, made) = (tuple.get_item(0)?, tuple.get_item(1)?);
            if !is_number(&used) || !is_number(&made) {
                return Err(wrong());
            }
            let step = match tuple.get_item(2) {
                Ok(word) => Some(*word.cast::<StepWord>().map_err(|_| wrong())?.get()),
                Err(_) => None,
            };
            return Ok(StepAnswer {
                used: within(&used, samples, "used", "its input has")?,
                made: within(&made, room, "made", "its output has room for")?,
                step,
            });
        }
        if !is_number(result) {
            return Err(wrong());
        }
        if has_outputs || !has_inputs {
            let made = within(result, room, "made", "its output has room for")?;
            return Ok(StepAnswer { used: samples, made, step: None });
        }
        Ok(StepAnswer { used: within(result, samples, "used", "its input has")?, made: 0, step: None })
    }
}

/// Reads the result of a step that got a chunk of `samples` samples to change: how many of them go on, and
/// whether it was the last one.
pub fn passed(result: &Bound<'_, PyAny>, samples: usize) -> PyResult<(usize, bool)> {
    if result.is_none() {
        return Ok((samples, false));
    }
    if result.cast::<StepWord>().is_ok_and(|word| *word.get() == StepWord::Done()) {
        return Ok((samples, true));
    }
    if result.is_instance_of::<PyBool>() || !result.is_instance_of::<PyInt>() {
        return Err(PyTypeError::new_err(format!(
            "`step` returned {}: a step that changes samples in place returns None (all go on), the number of \
             samples that go on, or onbeat.DONE",
            result.get_type().name()?
        )));
    }
    Ok((within(result, samples, "made", "its chunk has")?, false))
}

/// Reads a number of samples.
fn within(value: &Bound<'_, PyAny>, limit: usize, what: &str, has: &str) -> PyResult<usize> {
    let found: i64 = value.extract()?;
    usize::try_from(found).ok().filter(|found| *found <= limit).ok_or_else(|| {
        PyValueError::new_err(format!("`step` returned {found} as the samples it {what}: {has} {limit}"))
    })
}
