//! Section of the record on the result of the run.

use super::RunEnd;
use crate::plan::Plan;
use onbeat_trace::record::{Outcome, RunResult};

/// Messages that were not read at the end of a run.
pub(super) struct Unprocessed {
    /// In a queue whose consumer has not ended.
    pub lost: u64,
    /// Unread because the consumer had ended.
    pub unread: u64,
}

/// Outcome, reason and exit status of a run that ended at `end_ns`.
pub(super) fn result(
    plan: &Plan,
    end: RunEnd,
    isolated: &[String],
    losses: &[(u64, String)],
    Unprocessed { lost, unread }: Unprocessed,
    (end_ns, duration_ns): (u64, u64),
) -> RunResult {
    let was_cut = end.limits.stopped.is_some();
    let dead_lock = end.stuck.iter().any(|stuck| stuck.serious);
    let (outcome, mut reason) = if let Some(fault) = end.faults.into_iter().next() {
        let reason = match fault.operator {
            Some(operator) => format!("operator `{}`: {}", plan.operators[operator].name, fault.text),
            None => fault.text,
        };
        (Outcome::Failed, reason)
    } else if dead_lock {
        let reasons: Vec<String> = end.stuck.into_iter().flat_map(|stuck| stuck.reasons).collect();
        let full = reasons.iter().any(|reason| reason.contains(" waits for room on "));
        let fix = if full { "; a higher `capacity` of the full edges may help" } else { "" };
        (Outcome::Failed, format!("dead-lock: {}{fix}", reasons.join("; ")))
    } else if end.was_stopped {
        let over = |duration_ns: u64| end.start_ns.is_some_and(|start_ns| end_ns - start_ns >= duration_ns);
        let limit = plan.options.duration_ns.is_some_and(over);
        let why = match &end.limits.stopped {
            Some(miss) => miss,
            None if limit => "the duration was over",
            None => "a stop was asked for",
        };
        (Outcome::Stopped, format!("{why}; {}", processed("messages in flight", unread)))
    } else {
        (Outcome::Ended, format!("all sources ended and {}", processed("queued messages", unread)))
    };
    if outcome != Outcome::Failed && !isolated.is_empty() {
        reason += &format!("; without {}, which failed", isolated.join(" and "));
    }
    let lost = losses.iter().map(|(count, _)| *count).fold(lost, u64::saturating_add);
    if outcome != Outcome::Failed && !losses.is_empty() {
        let losses: Vec<&str> = losses.iter().map(|(_, text)| text.as_str()).collect();
        reason += &format!("; {}", losses.join(", "));
    }
    // Only a failed run may lose data.
    let exit_status = match outcome {
        Outcome::Failed => 1,
        _ if lost > 0 => 3,
        // A limit that ends the run was exceeded.
        _ if was_cut => 2,
        _ => 0,
    };
    RunResult { outcome, reason, duration_ns, lost, exit_status }
}

/// Text on the last messages: all were processed, except those whose consumers had ended.
fn processed(messages: &str, unread: u64) -> String {
    match unread {
        0 => format!("all {messages} were processed"),
        1 => format!("all {messages} were processed except one, whose consumer had ended"),
        unread => format!("all {messages} were processed except {unread}, whose consumers had ended"),
    }
}
