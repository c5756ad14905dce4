//! Work queues: a thread that calls Python functions.

use onbeat::WorkQueue;
use onbeat::work_queue::{CoreSet, Owned, WorkQueueError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(onbeat._onbeat, Refused, PyRuntimeError);

/// A thread that calls functions in the order in which they were scheduled. The package stops it before it is
/// dropped, because its calls need the lock.
#[pyclass(frozen, module = "onbeat", name = "_WorkQueue")]
pub struct PythonQueue(WorkQueue);

fn failed(error: &WorkQueueError) -> PyErr {
    match error {
        WorkQueueError::Refused { .. } => Refused::new_err(error.to_string()),
        WorkQueueError::Settings { .. } => PyValueError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

#[pymethods]
impl PythonQueue {
    #[new]
    fn new(
        py: Python<'_>,
        name: String,
        policy: Option<&str>,
        cores: Option<Vec<usize>>,
        strict: bool,
    ) -> PyResult<Self> {
        let mut settings = WorkQueue::named(name).fifo();
        if let Some(policy) = policy {
            let wrong = |error| PyValueError::new_err(format!("policy {policy:?}: {error}"));
            settings = settings.policy(policy.parse().map_err(wrong)?);
        }
        if let Some(cores) = cores {
            let wrong = |error| PyValueError::new_err(format!("cores: {error}"));
            settings = settings.cores(CoreSet::from_cores(cores).map_err(wrong)?);
        }
        if strict {
            settings = settings.strict();
        }
        py.detach(|| settings.start()).map(PythonQueue).map_err(|error| failed(&error))
    }

    /// Schedules a call. Returns whether the queue runs.
    fn schedule(&self, call: Py<PyAny>) -> bool {
        // A call that is refused is dropped here, with the lock.
        self.0.schedule_owned(Owned::new(call, run)).is_ok()
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.flush()).map_err(|error| failed(&error))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.stop()).map_err(|error| failed(&error))
    }

    /// Settings requested from the machine, and what was obtained, in JSON.
    fn obtained(&self) -> Vec<String> {
        self.0.obtained().iter().map(|one| serde_json::to_string(one).unwrap_or_default()).collect()
    }
}

/// Makes one call. Its exceptions are in the future that it sets.
fn run(call: Box<Owned<Py<PyAny>>>, _: &onbeat::work_queue::Turn<'_>) {
    Python::attach(|py| {
        let call = call.into_value();
        if let Err(error) = call.call0(py) {
            error.write_unraisable(py, Some(call.bind(py)));
        }
    });
}
