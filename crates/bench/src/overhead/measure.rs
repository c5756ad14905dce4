//! One run of one case.

use super::case::{OverheadCase, PreparedCase};
use super::effort::Effort;
use super::marks::{Length, Times, UsageCounts, UsageDelta};
use crate::BenchError;
use onbeat_os::{EventCounter, clock};
use onbeat_runtime::{Options, RunError};
use std::sync::Arc;

/// Times of one run, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunTimes {
    /// Building, planning, starting, running and ending the graph.
    pub wall_ns: u64,
    /// From the beginning of `wall_ns` to the end of the first step.
    pub start_ns: u64,
    /// From the end of the last iteration to the availability of the record.
    pub stop_ns: u64,
    /// From the end of the warm-up to the end of the last iteration.
    pub steady_ns: u64,
    /// Counts for the interval of `steady_ns`.
    pub counted: Option<UsageDelta>,
}

/// Makes one run. `recipe` is for errors. With a `futex` counter, futex calls are counted too.
pub(super) fn run<E: Effort>(
    case: OverheadCase,
    recipe: &str,
    options: &Options,
    length: Length,
    effort: E,
    futex: Option<EventCounter>,
) -> Result<RunTimes, BenchError> {
    let counts = Arc::new(UsageCounts::new(futex));
    let before_ns = clock::monotonic_ns();
    let PreparedCase { graph, sources, ends } = case.prepare(length, effort, Some(&counts));
    let record = graph.run(options);
    let after_ns = clock::monotonic_ns();
    let failed = |error: RunError| BenchError::Run {
        case: case.name(),
        recipe: recipe.to_owned(),
        error: Box::new(error),
    };
    let record = record.map_err(failed)?;
    // From the first operator that is warm to the last that is done: if they are not in step, this is the
    // longer time.
    let least = |times: &[Arc<Times>], of: fn(&Times) -> u64| times.iter().map(|times| of(times)).min();
    let first_ns = least(&sources, Times::first_ns).unwrap_or(0);
    let begin_ns = least(&ends, Times::begin_ns).unwrap_or(0);
    let end_ns = ends.iter().map(|times| times.end_ns()).max().unwrap_or(0);
    let all_there = begin_ns > 0 && least(&ends, Times::end_ns) > Some(0);
    if !all_there || record.result.lost > 0 {
        return Err(BenchError::Short { case: case.name(), recipe: recipe.to_owned() });
    }
    Ok(RunTimes {
        wall_ns: after_ns - before_ns,
        start_ns: first_ns - before_ns,
        stop_ns: after_ns - end_ns,
        steady_ns: end_ns - begin_ns,
        counted: counts.counted(),
    })
}
