//! Polling intervals, and the time that is left after a stop.

use onbeat_runtime::{Context, Seconds, Step};
use std::time::{Duration, Instant};

/// Default time to wait for a peer.
const USUAL_NS: u64 = 10_000_000_000;
const SHORTEST_NS: u64 = 50_000;
const LONGEST_NS: u64 = 1_000_000;

/// Default of a parameter `patience`.
pub(super) fn usual() -> Seconds {
    Seconds(USUAL_NS as f64 / 1e9)
}

/// Default of a patience, in nanoseconds.
pub(super) fn usual_ns() -> u64 {
    USUAL_NS
}

/// Whether the run was stopped, and this time has passed since then. The operator then gives up waiting.
pub(super) fn is_over(cx: &Context, patience_ns: u64) -> bool {
    cx.stopped_for_ns().is_some_and(|stopped_for_ns| stopped_for_ns >= patience_ns)
}

/// Polls at growing intervals, from 0.05 to 1 ms.
#[derive(Debug, Default)]
pub(super) struct Patience {
    next_ns: u64,
    /// Time of the last request and of the next poll, on the run's clock.
    asked: Option<(Instant, u64)>,
}

impl Patience {
    /// Resets the interval, after data arrived.
    pub fn reset(&mut self) {
        *self = Patience::default();
    }

    /// Returns the result of a step that found nothing.
    pub fn wait(&mut self, cx: &mut Context) -> Step {
        let delay_ns = self.next_ns.clamp(SHORTEST_NS, LONGEST_NS);
        let now = Instant::now();
        // Virtual time jumps to the alarm at once, but external data arrive in real time. Some real time must
        // pass, or the worker would do nothing but poll.
        if let Some((asked, until_ns)) = self.asked
            && cx.now_ns() >= until_ns
            && now.duration_since(asked) < Duration::from_nanos(SHORTEST_NS / 2)
        {
            std::thread::sleep(Duration::from_nanos(delay_ns));
        }
        self.next_ns = 2 * delay_ns;
        let until_ns = cx.now_ns() + delay_ns;
        self.asked = Some((Instant::now(), until_ns));
        cx.until(until_ns)
    }
}
