//! What a run does at the moment, beside what it had done a moment ago.

use super::live::{LiveColumn, LiveTable, LiveView};
use super::time;
use onbeat::trace::Buckets;
use onbeat::trace::record::Obtained;
use onbeat::{EdgeStatus, OperatorStatus, PathStatus, RunStatus};
use std::cmp::Reverse;

/// Causes that are shown.
const CAUSES: usize = 8;
/// Settings that were not obtained and are told one by one.
const MISSING: usize = 3;

/// Rates, shares and percentiles are of the time since `last`, or since the start; counts and maxima are since the start.
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

/// Per second; nothing where no time has passed.
fn rate(now: u64, last: Option<u64>, seconds: f64) -> String {
    if seconds <= 0.0 {
        return "-".to_owned();
    }
    let rate = now.saturating_sub(last.unwrap_or(0)) as f64 / seconds;
    if rate < 9.95 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

/// Below which this share lies, of what came since `last`.
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
    let row = |path: &PathStatus| {
        let same = |other: &&PathStatus| (&other.from, &other.to) == (&path.from, &path.to);
        let before = last.and_then(|last| last.paths.iter().find(same)).map(|path| &path.latency);
        let at = |share| {
            quantile(&path.latency, before, share).map(|ns| ns.min(path.max_ns)).map_or("-".to_owned(), time)
        };
        vec![
            format!("{} → {}", path.from, path.to),
            rate(path.latency.total(), before.map(Buckets::total), seconds),
            at(0.5),
            at(0.9),
            at(0.99),
            if path.latency.total() > 0 { time(path.max_ns) } else { "-".to_owned() },
            path.max_latency_ns.map_or("-".to_owned(), time),
            path.max_latency_ns.map_or("-".to_owned(), |_| path.misses.to_string()),
        ]
    };
    LiveTable {
        columns: vec![
            LiveColumn::text("path", 0),
            LiveColumn::number("per s", 4),
            LiveColumn::number("p50", 3),
            LiveColumn::number("p90", 5),
            LiveColumn::number("p99", 0),
            LiveColumn::number("longest", 1),
            LiveColumn::number("limit", 2),
            LiveColumn::number("misses", 0),
        ],
        rows: now.paths.iter().map(row).collect(),
    }
}

fn causes(now: &RunStatus) -> LiveTable {
    let mut causes: Vec<_> = now.causes.iter().collect();
    causes.sort_by_key(|cause| Reverse(cause.lost_ns));
    let row = |cause: &&onbeat::trace::Cause| {
        vec![
            format!("{} {}", cause.class, cause.name),
            cause.misses.to_string(),
            format!("{:.3}", cause.lost_ns as f64 / 1e6),
            cause.finding.as_ref().map_or("-".to_owned(), |finding| format!("onbeat doctor: {finding}")),
        ]
    };
    LiveTable {
        columns: vec![
            LiveColumn::text("what made it late", 0),
            LiveColumn::number("misses", 1),
            LiveColumn::number("lost ms", 0),
            LiveColumn::text("mended by", 2),
        ],
        rows: causes.iter().take(CAUSES).map(row).collect(),
    }
}

fn operators(last: Option<&RunStatus>, now: &RunStatus, seconds: f64) -> LiveTable {
    let row = |operator: &OperatorStatus| {
        let before = last.and_then(|last| last.operators.iter().find(|other| other.name == operator.name));
        let busy_ns = operator.busy_ns.saturating_sub(before.map_or(0, |before| before.busy_ns));
        let core =
            if seconds > 0.0 { format!("{:.1}", busy_ns as f64 / seconds / 1e7) } else { "-".to_owned() };
        vec![
            operator.name.clone(),
            operator.worker.clone(),
            operator.state.to_string(),
            rate(operator.steps, before.map(|before| before.steps), seconds),
            core,
            operator.late.to_string(),
            operator.waits_for.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    LiveTable {
        columns: vec![
            LiveColumn::text("operator", 0),
            LiveColumn::text("worker", 5),
            LiveColumn::text("state", 2),
            LiveColumn::number("steps/s", 0),
            LiveColumn::number("% of core", 1),
            LiveColumn::number("late", 3),
            LiveColumn::text("waits for", 4),
        ],
        rows: now.operators.iter().map(row).collect(),
    }
}

fn edges(last: Option<&RunStatus>, now: &RunStatus, seconds: f64) -> LiveTable {
    let row = |edge: &EdgeStatus| {
        let same = |other: &&EdgeStatus| (&other.from, &other.to) == (&edge.from, &edge.to);
        let before = last.and_then(|last| last.edges.iter().find(same)).map(|edge| edge.sent);
        vec![
            format!("{} → {}", edge.from, edge.to),
            edge.depth.to_string(),
            edge.capacity.to_string(),
            rate(edge.sent, before, seconds),
            edge.dropped.to_string(),
        ]
    };
    LiveTable {
        columns: vec![
            LiveColumn::text("edge", 0),
            LiveColumn::number("depth", 0),
            LiveColumn::number("of", 1),
            LiveColumn::number("sent/s", 2),
            LiveColumn::number("dropped", 1),
        ],
        rows: now.edges.iter().map(row).collect(),
    }
}

fn missing(obtained: &[Obtained]) -> Vec<String> {
    let missing: Vec<&Obtained> = obtained.iter().filter(|one| one.asked != one.obtained).collect();
    let line =
        |one: &&Obtained| format!("not obtained: {}: asked {}, got {}", one.what, one.asked, one.obtained);
    let mut lines: Vec<String> = missing.iter().take(MISSING).map(line).collect();
    if missing.len() > MISSING {
        lines.push(format!("not obtained: {} more", missing.len() - MISSING));
    }
    lines
}
