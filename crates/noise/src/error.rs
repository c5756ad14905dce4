//! Errors of a measurement.

use crate::source::SourceRefusal;
use onbeat_os::CoreSet;
use std::io;

/// Reason why a measurement failed. Each message names the setting, its value, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoiseError {
    /// The backend that was asked for is not available.
    #[error("the backend `{backend}` is not available: {}; {}", refused.why, refused.fix)]
    Backend {
        /// The backend.
        backend: &'static str,
        /// Why, and how to make it available.
        refused: SourceRefusal,
    },

    /// A core that does not exist or is not available.
    #[error("CPU {cpu} {why}: this machine has {online} online; {fix}")]
    Cpu {
        /// The core.
        cpu: usize,
        /// The problem with it.
        why: &'static str,
        /// Cores that are online.
        online: CoreSet,
        /// What to do.
        fix: String,
    },

    /// Settings that contradict each other, or would hang the machine.
    #[error("{0}")]
    Settings(String),

    /// The kernel refused a request.
    #[error("{what}: {source}")]
    Os {
        /// The request.
        what: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}

impl NoiseError {
    pub(crate) fn os(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| NoiseError::Os { what, source }
    }
}
