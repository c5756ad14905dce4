//! Break-even: the work per step at which the engine takes a given share of the time.
//!
//! An engine that costs `c` per step takes the share `s = c / (c + t)` of the time if each step works for
//! `t`. The share `s` is reached at `t = c · (1 − s) / s`: half at `c`, 5 % at 19 `c`, 1 % at 99 `c`.

use super::bare;
use super::case::OverheadCase;
use super::effort::ArithmeticRounds;
use super::marks::Length;
use super::measure;
use crate::BenchError;
use onbeat_runtime::Options;

/// A share of the time that the engine takes, and its name in figures.
#[derive(Debug, Clone, Copy)]
pub struct EngineShare {
    /// Last part of a figure's name.
    pub name: &'static str,
    /// The share, from 0 to 1.
    pub share: f64,
}

/// The shares measured.
pub const SHARES: [EngineShare; 3] = [
    EngineShare { name: "p50", share: 0.50 },
    EngineShare { name: "p5", share: 0.05 },
    EngineShare { name: "p1", share: 0.01 },
];

/// Work per step, in nanoseconds, at which an engine with this cost per step takes this share.
pub(super) fn operator_ns(step_ns: f64, share: f64) -> f64 {
    step_ns * (1.0 - share) / share
}

/// One run of a case whose operators work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loaded {
    /// Work of one operator in nanoseconds, measured without an engine.
    pub operator_ns: f64,
    /// Share of the time that the engine took, from 0 to 1.
    pub share: f64,
}

/// Number of steps of such operators in a run: the number wanted, limited to about 30 ms.
pub(super) fn steps(wanted: Option<u64>, operator_ns: f64) -> u64 {
    const LONG_NS: f64 = 30e6;
    let timely = (LONG_NS / operator_ns.max(1.0)).clamp(1e3, 5e6) as u64;
    wanted.map_or(timely, |wanted| wanted.min(timely)).max(2)
}

/// Runs the case with this work in each operator, and the same calls without an engine before and after it.
pub(super) fn loaded(
    case: OverheadCase,
    recipe: &str,
    options: &Options,
    rounds: ArithmeticRounds,
    steps: u64,
) -> Result<Loaded, BenchError> {
    let iterations = (steps / case.operators() as u64).max(1);
    // Half of the calls without an engine run before and half after: a core that changes its speed then
    // affects both sides.
    let half = iterations.div_ceil(2);
    let before_ns = bare::one_thread(case, half, rounds);
    let length = Length { warm_up: iterations.div_ceil(20), iterations };
    let taken = measure::run(case, recipe, options, length, rounds, None)?;
    let bare_ns = (before_ns + bare::one_thread(case, half, rounds)) / 2.0;
    let with_ns = taken.steady_ns as f64 / iterations as f64;
    Ok(Loaded { operator_ns: bare_ns / case.operators() as f64, share: 1.0 - bare_ns / with_ns })
}
