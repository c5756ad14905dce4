//! The command `onbeat`, with the kind `python`.

use pyo3::prelude::*;

/// Runs the command. Returns its exit status.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| onbeat_cli::run(arguments, &crate::kind::registry()))
}
