//! Why a bench gives no figures.

use onbeat_runtime::RunError;

/// What went wrong. A case that this version or this machine does not have is none: it is left out, and a note says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// Settings that make no sense.
    #[error("{0}")]
    Settings(String),
    /// A run that was to be measured failed.
    #[error("{case} under {recipe}: {error}")]
    Run {
        /// The name of the case.
        case: &'static str,
        /// The name of the scheduler with its workers.
        recipe: String,
        /// What the engine says.
        #[source]
        error: Box<RunError>,
    },
    /// One of many scenarios could not be measured.
    #[error("{name}: {reason}")]
    Scenario {
        /// Which one, as its figures name it.
        name: String,
        /// Why.
        reason: String,
    },
    /// A run that was to be measured did not do all that it was to do.
    #[error(
        "{case} under {recipe} ended before all its iterations were made: its figures would be wrong; please report this"
    )]
    Short {
        /// The name of the case.
        case: &'static str,
        /// The name of the scheduler with its workers.
        recipe: String,
    },
    /// The system refused something without which nothing can be measured.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        #[source]
        error: std::io::Error,
    },
    /// Nothing is left to be measured.
    #[error("nothing can be measured: {0}")]
    Nothing(String),
    /// It was stopped before there was anything to tell.
    #[error("stopped before the first measurement was made")]
    Stopped,
}
