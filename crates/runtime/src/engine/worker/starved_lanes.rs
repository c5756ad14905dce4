//! Starved lanes of other workers: the operator that fills them is stepped before operators after it.

use super::Worker;
use crate::operator::context::{Context, NONE};

/// Most picks from one check of a lane to the next while nothing comes, for example because few messages
/// arrive there.
const PAUSES: u32 = 63;

impl Worker {
    /// Returns the operator that feeds a starved lane of another worker, of several the one furthest up the
    /// graph; [`NONE`] if no lane is starved. Operators after it should wait: otherwise the other worker
    /// would wait, and longer, for a long step here.
    #[inline(never)]
    pub(super) fn starved_lane(&self, cx: &mut Context) -> u32 {
        let Context { lanes, owner, edges, .. } = cx;
        for lane in lanes {
            if lane.pause > 0 {
                lane.pause -= 1;
                continue;
            }
            let mut is_starved = |&edge: &u32| {
                let far = self.edges[edge as usize].probe.far();
                !edges[edge as usize].gone && far.is_some_and(|far| far.is_drained(owner))
            };
            if !lane.edges.iter().any(&mut is_starved) {
                (lane.was_first, lane.pauses) = (false, 0);
                continue;
            }
            let sent = lane.edges.iter().map(|&edge| self.edges[edge as usize].probe.sent(owner)).sum();
            if lane.was_first && sent == lane.sent {
                lane.was_first = false;
                lane.pauses = (2 * lane.pauses + 1).min(PAUSES);
                lane.pause = lane.pauses;
                continue;
            }
            if sent != lane.sent {
                lane.pauses = 0;
            }
            (lane.sent, lane.was_first) = (sent, true);
            return lane.operator;
        }
        NONE
    }
}
