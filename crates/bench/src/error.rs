//! Errors of a bench.

use onbeat_runtime::RunError;

/// Reason why a bench failed. A case that this version or this machine does not support is not an error: it
/// is skipped, and a note says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// Invalid settings.
    #[error("{0}")]
    Settings(String),
    /// A measured run failed.
    #[error("{case} under {recipe}: {error}")]
    Run {
        /// Name of the case.
        case: &'static str,
        /// Name of the scheduler with its number of workers.
        recipe: String,
        /// Error of the engine.
        #[source]
        error: Box<RunError>,
    },
    /// One of several scenarios could not be measured.
    #[error("{name}: {reason}")]
    Scenario {
        /// Scenario, as its figures name it.
        name: String,
        /// Reason.
        reason: String,
    },
    /// A measured run ended before all its iterations were done.
    #[error(
        "{case} under {recipe} ended before all its iterations were done: its figures would be wrong; please \
         report this"
    )]
    Short {
        /// Name of the case.
        case: &'static str,
        /// Name of the scheduler with its number of workers.
        recipe: String,
    },
    /// The system refused something that the measurement requires.
    #[error("{what}: {error}")]
    System {
        /// The refused action.
        what: &'static str,
        /// Error of the kernel.
        #[source]
        error: std::io::Error,
    },
    /// Nothing is left to measure.
    #[error("nothing can be measured: {0}")]
    Nothing(String),
    /// The bench was stopped before the first result.
    #[error("stopped before the first measurement was complete")]
    Stopped,
}
