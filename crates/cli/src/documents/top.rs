//! Live view of a run: its state, and rates since the previous state.

use super::live::{LiveTable, LiveView, or_dash};
use super::time;
use onbeat::trace::Buckets;
use onbeat::trace::record::Obtained;
use onbeat::{EdgeStatus, OperatorStatus, PathStatus, RunStatus};
use std::cmp::Reverse;

/// Number of causes shown.
const CAUSES: usize = 8;
/// Number of missing settings listed one by one.
const MISSING: usize = 3;

/// Returns the view. Rates, shares and percentiles cover the time since `last` or since the start; counts and
/// maxima cover the whole run.
pub fn top(last: Option<&RunStatus>, now: &RunStatus) -> LiveView {
    let since_ns = last.map_or(0, |last| last.elapsed_ns);
    let seconds = now.elapsed_ns.saturating_sub(since_ns) as f64 / 1e9;
    let mut tables = vec![paths(last, now, seconds)];
    if !now.causes.is_empty() {
        tables.push(causes(now));
    }
    tables.push(edges(last, now, seconds));
    tables.push(operators(last, now, seconds));
    tables.retain(|table| !table.rows.is_empty());
    LiveView { title: title(now), tables, lines: missing(&now.obtained) }
}

fn title(now: &RunStatus) -> String {
    let misses: u64 = now.paths.iter().map(|path| path.misses).sum::<u64>()
        + now.operators.iter().map(|operator| operator.late).sum::<u64>();
    let mut title = format!("{}: {} for {}, {misses} late", now.name, now.state, time(now.elapsed_ns));
    if let Some(length_ns) = now.length_ns {
        title += &format!(", at {} of {}", time(now.position_ns), time(length_ns));
    }
    title
}

/// Formats a rate per second; `-` if no time has passed.
fn rate(now: u64, last: Option<u64>, seconds: f64) -> String {
    if seconds <= 0.0 {
        return "-".to_owned();
    }
    let rate = now.saturating_sub(last.unwrap_or(0)) as f64 / seconds;
    if rate < 9.95 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

/// Returns a quantile of the values since `last`.
fn quantile(now: &Buckets, last: Option<&Buckets>, share: f64) -> Option<u64> {
    let before = |up_to_ns| {
        last.and_then(|last| last.iter().find(|one| one.0 == up_to_ns)).map_or(0, |(_, count)| count)
    };
    let new: Vec<(u64, u64)> =
        now.iter().map(|(up_to_ns, count)| (up_to_ns, count.saturating_sub(before(up_to_ns)))).collect();
    let total: u64 = new.iter().map(|(_, count)| count).sum();
    let rank = ((total as f64 * share).ceil() as u64).max(1);
    let mut sum = 0;
    new.into_iter().find_map(|(up_to_ns, count)| {
        sum += count;
        (total > 0 && sum >= rank).then_some(up_to_ns)
    })
}

fn paths(last: Option<&RunStatus>, now: &RunStatus, seconds: f64) -> LiveTable {
    let before = |path: &PathStatus| {
        let same = |other: &&PathStatus| (&other.from, &other.to) == (&path.from, &path.to);
        last.and_then(|last| last.paths.iter().find(same)).map(|path| &path.latency)
    };
    let at = |share: f64| {
        move |(path, before): &(&PathStatus, Option<&Buckets>)| {
            or_dash(quantile(&path.latency, *before, share), |ns| time(ns.min(path.max_ns)))
        }
    };
    LiveTable::of(now.paths.iter().map(|path| (path, before(path))))
        .text("path", 0, |(path, _)| format!("{} → {}", path.from, path.to))
        .number("per s", 4, |(path, before)| rate(path.latency.total(), before.map(Buckets::total), seconds))
        .number("p50", 3, at(0.5))
        .number("p90", 5, at(0.9))
        .number("p99", 0, at(0.99))
        .number("longest", 1, |(path, _)| or_dash((path.latency.total() > 0).then_some(path.max_ns), time))
        .number("limit", 2, |(path, _)| or_dash(path.max_latency_ns, time))
        .number("misses", 0, |(path, _)| or_dash(path.max_latency_ns, |_| path.misses.to_string()))
        .build()
}

fn causes(now: &RunStatus) -> LiveTable {
    let mut causes: Vec<_> = now.causes.iter().collect();
    causes.sort_by_key(|cause| Reverse(cause.lost_ns));
    causes.truncate(CAUSES);
    LiveTable::of(causes)
        .text("cause", 0, |cause| format!("{} {}", cause.class, cause.name))
        .number("misses", 1, |cause| cause.misses.to_string())
        .number("lost ms", 0, |cause| format!("{:.3}", cause.lost_ns as f64 / 1e6))
        .text("fix", 2, |cause| {
            or_dash(cause.finding.as_ref(), |finding| format!("onbeat doctor: {finding}"))
        })
        .build()
}

fn operators(last: Option<&RunStatus>, now: &RunStatus, seconds: f64) -> LiveTable {
    let before = |operator: &OperatorStatus| {
        last.and_then(|last| last.operators.iter().find(|other| other.name == operator.name))
    };
    let percent = |busy_ns: u64| format!("{:.1}", busy_ns as f64 / seconds / 1e7);
    LiveTable::of(now.operators.iter().map(|operator| (operator, before(operator))))
        .text("operator", 0, |(operator, _)| operator.name.clone())
        .text("worker", 5, |(operator, _)| operator.worker.clone())
        .text("state", 2, |(operator, _)| operator.state.to_string())
        .number("steps/s", 0, |(operator, before)| {
            rate(operator.steps, before.map(|before| before.steps), seconds)
        })
        .number("% of core", 1, |(operator, before)| {
            let busy_ns = operator.busy_ns.saturating_sub(before.map_or(0, |before| before.busy_ns));
            or_dash((seconds > 0.0).then_some(busy_ns), percent)
        })
        .number("late", 3, |(operator, _)| operator.late.to_string())
        .text("waits for", 4, |(operator, _)| or_dash(operator.waits_for.clone(), |whom| whom))
        .build()
}

fn edges(last: Option<&RunStatus>, now: &RunStatus, seconds: f64) -> LiveTable {
    let before = |edge: &EdgeStatus| {
        let same = |other: &&EdgeStatus| (&other.from, &other.to) == (&edge.from, &edge.to);
        last.and_then(|last| last.edges.iter().find(same)).map(|edge| edge.sent)
    };
    LiveTable::of(&now.edges)
        .text("edge", 0, |edge| format!("{} → {}", edge.from, edge.to))
        .number("depth", 0, |edge| edge.depth.to_string())
        .number("of", 1, |edge| edge.capacity.to_string())
        .number("sent/s", 2, |edge| rate(edge.sent, before(edge), seconds))
        .number("dropped", 1, |edge| edge.dropped.to_string())
        .build()
}

fn missing(obtained: &[Obtained]) -> Vec<String> {
    let missing: Vec<&Obtained> = obtained.iter().filter(|one| one.asked != one.obtained).collect();
    let line = |one: &&Obtained| {
        format!("not obtained: {}: requested {}, got {}", one.what, one.asked, one.obtained)
    };
    let mut lines: Vec<String> = missing.iter().take(MISSING).map(line).collect();
    if missing.len() > MISSING {
        lines.push(format!("not obtained: {} more", missing.len() - MISSING));
    }
    lines
}
