//! Ports for single values, and for Python objects.

use super::{Inlet, OutHead, Outlet, PortError};
use crate::object::Object;
use onbeat::{Context, Info, Input, Message, Output, Ports, Stamp};
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyString};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A message that Python has a type for.
pub trait PyMessage: Message {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>>;
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

impl PyMessage for f64 {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(PyFloat::new(py, self).into_any().unbind())
    }
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract()
    }
}

impl PyMessage for u64 {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.into_pyobject(py)?.into_any().unbind())
    }
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract()
    }
}

impl PyMessage for bool {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(PyBool::new(py, self).to_owned().into_any().unbind())
    }
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract()
    }
}

impl PyMessage for String {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(PyString::new(py, &self).into_any().unbind())
    }
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract()
    }
}

impl PyMessage for Object {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.take(py))
    }
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Object::from(value.clone()))
    }
}

/// An input for messages. The step gets the message; `None` if there is none.
pub struct ValueInlet<M: PyMessage> {
    input: Input<M>,
    held: Option<M>,
    stamp: Stamp,
}

impl<M: PyMessage> Default for ValueInlet<M> {
    fn default() -> Self {
        ValueInlet { input: Input::default(), held: None, stamp: Stamp::default() }
    }
}

impl<M: PyMessage> Inlet for ValueInlet<M> {
    fn declare(&mut self, name: &str, p: &mut Ports<'_>) {
        p.input(name, &mut self.input);
    }

    fn fetch(&mut self, cx: &mut Context) -> usize {
        if self.held.is_none()
            && let Some((value, stamp)) = self.input.pop_stamped(cx)
        {
            (self.held, self.stamp) = (Some(value), stamp);
        }
        usize::from(self.held.is_some())
    }

    fn is_ended(&self, cx: &Context) -> bool {
        self.input.is_ended(cx)
    }

    fn info(&self) -> Option<(&Info, usize)> {
        None
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn lend<'py>(&mut self, py: Python<'py>, _: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(message) = self.held.take() else { return Ok(py.None().into_bound(py)) };
        Ok(message.to_python(py)?.into_bound(py))
    }

    fn take_back(&mut self, _: &Bound<'_, PyAny>, _: usize, _: &str) -> PyResult<()> {
        Ok(())
    }

    fn starve(&mut self) {}

    fn hold(&self, cx: &mut Context) -> bool {
        if self.held.is_some() {
            self.input.keep(cx);
        }
        self.held.is_some()
    }
}

/// What a step gets for an output of messages. Messages leave when the step returns.
#[pyclass(frozen, module = "onbeat", name = "Emitter")]
pub struct Emitter {
    messages: Mutex<Vec<Py<PyAny>>>,
    room: AtomicU64,
}

impl Emitter {
    fn messages(&self) -> MutexGuard<'_, Vec<Py<PyAny>>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Emitter {
    /// Number of messages for which there is room.
    #[getter]
    fn room(&self) -> usize {
        (self.room.load(Ordering::Relaxed) as usize).saturating_sub(self.messages().len())
    }

    /// Sends a message.
    fn push(&self, message: Py<PyAny>) -> PyResult<()> {
        let mut messages = self.messages();
        let room = self.room.load(Ordering::Relaxed);
        if messages.len() as u64 >= room {
            return Err(PyValueError::new_err(format!(
                "the output has room for {room} messages in this step: look at `.room` before more than one"
            )));
        }
        messages.push(message);
        Ok(())
    }
}

/// An output for messages.
pub struct ValueOutlet<M: PyMessage> {
    output: Output<M>,
    emitter: Option<Py<Emitter>>,
    room: usize,
    /// An empty list with memory, for the emitter.
    spare: Vec<Py<PyAny>>,
}

impl<M: PyMessage> Default for ValueOutlet<M> {
    fn default() -> Self {
        ValueOutlet { output: Output::default(), emitter: None, room: 0, spare: Vec::new() }
    }
}

impl<M: PyMessage> Outlet for ValueOutlet<M> {
    fn declare(&mut self, name: &str, p: &mut Ports<'_>) {
        p.output(name, &mut self.output);
    }

    fn open(&mut self, cx: &mut Context) -> Option<usize> {
        self.room = self.output.room(cx);
        (self.room > 0).then_some(self.room)
    }

    fn has_samples(&self) -> bool {
        false
    }

    fn lend<'py>(&mut self, py: Python<'py>, _: usize, _: [u32; 3]) -> PyResult<Bound<'py, PyAny>> {
        let emitter = match &self.emitter {
            Some(emitter) => emitter.bind(py).clone(),
            None => {
                let emitter =
                    Bound::new(py, Emitter { messages: Mutex::default(), room: AtomicU64::new(0) })?;
                self.emitter = Some(emitter.clone().unbind());
                emitter
            }
        };
        emitter.get().room.store(self.room as u64, Ordering::Relaxed);
        Ok(emitter.into_any())
    }

    fn revoke(&mut self, _: &Bound<'_, PyAny>) {
        if let Some(emitter) = &self.emitter {
            emitter.get().room.store(0, Ordering::Relaxed);
            let messages = std::mem::take(&mut *emitter.get().messages());
            drop(messages);
        }
    }

    fn send(
        &mut self,
        cx: &mut Context,
        argument: &Bound<'_, PyAny>,
        _: usize,
        _: &OutHead,
        name: &str,
    ) -> Result<(), PortError> {
        let Some(emitter) = &self.emitter else { return Ok(()) };
        emitter.get().room.store(0, Ordering::Relaxed);
        let spare = std::mem::take(&mut self.spare);
        let mut messages = std::mem::replace(&mut *emitter.get().messages(), spare);
        let py = argument.py();
        for message in messages.drain(..) {
            let message = M::from_python(message.bind(py)).map_err(|error| {
                let wrong =
                    PyValueError::new_err(format!("a message of output `{name}`: {}", error.value(py)));
                wrong.set_cause(py, Some(error));
                wrong
            })?;
            self.output.push(cx, message)?;
        }
        self.spare = messages;
        Ok(())
    }
}
