//! The kind `python`: an operator of a file with Python code.

use crate::operator::PythonOperator;
use onbeat::{Error, Folders, Kind, Registry};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// An operator written in Python.
///
/// All further keys are parameters of the class.
#[derive(Serialize, Deserialize, JsonSchema)]
struct PythonParameters {
    /// File with the class, relative to the pipeline. Without it, `class` names a module, too.
    #[serde(default)]
    file: Option<String>,
    /// Name of the class or of the decorated function: `Loud` with `file`, else `package.module:Loud`.
    class: String,
    /// Parameters of the class.
    #[serde(flatten)]
    parameters: BTreeMap<String, serde_json::Value>,
}

thread_local! {
    /// Instances for the pipeline that this thread makes, by number; and those that it has made.
    static INSTANCES: RefCell<Instances> = const { RefCell::new(Instances { given: Vec::new(), made: Vec::new() }) };
}

/// Python operators of one pipeline.
struct Instances {
    given: Vec<Py<PyAny>>,
    made: Vec<Py<PyAny>>,
}

/// Runs `make` with instances that the pipeline names by their numbers. Returns all instances that are in the
/// pipeline.
pub fn with_instances<R>(given: Vec<Py<PyAny>>, make: impl FnOnce() -> R) -> (R, Vec<Py<PyAny>>) {
    let before = INSTANCES.replace(Instances { given, made: Vec::new() });
    let result = make();
    (result, INSTANCES.replace(before).made)
}

/// Prefix of a class name that stands for a given instance.
const GIVEN: &str = "onbeat:instance:";

/// Returns the built-in kinds, and `python`.
pub fn registry() -> Registry {
    let mut registry = onbeat::operators::registry();
    registry.add(Kind::new(
        "python",
        "an operator written in Python",
        "class = \"onbeat.examples:Gain\"\ngain = \"6 dB\"",
        make,
    ));
    registry
}

fn make(parameters: &PythonParameters, folders: &Folders) -> Result<PythonOperator, Error> {
    Python::attach(|py| {
        let instance = match parameters.class.strip_prefix(GIVEN) {
            Some(number) => given(py, number),
            None => load(py, parameters, folders),
        };
        let instance = instance.map_err(|error| wrong(py, parameters, &error))?;
        let operator =
            PythonOperator::new(instance.bind(py)).map_err(|error| wrong(py, parameters, &error))?;
        INSTANCES.with_borrow_mut(|instances| instances.made.push(instance));
        Ok(operator)
    })
}

fn given(py: Python<'_>, number: &str) -> PyResult<Py<PyAny>> {
    INSTANCES.with_borrow(|instances| {
        let found = number.parse().ok().and_then(|number: usize| instances.given.get(number));
        found.map(|instance| instance.clone_ref(py)).ok_or_else(|| {
            pyo3::exceptions::PyValueError::new_err("`class` names an instance of another pipeline")
        })
    })
}

/// Loads the class, and makes an instance.
fn load(py: Python<'_>, parameters: &PythonParameters, folders: &Folders) -> PyResult<Py<PyAny>> {
    let values = PyDict::new(py);
    for (name, value) in &parameters.parameters {
        values.set_item(name, crate::value::from_file(py, value)?)?;
    }
    let file = parameters.file.as_ref().map(|file| folders.input(file));
    let loader = py.import("onbeat._loader")?;
    Ok(loader.call_method1("make", (file, &parameters.class, values))?.unbind())
}

fn wrong(py: Python<'_>, parameters: &PythonParameters, error: &PyErr) -> Error {
    let text = error.value(py).to_string();
    let kind = error.get_type(py).name().map_or_else(|_| String::new(), |name| name.to_string());
    let class = &parameters.class;
    let subject = if class.starts_with(GIVEN) { String::new() } else { format!("class `{class}`: ") };
    match kind.as_str() {
        "PipelineError" | "ValueError" | "TypeError" => Error::new(format!("{subject}{text}")),
        _ => Error::new(format!("{subject}{kind}: {text}")),
    }
}
