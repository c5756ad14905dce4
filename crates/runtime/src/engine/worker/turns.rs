//! Turns of sources, and how often a worker polls between them.

/// Timed steps after which a source has its turn, although operators are ready: a cycle never runs out of
/// messages.
pub(super) const STREAK: u32 = 64;

/// Turns of sources with short steps between two polls: a poll costs as much as several such steps.
pub(super) const UNPOLLED_TURNS: u32 = 16;

/// Longest short step, in nanoseconds.
pub(super) const LONG_STEP_NS: u64 = 500;

/// Shortest slow step, in nanoseconds: other workers run out of the messages that they have in advance.
pub(super) const SLOW_STEP_NS: u64 = 4_000;

/// Turns of sources: which source has one, and what must happen before the next.
pub(crate) struct SourceTurns {
    /// Source whose turn it is, until it asks for another turn; then, and before the first turn,
    /// [`NONE`](crate::operator::context::NONE).
    pub on_turn: u32,
    /// Timed steps since a source had its turn.
    pub streak: u32,
    /// Turns of sources until the next poll: [`UNPOLLED_TURNS`] after each poll, but 0 while `long_steps` is
    /// not.
    pub unpolled: u32,
    /// Number of operators whose steps take longer than [`LONG_STEP_NS`].
    pub long_steps: u32,
    /// Picks until the worker checks whether the pool wants this thread. Only if threads share the part.
    pub picks_left: u32,
    /// Whether steps are long enough to be worth the way to another thread. Only if threads share the part.
    pub is_heavy: bool,
    /// Mean time of the steps of the operator that was stepped last. Only if threads share the part.
    pub step_ns: u64,
    /// Time before which nothing is polled after a timed step, on the run's clock.
    pub next_poll_ns: u64,
}

impl Default for SourceTurns {
    fn default() -> Self {
        SourceTurns {
            on_turn: crate::operator::context::NONE,
            streak: 0,
            unpolled: 0,
            long_steps: 0,
            picks_left: 0,
            is_heavy: false,
            step_ns: 0,
            next_poll_ns: 0,
        }
    }
}
