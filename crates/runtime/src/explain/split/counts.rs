//! Causes by counters alone, which give amounts without times.

use super::{Took, What};
use crate::explain::case::Case;
use onbeat_trace::CauseClass;
use std::cmp::Reverse;

/// Replaces unexplained and own time by counted causes, up to the counted amount.
pub(super) fn apply(case: &Case<'_>, took: &mut Took) {
    let mut workers: Vec<u32> = case.way.iter().map(|span| span.worker).collect();
    workers.sort_unstable();
    workers.dedup();
    let tids = workers.iter().filter_map(|&worker| Some(case.threads.get(worker as usize)?.tid));
    let counted = tids.filter_map(|tid| case.counted.iter().find(|counted| counted.tid == tid));
    let (mut run_queue_ns, mut faults) = (0, 0);
    for counted in counted {
        run_queue_ns += counted.run_queue_ns;
        faults += counted.page_faults;
    }
    let detail = "counted by /proc";
    let moved = replace(took, CauseClass::RunQueueWait, detail, run_queue_ns);
    // Page faults count only if no wait for a core was found.
    if moved == 0 {
        let ns = faults.saturating_mul(case.fault_ns);
        let detail = format!("{faults} page faults, {detail}");
        let _moved = replace(took, CauseClass::PageFault, &detail, ns);
    }
}

/// Moves at most `most_ns` to this class: of the operators' own and of the unexplained time, then of waits
/// for other steps, which may have lost their core. Returns the moved time.
fn replace(took: &mut Took, class: CauseClass, detail: &str, most_ns: u64) -> u64 {
    let order = |what: &What| match what.class {
        CauseClass::OwnCompute | CauseClass::Unexplained => Some(0),
        CauseClass::QueueWait | CauseClass::DownstreamFull if class == CauseClass::RunQueueWait => Some(1),
        _ => None,
    };
    let open = took.excess.iter().filter_map(|(what, ns)| Some((order(what)?, what.clone(), *ns)));
    let mut open: Vec<(u32, What, u64)> = open.collect();
    open.sort_by_key(|(order, _, ns)| (*order, Reverse(*ns)));
    let mut left_ns = most_ns;
    for (_, what, ns) in open {
        let ns = ns.min(left_ns);
        if ns == 0 {
            continue;
        }
        left_ns -= ns;
        if let Some(entry) = took.excess.get_mut(&what) {
            *entry -= ns;
        }
        let name = if class == CauseClass::PageFault { what.name } else { String::new() };
        took.add(
            What { class, name, core: None, detail: Some(detail.to_owned()), operator: what.operator },
            ns,
        );
    }
    took.excess.retain(|_, ns| *ns > 0);
    most_ns - left_ns
}
