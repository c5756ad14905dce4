//! What can go wrong with a work queue.

use std::io;

/// Why a work queue does not start, cannot be waited for, or was not all well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkQueueError {
    /// A callback waits for the queue that runs it.
    #[error(
        "{what} of the work queue `{queue}` in one of its own callbacks would never end: let another thread do it"
    )]
    OnWorker {
        /// Its name.
        queue: String,
        /// What was called.
        what: &'static str,
    },
    /// Callbacks have panicked. The others have run.
    #[error("{count} callbacks of the work queue `{queue}` panicked, first: {message}")]
    Panicked {
        /// Its name.
        queue: String,
        /// How many.
        count: u64,
        /// What the first one said.
        message: String,
    },
    /// Settings that make no sense together.
    #[error("work queue `{queue}`: {reason}")]
    Settings {
        /// Its name.
        queue: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// Something that was asked for was refused, and the settings say that this is an error.
    #[error("work queue `{queue}`: {what}: {asked} was asked for, {obtained} obtained: {reason}")]
    Refused {
        /// Its name.
        queue: String,
        /// Which setting.
        what: String,
        /// What was asked for.
        asked: String,
        /// What there is.
        obtained: String,
        /// Why, and what would grant it.
        reason: String,
    },
    /// There is no thread for it, or it cannot have its cores.
    #[error("work queue `{queue}`: {error}")]
    System {
        /// Its name.
        queue: String,
        /// What the kernel says.
        #[source]
        error: io::Error,
    },
}
