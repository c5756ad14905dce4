//! What a worker can be asked to do with its operators while it runs.

use crate::{Error, Value};
use std::sync::mpsc::SyncSender;

/// Carried out between two steps. Operators are numbered as in their part.
#[derive(Debug)]
pub(crate) enum Order {
    /// Step it no more, until [`Order::Resume`].
    Pause(u32),
    Resume(u32),
    /// All sources, and the time that is left of the run's duration.
    PauseAll,
    /// All that is paused.
    ResumeAll,
    /// It is done.
    Finish(u32),
    /// A parameter gets another value, at a sample of its input or at once.
    Set {
        operator: u32,
        name: String,
        value: Value,
        sample: Option<u64>,
    },
}

/// An order, and where its answer goes.
pub(crate) struct Asked {
    pub order: Order,
    pub answer: SyncSender<Result<(), Error>>,
}
