//! Any Python object as a message between Python operators.

use onbeat::Message;
use pyo3::{Bound, Py, PyAny, Python};
use std::sync::Arc;

/// A Python object on an edge. A clone is another reference to the same object, made without the lock of the
/// interpreter.
#[derive(Clone)]
pub struct Object(Arc<Py<PyAny>>);

impl Object {
    pub fn new(object: Py<PyAny>) -> Self {
        Object(Arc::new(object))
    }

    /// Returns the object.
    pub fn take(self, py: Python<'_>) -> Py<PyAny> {
        Arc::try_unwrap(self.0).unwrap_or_else(|shared| shared.clone_ref(py))
    }
}

impl Message for Object {}

impl From<Bound<'_, PyAny>> for Object {
    fn from(object: Bound<'_, PyAny>) -> Self {
        Object::new(object.unbind())
    }
}
