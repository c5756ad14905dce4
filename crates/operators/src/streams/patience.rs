//! When to look again, where nothing has come.

use onbeat_runtime::{Context, Step};
use std::time::{Duration, Instant};

const SHORTEST_NS: u64 = 50_000;
const LONGEST_NS: u64 = 1_000_000;

/// Waits longer from look to look, from 0.05 to 1 ms.
#[derive(Debug, Default)]
pub(super) struct Patience {
    next_ns: u64,
    /// When it was asked, and when the next look was to be, on the run's clock.
    asked: Option<(Instant, u64)>,
}

impl Patience {
    /// Something has come.
    pub fn reset(&mut self) {
        *self = Patience::default();
    }

    /// What to return from a step that found nothing.
    pub fn wait(&mut self, cx: &mut Context) -> Step {
        let delay_ns = self.next_ns.clamp(SHORTEST_NS, LONGEST_NS);
        let now = Instant::now();
        // Virtual time jumps to the alarm at once, but what comes from outside comes in real time: a little
        // of that has to pass, or the worker would do nothing else than look.
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
