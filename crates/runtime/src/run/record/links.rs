//! Links, beside what their operators report.

use onbeat_trace::Record;

/// Enters what the edges to the producers' ends have dropped.
pub(super) fn set_dropped_before(record: &mut Record) {
    for link in &mut record.links {
        let leads_there =
            |to: &str| to.strip_prefix(&link.operator).is_some_and(|port| port.starts_with('.'));
        let mut dropped = None;
        for edge in record.edges.iter().filter(|edge| leads_there(&edge.to)) {
            *dropped.get_or_insert(0) += edge.dropped;
        }
        link.dropped_before = dropped;
    }
}
