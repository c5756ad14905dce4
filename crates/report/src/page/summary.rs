//! Verdict of a record, and its figures by name.

use super::words;
use onbeat_trace::Record;
use onbeat_trace::record::Outcome;

/// Rating of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// All limits were kept.
    Good,
    /// A limit was exceeded.
    Warn,
    /// The run failed, or messages were lost.
    Bad,
    /// There was no limit.
    Plain,
}

/// Verdict of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunVerdict {
    /// Rating of the run.
    pub tone: Tone,
    /// Verdict in a sentence.
    pub sentence: String,
    /// Further sentences.
    pub details: Vec<String>,
}

/// Returns the verdict of a record.
#[must_use]
pub fn verdict(record: &Record) -> RunVerdict {
    let result = &record.result;
    let limited =
        record.paths.iter().filter(|path| path.max_latency_ns.is_some()).map(|path| path.latency.count);
    let timed = record
        .operators
        .iter()
        .filter(|operator| operator.deadline_ns.is_some())
        .map(|operator| operator.steps);
    let watched = limited.chain(timed).fold(0, u64::saturating_add);
    let has_limit = record.paths.iter().any(|path| path.max_latency_ns.is_some())
        || record.operators.iter().any(|operator| operator.deadline_ns.is_some());
    let missing = record.obtained.iter().filter(|one| one.asked != one.obtained).count() as u64;
    let (tone, sentence) = if result.outcome == Outcome::Failed {
        (Tone::Bad, "The run failed".to_string())
    } else if result.lost > 0 {
        let lost = record.lost_by_unit().into_iter().map(|(count, unit)| match unit {
            "messages" => words::counted(count, "message"),
            unit => format!("{} {unit}", words::count(count)),
        });
        (Tone::Bad, format!("{} lost unexpectedly", lost.collect::<Vec<_>>().join(" and ")))
    } else if record.misses_total > 0 {
        let share = record.misses_total as f64 / watched.max(record.misses_total) as f64;
        let all = words::count(watched.max(record.misses_total));
        (
            Tone::Warn,
            format!(
                "{} of {all} limits were missed ({})",
                words::count(record.misses_total),
                words::percent(share)
            ),
        )
    } else if !has_limit {
        (Tone::Plain, "No limit was set, so nothing could be late".to_string())
    } else if watched == 0 {
        (Tone::Plain, "No message with a limit arrived".to_string())
    } else {
        (Tone::Good, format!("All {} limits were kept", words::count(watched)))
    };
    let mut details = vec![format!(
        "{} after {}: {}",
        result.outcome,
        words::time(result.duration_ns as f64),
        result.reason
    )];
    if missing > 0 {
        let were = if missing == 1 { "was" } else { "were" };
        details.push(format!("{} {were} not obtained as requested", words::counted(missing, "setting")));
    }
    if record.build.profile != "release" {
        details
            .push(format!("measured with a {} build: the figures are not meaningful", record.build.profile));
    }
    RunVerdict { tone, sentence, details }
}

/// Figure: dotted name, value (`None` if not measured), unit.
pub type NamedFigure = (String, Option<f64>, &'static str);

/// Returns the figures of a record by dotted name, from the general to the particular.
#[must_use]
pub fn figures(record: &Record) -> Vec<NamedFigure> {
    let mut all: Vec<NamedFigure> = vec![
        ("run.duration".into(), Some(record.result.duration_ns as f64), "ns"),
        ("run.misses".into(), Some(record.misses_total as f64), "count"),
        ("run.lost".into(), Some(record.result.lost as f64), "count"),
        ("run.exit_status".into(), Some(f64::from(record.result.exit_status)), "count"),
    ];
    let mut summary = |name: &str, of: &onbeat_trace::Summary| {
        let some = |ns: f64| (of.count > 0).then_some(ns);
        all.push((format!("{name}.count"), Some(of.count as f64), "count"));
        for (what, ns) in [
            ("min", of.min_ns as f64),
            ("mean", of.mean_ns),
            ("p50", of.median_ns as f64),
            ("p90", of.p90_ns as f64),
            ("p99", of.p99_ns as f64),
            ("p99_9", of.p99_9_ns as f64),
            ("max", of.max_ns as f64),
        ] {
            all.push((format!("{name}.{what}"), some(ns), "ns"));
        }
    };
    for path in &record.paths {
        summary(&format!("path.{}.{}.latency", path.from, path.to), &path.latency);
    }
    for operator in &record.operators {
        summary(&format!("operator.{}.step", operator.name), &operator.step);
    }
    for path in &record.paths {
        all.push((
            format!("path.{}.{}.misses", path.from, path.to),
            path.max_latency_ns.map(|_| path.misses as f64),
            "count",
        ));
    }
    for operator in &record.operators {
        all.push((format!("operator.{}.share", operator.name), Some(operator.share), "cores"));
    }
    for edge in &record.edges {
        all.push((format!("edge.{}.{}.depth_max", edge.from, edge.to), Some(edge.depth_max as f64), "count"));
        all.push((format!("edge.{}.{}.dropped", edge.from, edge.to), Some(edge.dropped as f64), "count"));
    }
    all
}
