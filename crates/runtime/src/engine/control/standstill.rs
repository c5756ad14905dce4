//! State of a worker when quiescence ends the run.

/// Remaining work of a worker when nothing can happen any more.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    /// Whether messages or sources are left: a deadlock.
    pub serious: bool,
    /// By operator that is not done: what it waits for.
    pub reasons: Vec<String>,
}
