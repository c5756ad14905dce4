//! Errors of a work queue.

use std::io;

/// Error when a work queue is started, waited for or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkQueueError {
    /// A callback waited for the queue that runs it.
    #[error(
        "{what} of the work queue `{queue}` in one of its own callbacks would never end: call it from another thread"
    )]
    OnWorker {
        /// Name of the queue.
        queue: String,
        /// Function that was called.
        what: &'static str,
    },
    /// Callbacks have panicked. The others have run.
    #[error("{count} callbacks of the work queue `{queue}` panicked, first: {message}")]
    Panicked {
        /// Name of the queue.
        queue: String,
        /// Number of panics.
        count: u64,
        /// Message of the first panic.
        message: String,
    },
    /// The settings contradict each other.
    #[error("work queue `{queue}`: {reason}")]
    Settings {
        /// Name of the queue.
        queue: String,
        /// The problem and its fix.
        reason: String,
    },
    /// A requested setting was refused, and the settings are strict.
    #[error("work queue `{queue}`: {what}: {asked} was asked for, {obtained} obtained: {reason}")]
    Refused {
        /// Name of the queue.
        queue: String,
        /// Name of the setting.
        what: String,
        /// Requested value.
        asked: String,
        /// Obtained value.
        obtained: String,
        /// Reason, and what would grant it.
        reason: String,
    },
    /// The thread cannot be created, or its cores cannot be set.
    #[error("work queue `{queue}`: {error}")]
    System {
        /// Name of the queue.
        queue: String,
        /// Error of the kernel.
        #[source]
        error: io::Error,
    },
}
