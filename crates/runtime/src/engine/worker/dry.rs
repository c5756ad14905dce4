//! Lanes of other workers that run dry: who fills them is stepped before what is behind it.

use super::Worker;
use crate::operator::context::{Context, NONE};

/// Most picks from one look at a lane to the next where nothing comes: behind one that sends few messages, say.
const PAUSES: u32 = 63;

impl Worker {
    /// Another worker has nothing more to do in one of its lanes: the operator that hands out to it, of several the one furthest up the
    /// graph, else [`NONE`]. What is behind that one is to wait: the other worker would, and longer, if something long were done here first.
    #[inline(never)]
    pub(super) fn runs_dry(&self, cx: &mut Context) -> u32 {
        let Context { lanes, owner, edges, .. } = cx;
        for lane in lanes {
            if lane.pause > 0 {
                lane.pause -= 1;
                continue;
            }
            let mut is_dry = |&edge: &u32| {
                let far = self.edges[edge as usize].probe.far();
                !edges[edge as usize].gone && far.is_some_and(|far| far.is_drained(owner))
            };
            if !lane.edges.iter().any(&mut is_dry) {
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
