//! Exceptions of Python code as errors of the engine.

use onbeat::Error;
use pyo3::prelude::*;

/// Makes an error of an exception. The instance keeps the exception, with its traceback, for the caller
/// that waits for the run.
pub fn failed(py: Python<'_>, instance: &Py<PyAny>, error: PyErr) -> Error {
    let kind = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    let text = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
    let place = place(py, &error).map_or_else(String::new, |place| format!(" ({place})"));
    let message = if text.is_empty() { format!("{kind}{place}") } else { format!("{kind}: {text}{place}") };
    // An instance with `__slots__` cannot keep it: the text remains.
    let _ = instance.setattr(py, "_failure", error.into_value(py));
    Error::new(message)
}

/// File and line where the exception was raised.
fn place(py: Python<'_>, error: &PyErr) -> Option<String> {
    let mut at = error.traceback(py)?.into_any();
    while let Ok(next) = at.getattr("tb_next")
        && !next.is_none()
    {
        at = next;
    }
    let file: String =
        at.getattr("tb_frame").ok()?.getattr("f_code").ok()?.getattr("co_filename").ok()?.extract().ok()?;
    let line: u32 = at.getattr("tb_lineno").ok()?.extract().ok()?;
    Some(format!("{file}:{line}"))
}
