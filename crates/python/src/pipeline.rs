//! Pipelines for Python: a text in TOML, and the instances that it names.

use crate::kind::{registry, with_instances};
use crate::run::PythonRun;
use onbeat::{Overrides, Pipeline, PipelineError, RunError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

create_exception!(_onbeat, Fault, PyException, "Mistake in a pipeline: message, file, line, column, help.");

fn fault(py: Python<'_>, error: &PipelineError) -> PyErr {
    let (line, column) =
        error.line_column().map_or((None, None), |(line, column)| (Some(line), Some(column)));
    let arguments =
        (error.message().to_owned(), error.file().to_owned(), line, column, error.help().map(str::to_owned));
    let _ = py;
    Fault::new_err(arguments)
}

/// Reads and plans a pipeline. Also returns its Python operators.
fn read(
    py: Python<'_>,
    text: &str,
    file: &str,
    folder: &str,
    instances: Vec<Py<PyAny>>,
) -> PyResult<(Pipeline, Vec<Py<PyAny>>)> {
    let overrides = Overrides::default();
    let (made, instances) =
        with_instances(instances, || Pipeline::parse(text, file, folder, &registry(), &overrides));
    Ok((made.map_err(|error| fault(py, &error))?, instances))
}

/// Checks a pipeline. Returns its plan in JSON, and the plan as a graph for Graphviz.
#[pyfunction]
pub fn plan(
    py: Python<'_>,
    text: &str,
    file: &str,
    folder: &str,
    instances: Vec<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let (pipeline, _) = read(py, text, file, folder, instances)?;
    let json =
        serde_json::to_string(&pipeline.plan).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((json, pipeline.plan.dot()))
}

/// Starts a pipeline. Returns the run, and the Python operators in it.
#[pyfunction]
pub fn start(
    py: Python<'_>,
    text: &str,
    file: &str,
    folder: &str,
    instances: Vec<Py<PyAny>>,
) -> PyResult<(PythonRun, Vec<Py<PyAny>>)> {
    let (pipeline, instances) = read(py, text, file, folder, instances)?;
    // Operators start before this returns, and need the interpreter's lock.
    let run = py.detach(|| {
        let evidence = onbeat::evidence(&pipeline.plan);
        pipeline.start_explained(evidence)
    });
    let run = run.map_err(|error| match error {
        RunError::Begin(text) => Fault::new_err((text, "", None::<usize>, None::<usize>, None::<String>)),
        error => Fault::new_err((error.to_string(), "", None::<usize>, None::<usize>, None::<String>)),
    })?;
    Ok((PythonRun::new(run)?, instances))
}

/// Makes the HTML report of a record in JSON.
#[pyfunction]
pub fn report(record: &str, label: &str) -> PyResult<String> {
    let record =
        onbeat::Record::from_json(record).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(onbeat_report::page::page(&[onbeat_report::page::LabelledRun { label, record: &record }]))
}

/// Names of all kinds of operators, with their parameters, ports and summaries, in JSON.
#[pyfunction]
pub fn kinds() -> String {
    let registry = registry();
    let kinds = registry.kinds().map(|kind| {
        let (inputs, outputs) = kind.ports();
        serde_json::json!({
            "name": kind.name(),
            "summary": kind.summary(),
            "inputs": inputs,
            "outputs": outputs,
            "schema": kind.schema(),
            "settable": kind.settable(),
        })
    });
    serde_json::Value::Array(kinds.collect()).to_string()
}
