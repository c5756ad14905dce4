//! The context of a step, as Python code sees it.

use crate::value::{from_value, to_value};
use onbeat::Context;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a step asked for besides its result.
#[derive(Default)]
pub struct Wishes {
    /// Sample rate of what it sends.
    pub rate_hz: Option<f64>,
    /// Tags for its outputs: index of the sample, name and value.
    pub tags: Vec<(usize, String, onbeat::Value)>,
}

/// What the input of a step says about its samples.
#[derive(Default, Clone)]
pub struct Heard {
    pub rate_hz: f64,
    pub start: u64,
    pub tags: Vec<(usize, String, onbeat::Value)>,
}

/// The context of a step: clock, stamp, keys, tags. It is valid during the call that gets it.
#[pyclass(frozen, module = "onbeat", name = "Context")]
pub struct StepContext {
    /// The engine's context during a call; null otherwise.
    context: AtomicPtr<u8>,
    /// The thread that makes the call.
    thread: AtomicU64,
    wishes: Mutex<Wishes>,
    /// Whether `wishes` has any.
    has_wishes: AtomicBool,
    heard: Mutex<Heard>,
}

/// Something of the present thread: its address tells threads apart.
fn this_thread() -> u64 {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| ptr::from_ref(here) as u64)
}

impl StepContext {
    pub fn new() -> Self {
        StepContext {
            context: AtomicPtr::new(ptr::null_mut()),
            thread: AtomicU64::new(0),
            wishes: Mutex::default(),
            has_wishes: AtomicBool::new(false),
            heard: Mutex::default(),
        }
    }

    /// Lends the engine's context to Python code for the time of `call`.
    pub fn during<R>(&self, cx: &mut Context, call: impl FnOnce() -> R) -> R {
        self.thread.store(this_thread(), Ordering::Relaxed);
        self.context.store(ptr::from_mut(cx).cast(), Ordering::Relaxed);
        let result = call();
        self.context.store(ptr::null_mut(), Ordering::Relaxed);
        result
    }

    /// Sets what the input says.
    pub fn hear(&self, heard: Heard) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = heard;
    }

    /// Takes what the step asked for.
    pub fn wishes(&self) -> Wishes {
        // The same thread wrote it, in the step.
        if !self.has_wishes.load(Ordering::Relaxed) {
            return Wishes::default();
        }
        self.has_wishes.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.wishes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with<R>(&self, f: impl FnOnce(&mut Context) -> R) -> PyResult<R> {
        let context = self.context.load(Ordering::Relaxed);
        if context.is_null() || self.thread.load(Ordering::Relaxed) != this_thread() {
            return Err(PyRuntimeError::new_err(
                "the context of a step is used after the step, or on another thread: keep what you need of it",
            ));
        }
        // SAFETY: `during` has the only reference to it on this thread, and does nothing with it until the
        // call returns. This thread is in that call, by the checks above; no method calls Python code.
        Ok(f(unsafe { &mut *context.cast::<Context>() }))
    }

    fn wish(&self) -> PyResult<MutexGuard<'_, Wishes>> {
        self.with(|_| ())?;
        self.has_wishes.store(true, Ordering::Relaxed);
        Ok(self.wishes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_heard<R>(&self, f: impl FnOnce(&Heard) -> R) -> PyResult<R> {
        self.with(|_| ())?;
        Ok(f(&self.heard.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl StepContext {
    /// Time in nanoseconds on the run's clock.
    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        self.with(|cx| cx.now_ns())
    }

    /// Start of the run in nanoseconds on the run's clock.
    #[getter]
    fn start_ns(&self) -> PyResult<u64> {
        self.with(|cx| cx.start_ns())
    }

    /// Name of the operator.
    #[getter]
    fn name(&self) -> PyResult<String> {
        self.with(|cx| cx.name().to_owned())
    }

    /// Whether the run is being stopped.
    #[getter]
    fn is_stopping(&self) -> PyResult<bool> {
        self.with(|cx| cx.is_stopping())
    }

    /// Source time of the message in hand in nanoseconds.
    #[getter]
    fn time_ns(&self) -> PyResult<u64> {
        self.with(|cx| cx.stamp().time_ns)
    }

    /// Time at which the source should have sent the message in hand, in nanoseconds on the run's clock.
    #[getter]
    fn due_ns(&self) -> PyResult<Option<u64>> {
        self.with(|cx| cx.stamp().due_ns())
    }

    /// Number of the message in hand among those of its source, from 0.
    #[getter]
    fn sequence(&self) -> PyResult<u64> {
        self.with(|cx| cx.stamp().sequence())
    }

    /// Samples per second of the first input with samples; 0 if the stream has no rate.
    #[getter]
    fn rate_hz(&self) -> PyResult<f64> {
        self.with_heard(|heard| heard.rate_hz)
    }

    /// Number in its stream of the first sample of the first input with samples.
    #[getter]
    fn position(&self) -> PyResult<u64> {
        self.with_heard(|heard| heard.start)
    }

    /// Marks on the samples of the first input with samples: (index, name, value).
    #[getter]
    fn tags(&self, py: Python<'_>) -> PyResult<Vec<(usize, String, Py<PyAny>)>> {
        let tags = self.with_heard(|heard| heard.tags.clone())?;
        let tags = tags.into_iter().map(|(at, name, value)| Ok((at, name, from_value(py, &value)?)));
        tags.collect()
    }

    /// Marks a sample of the outputs of this step.
    fn tag(&self, index: usize, name: String, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = to_value(value)?;
        self.wish()?.tags.push((index, name, value));
        Ok(())
    }

    /// Sets the samples per second of what this step sends.
    fn set_rate(&self, rate_hz: f64) -> PyResult<()> {
        self.wish()?.rate_hz = Some(rate_hz);
        Ok(())
    }

    /// For sources: sets the source time, and the time at which the message should leave.
    #[pyo3(signature = (time_ns, due_ns=None))]
    fn set_time(&self, time_ns: u64, due_ns: Option<u64>) -> PyResult<()> {
        self.with(|cx| cx.set_time(time_ns, due_ns))
    }

    /// For sources, in `start`: tells how much source time there is.
    fn set_length_ns(&self, length_ns: u64) -> PyResult<()> {
        self.with(|cx| cx.set_length_ns(length_ns))
    }

    /// A user key of the message in hand.
    fn key(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        let value = self.with(|cx| cx.key(name).cloned())?;
        value.map(|value| from_value(py, &value)).transpose()
    }

    /// Sets a user key on the messages that this step sends.
    fn set_key(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = to_value(value)?;
        self.with(|cx| cx.set_key(name, value))
    }

    /// Adds a note to the record.
    fn note(&self, text: &str) -> PyResult<()> {
        self.with(|cx| cx.note(text))
    }
}
