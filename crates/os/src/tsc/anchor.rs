//! A time known on both clocks.

use super::counter;
use crate::clock::monotonic_ns;

/// Number of sandwiches from which an anchor is chosen. The first one finds cold caches after some
/// milliseconds of other work; an interrupt may hit the second.
const SANDWICHES: u32 = 3;

/// The counter showed `ticks`, give or take half of `width_ticks`, when the kernel's time was `ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) ticks: u64,
    pub(super) ns: u64,
    pub(super) width_ticks: u64,
}

impl Anchor {
    /// Returns the narrowest of a few sandwiches, and the kernel's time of the last.
    pub(super) fn take() -> (Self, u64) {
        let mut narrowest = Self::sandwich();
        let mut now_ns = narrowest.ns;
        for _ in 1..SANDWICHES {
            let next = Self::sandwich();
            now_ns = next.ns;
            if next.width_ticks < narrowest.width_ticks {
                narrowest = next;
            }
        }
        (narrowest, now_ns)
    }

    fn sandwich() -> Self {
        let before = counter::read_in_order();
        let ns = monotonic_ns();
        let after = counter::read_in_order();
        // Counters out of step by the width of a sandwich would make `after` the smaller one. The result is a
        // huge width, which is dropped.
        let width_ticks = after.wrapping_sub(before);
        Self { ticks: before.wrapping_add(width_ticks / 2), ns, width_ticks }
    }
}
