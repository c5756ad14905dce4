//! Section of the record on edges.

use super::report::{InEnd, OutEnd, PartReport};
use crate::plan::Plan;
use onbeat_trace::record::EdgeRecord;

/// Record of each edge, and the number of lost messages: left in a queue whose consumer has not ended.
pub(super) fn edges(plan: &Plan, reports: &[PartReport]) -> (Vec<EdgeRecord>, u64) {
    let mut ends = vec![(OutEnd::default(), InEnd::default()); plan.edges.len()];
    for report in reports {
        for &(edge, end) in &report.outs {
            ends[edge].0 = end;
        }
        for &(edge, end) in &report.inputs {
            ends[edge].1 = end;
        }
    }
    let mut lost = 0;
    let records = plan.edges.iter().zip(ends).map(|(edge, (out, input))| {
        let dropped_inside = out.dropped - out.refused - out.dropped_taken;
        // The end of a thread that does not come back reports nothing.
        let left = out.sent.saturating_sub(input.taken + dropped_inside);
        if !input.gone {
            lost += left;
        }
        EdgeRecord {
            from: edge.from.clone(),
            to: edge.to.clone(),
            message: edge.message.clone(),
            capacity: edge.capacity as u64,
            when_full: edge.when_full,
            quantum_bytes: edge.quantum_bytes.map(u64::from),
            sent: out.sent + out.refused + out.ignored,
            received: input.taken - input.cleared - out.dropped_taken,
            dropped: out.dropped,
            unread: out.ignored + input.cleared + left,
            depth_max: u64::from(out.deepest.max(input.deepest)),
            depth_mean: None,
        }
    });
    (records.collect(), lost)
}
