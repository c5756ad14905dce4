//! Orders for the operators of a worker while it runs.

use crate::{Error, FetchedData, Value};
use std::sync::mpsc::SyncSender;

/// An order, carried out between two steps. Operators are numbered as in their part.
#[derive(Debug)]
pub(crate) enum Order {
    /// Do not step this operator until [`Order::Resume`].
    Pause(u32),
    Resume(u32),
    /// Pause all sources, and the duration of the run.
    PauseAll,
    /// Resume all paused operators.
    ResumeAll,
    /// End this operator.
    Finish(u32),
    /// Set a parameter, at a sample of the operator's input or at once.
    Set {
        operator: u32,
        name: String,
        value: Value,
        sample: Option<u64>,
    },
    /// Hand something out.
    Fetch(u32, SyncSender<FetchedData>),
}

/// An order, and the channel for its answer.
pub(crate) struct OrderRequest {
    pub order: Order,
    pub answer: SyncSender<Result<(), Error>>,
}
