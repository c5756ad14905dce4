//! What is left when nothing can go on.

/// What is left on a worker when nothing goes on any more.
#[derive(Debug, Default)]
pub(crate) struct Stuck {
    /// Messages are left, or sources.
    pub serious: bool,
    pub reasons: Vec<String>,
}
