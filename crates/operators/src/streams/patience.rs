//! The time that is left for a peer, in real time: peers do not keep virtual time.

use onbeat_runtime::{Context, Seconds};

/// Default time to wait for a peer.
const USUAL_NS: u64 = 10_000_000_000;

/// Default of a parameter `patience`.
pub(crate) fn usual() -> Seconds {
    Seconds(USUAL_NS as f64 / 1e9)
}

/// Default of a patience, in nanoseconds.
pub(crate) fn usual_ns() -> u64 {
    USUAL_NS
}

/// Whether the run was stopped, and this time has passed since then. The operator then gives up waiting.
pub(crate) fn is_over(cx: &Context, patience_ns: u64) -> bool {
    cx.stopped_for_ns().is_some_and(|stopped_for_ns| stopped_for_ns >= patience_ns)
}

/// When [`is_over`] becomes true, on the run's clock: never while the run has not been stopped.
pub(crate) fn over_at_ns(cx: &Context, patience_ns: u64) -> u64 {
    let left_ns = |stopped_for_ns| patience_ns.saturating_sub(stopped_for_ns);
    cx.stopped_for_ns().map_or(u64::MAX, |stopped_for_ns| cx.in_real_ns(left_ns(stopped_for_ns)))
}

/// The present in real time, in nanoseconds since some time.
pub(crate) fn real_ns() -> u64 {
    onbeat_os::clock::monotonic_ns()
}

/// Converts a time of [`real_ns`] to the run's clock, for a wait until then.
pub(crate) fn on_clock_ns(cx: &Context, time_ns: u64) -> u64 {
    cx.in_real_ns(time_ns.saturating_sub(real_ns()))
}
