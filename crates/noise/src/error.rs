//! Why nothing could be measured.

use crate::source::SourceRefusal;
use onbeat_os::CoreSet;
use std::io;

/// Each message names the thing, its value, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The backend that was asked for is not to be had.
    #[error("the backend `{backend}` is not available: {}; {}", refused.why, refused.fix)]
    Backend {
        /// Which one.
        backend: &'static str,
        /// Why, and what gives it.
        refused: SourceRefusal,
    },

    /// A core that this machine has not, or not now.
    #[error("CPU {cpu} {why}: this machine has {online} online; {fix}")]
    Cpu {
        /// Which one.
        cpu: usize,
        /// What is with it.
        why: &'static str,
        /// Those that are online.
        online: CoreSet,
        /// What to do.
        fix: String,
    },

    /// Two settings that do not go together, or one that would hang the machine.
    #[error("{0}")]
    Settings(String),

    /// The kernel refuses what it should give.
    #[error("{what}: {source}")]
    Os {
        /// What was asked of it.
        what: String,
        /// What it said.
        #[source]
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn os(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Error::Os { what, source }
    }
}
