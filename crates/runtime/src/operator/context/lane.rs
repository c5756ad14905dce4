//! Lanes: edges to workers with replicas.

use super::Context;

/// Edges on which an operator hands out messages to other workers.
#[derive(Debug)]
pub(crate) struct Lane {
    pub operator: u32,
    /// The edges to the other workers.
    pub edges: Vec<u32>,
    /// Messages sent on the edges when the lane was last found starved.
    pub sent: u64,
    /// Whether the lane was filled first since then.
    pub was_first: bool,
    /// Picks until the lane is checked again, and the value for the next pause if no message has come there
    /// until then.
    pub pause: u32,
    pub pauses: u32,
}

impl Lane {
    fn new(operator: u32, edges: Vec<u32>) -> Self {
        Lane { operator, edges, sent: 0, was_first: false, pause: 0, pauses: 0 }
    }

    /// Makes the operator of this step one that hands out messages on these edges.
    pub fn watch(cx: &mut Context, edges: Vec<u32>) {
        let operator = cx.current;
        // Only once: the operator may be started again.
        if cx.lanes.iter().all(|lane| lane.operator() != operator) {
            cx.lanes.push(Lane::new(operator, edges));
            cx.lanes.sort_by_key(Lane::operator);
        }
    }

    pub fn operator(&self) -> u32 {
        self.operator
    }
}
