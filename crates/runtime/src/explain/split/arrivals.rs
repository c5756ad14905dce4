//! Messages that came over a link: the time before they were here belongs to the other run and to the
//! network.

use super::{Took, What};
use crate::explain::case::Case;
use onbeat_trace::{CauseClass, LinkArrival};

/// Returns how the message of a case came from another run, if it did.
pub(super) fn arrival<'c>(case: &Case<'c>) -> Option<&'c LinkArrival> {
    let source = case.way.first()?;
    let thread = case.threads.get(source.worker as usize)?;
    let step = source.start_ns..source.end_ns + 1;
    case.arrivals.iter().find(|arrival| arrival.tid == thread.tid && step.contains(&arrival.came_ns))
}

/// Returns the message's number among those of its source in the other run, if it came from one.
pub(in crate::explain) fn origin(case: &Case<'_>) -> Option<u64> {
    arrival(case).map(|arrival| arrival.origin)
}

/// Adds the time before the message could be here, and returns when it could.
pub(super) fn before(case: &Case<'_>, arrival: &LinkArrival, took: &mut Took) -> u64 {
    let sent_ns = arrival.sent_ns.clamp(case.due_ns, case.end_ns);
    let there_ns = (sent_ns + arrival.least_ns).min(arrival.came_ns).clamp(sent_ns, case.end_ns);
    let operator = case.way.first().map(|span| span.operator);
    let what = |class, name: &str| What { class, name: name.to_owned(), operator, core: None, detail: None };
    took.add(what(CauseClass::OtherNode, &arrival.node), sent_ns - case.due_ns);
    took.add(what(CauseClass::Network, &arrival.link), there_ns - sent_ns);
    there_ns
}

/// Where nothing else kept the worker from the socket, the message was not there yet.
pub(super) fn socket_to_network(case: &Case<'_>, arrival: &LinkArrival, took: &mut Took) {
    let Some(source) = case.way.first().map(|span| span.operator) else { return };
    let is_wait = |what: &What| what.class == CauseClass::SocketWait && what.operator == Some(source);
    let waits: Vec<What> = took.excess.keys().filter(|what| is_wait(what)).cloned().collect();
    for wait in waits {
        let ns = took.excess.remove(&wait).unwrap_or(0);
        let (class, name) = (CauseClass::Network, arrival.link.to_string());
        took.add(What { class, name, core: None, ..wait }, ns);
    }
}
