//! A run in progress, for Python.

use crate::value::to_value;
use onbeat::{LateMessage, OrderError, Record, Run, RunError, RunHandle};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// LateQueue messages that nobody has fetched: the oldest are dropped beyond this number.
const LATE_MOST: usize = 10_000;

/// A run in progress.
#[pyclass(frozen, module = "onbeat", name = "_Run")]
pub struct PythonRun {
    handle: RunHandle,
    process: u32,
    ended: Mutex<Ended>,
    late: Arc<LateQueue>,
    obtained: Vec<String>,
    notes: Vec<String>,
}

struct Ended {
    result: Receiver<Result<Record, RunError>>,
    /// Outcome word and record, once the run has ended; the word is "" if it has none.
    answer: Option<(String, String)>,
}

#[derive(Default)]
struct LateQueue {
    messages: Mutex<VecDeque<String>>,
    arrived: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LateQueue {
    fn push(&self, message: &LateMessage) {
        let text = serde_json::json!({
            "kind": message.kind,
            "name": message.name,
            "sequence": message.sequence,
            "time_ns": message.time_ns,
            "late_ns": message.late_ns,
            "verdict": message.verdict,
        });
        let mut messages = lock(&self.messages);
        if messages.len() >= LATE_MOST {
            messages.pop_front();
        }
        messages.push_back(text.to_string());
        self.arrived.notify_all();
    }
}

fn order(error: &OrderError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

impl PythonRun {
    /// Follows a run. A thread waits for its end.
    pub fn new(run: Run) -> PyResult<Self> {
        let handle = run.handle();
        let obtained = run.obtained().map(|one| serde_json::to_string(one).unwrap_or_default()).collect();
        let notes = run.notes().to_vec();
        let late = Arc::new(LateQueue::default());
        let log = Arc::clone(&late);
        handle.on_late(move |message| log.push(message));
        let (sender, result) = channel();
        let (log, waiter) = (Arc::clone(&late), std::thread::Builder::new().name("onbeat-wait".to_owned()));
        waiter
            .spawn(move || {
                // If the run was dropped, nobody wants its record.
                let _ = sender.send(run.wait());
                log.arrived.notify_all();
            })
            .map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
        let ended = Mutex::new(Ended { result, answer: None });
        Ok(PythonRun { handle, process: std::process::id(), ended, late, obtained, notes })
    }

    fn handle(&self) -> PyResult<&RunHandle> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "this run is of another process: its threads did not come along with the fork; start it in the \
                 process that needs it, or use the start method \"spawn\"",
            ));
        }
        Ok(&self.handle)
    }
}

#[pymethods]
impl PythonRun {
    /// Waits for the end, for at most this time. Returns the outcome and the record in JSON, or None.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<(String, String)>> {
        self.handle()?;
        let timeout = Duration::try_from_secs_f64(timeout_s.clamp(0.0, 1e6)).unwrap_or_default();
        py.detach(|| {
            let mut ended = lock(&self.ended);
            if ended.answer.is_none() {
                let answer = match ended.result.recv_timeout(timeout) {
                    Ok(Ok(record)) => (record.result.outcome.to_string(), record.to_json_pretty()),
                    Ok(Err(RunError::Failed(record))) => ("failed".to_owned(), record.to_json_pretty()),
                    Ok(Err(error)) => (String::new(), error.to_string()),
                    Err(RecvTimeoutError::Timeout) => return Ok(None),
                    Err(RecvTimeoutError::Disconnected) => (String::new(), "the run has panicked".to_owned()),
                };
                ended.answer = Some(answer);
            }
            Ok(ended.answer.clone())
        })
    }

    /// Asks the sources to end.
    fn stop(&self) -> PyResult<()> {
        self.handle()?.stop();
        Ok(())
    }

    fn pause(&self, py: Python<'_>, operator: Option<&str>) -> PyResult<()> {
        let handle = self.handle()?;
        py.detach(|| operator.map_or_else(|| handle.pause(), |name| handle.pause_operator(name)))
            .map_err(|error| order(&error))
    }

    fn resume(&self, py: Python<'_>, operator: Option<&str>) -> PyResult<()> {
        let handle = self.handle()?;
        py.detach(|| operator.map_or_else(|| handle.resume(), |name| handle.resume_operator(name)))
            .map_err(|error| order(&error))
    }

    fn stop_operator(&self, py: Python<'_>, operator: &str) -> PyResult<()> {
        let handle = self.handle()?;
        py.detach(|| handle.stop_operator(operator)).map_err(|error| order(&error))
    }

    fn set(
        &self,
        py: Python<'_>,
        operator: &str,
        parameter: &str,
        value: &Bound<'_, PyAny>,
        sample: Option<u64>,
    ) -> PyResult<()> {
        let (handle, value) = (self.handle()?, to_value(value)?);
        py.detach(|| handle.set(operator, parameter, value, sample)).map_err(|error| order(&error))
    }

    fn status(&self, py: Python<'_>) -> PyResult<String> {
        let handle = self.handle()?;
        let status = py.detach(|| handle.status());
        serde_json::to_string(&status).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Takes the next late message in JSON. Returns None after this time without one.
    fn late(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        self.handle()?;
        let timeout = Duration::try_from_secs_f64(timeout_s.clamp(0.0, 1e6)).unwrap_or_default();
        Ok(py.detach(|| {
            let mut messages = lock(&self.late.messages);
            if messages.is_empty() {
                let waited = self.late.arrived.wait_timeout(messages, timeout);
                messages = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            messages.pop_front()
        }))
    }

    /// Settings requested from the machine, and what was obtained, in JSON.
    fn obtained(&self) -> Vec<String> {
        self.obtained.clone()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Rings an event, or sets a gate.
    fn ring(&self, event: &str) -> PyResult<()> {
        let found = self.handle()?.event(event);
        found.ok_or_else(|| PyRuntimeError::new_err(format!("there is no event `{event}`")))?.ring();
        Ok(())
    }

    fn gate(&self, gate: &str, is_open: bool) -> PyResult<()> {
        let found = self.handle()?.gate(gate);
        let gate = found.ok_or_else(|| PyRuntimeError::new_err(format!("there is no gate `{gate}`")))?;
        if is_open {
            gate.open();
        } else {
            gate.close();
        }
        Ok(())
    }
}

impl Drop for PythonRun {
    fn drop(&mut self) {
        // Nobody can stop it any more.
        if self.process == std::process::id() {
            self.handle.stop();
        }
    }
}
