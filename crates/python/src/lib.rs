//! The private module `onbeat._onbeat` of the Python package.
//!
//! | file or folder | contents |
//! |---|---|
//! | `array` | NumPy arrays over the samples of chunks |
//! | `gil` | the interpreter's lock |
//! | `object` | Python objects as messages |
//! | `value` | numbers and text between Python, the engine and TOML |
//! | `ports` | ports of Python operators |
//! | `context` | the context of a step |
//! | `operator` | an operator whose code is a Python object |
//! | `kind` | the kind `python` of pipeline files |
//! | `pipeline`, `run` | pipelines and runs |
//! | `work_queue` | a thread that calls Python functions |
//! | `command` | the command `onbeat` |

mod array;
mod command;
mod context;
mod gil;
mod kind;
mod object;
mod operator;
mod pipeline;
mod ports;
mod run;
mod value;
mod work_queue;

use onbeat::allocations::CountingAllocator;

/// Counts allocations, for the records of runs.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::system();

/// The engine of the package `onbeat`.
#[pyo3::pymodule]
mod _onbeat {
    #[pymodule_export]
    use crate::array::{ChunkOwner, keep};
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::context::StepContext;
    #[pymodule_export]
    use crate::operator::{StepWord, until};
    #[pymodule_export]
    use crate::pipeline::{Fault, kinds, plan, report, start};
    #[pymodule_export]
    use crate::ports::Emitter;
    #[pymodule_export]
    use crate::run::PythonRun;
    #[pymodule_export]
    use crate::value::{format_toml, parse_toml, quantity};
    #[pymodule_export]
    use crate::work_queue::{PythonQueue, Refused};
    use pyo3::prelude::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
