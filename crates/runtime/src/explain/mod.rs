//! Why something was late.
//!
//! ```text
//! worker ──► Flight: one ring of spans, one of misses ──► Recorder (thread) ──► way ──► split ──► share ──► Verdict, Cause
//!            worker/after a step                          + Evidence of the kernel      pure functions
//! ```
//!
//! | file | what |
//! |---|---|
//! | `flight` | what a worker notes of its steps: two rings that never refuse |
//! | `recorder`, `work` | the thread that empties them, keeps the last seconds, and looks into each miss |
//! | `strays` | workers on cores that are not theirs |
//! | `findings` | what it found, for the record |
//! | `slowest` | the messages of each path that took longest |
//! | `told` | what was found so far, for whoever watches the run |
//! | `machine` | what the threads were given, and what a page fault costs |
//! | `case` | all that is known of one miss: plain data |
//! | `way` | which steps one message went through |
//! | `cores` | who had a core: events of the kernel, one inside of the other |
//! | `split` | a window of time to what took it: `slices` of it, in which the worker was `busy` or `away` from its core |
//! | `share` | what was taken to what it cost: parts that sum to the lateness |
//! | `sentence` | the same in words |

mod case;
mod cores;
mod findings;
mod flight;
mod machine;
mod recorder;
mod sentence;
mod share;
mod slowest;
mod split;
mod strays;
mod told;
mod way;
mod work;

pub use case::{Case, EdgeFacts, OperatorFacts, Scheduling, ThreadFacts};
pub(crate) use flight::{About, Flight, Late, Noted, Rings, SLOWEST};
pub(crate) use recorder::{Recorded, Recorder, rings};
pub use sentence::sentence;
pub(crate) use sentence::time;
pub(crate) use told::Told;
pub use told::{LateMessage, Lateness};

use crate::options::Explain;
use crate::plan::Plan;
use onbeat_trace::cause::Part;
use onbeat_trace::record::ClockKind;

/// By part: whether its steps are recorded. All are that share a pool with an operator whose lateness would be a miss.
pub(crate) fn recorded_parts(plan: &Plan) -> Vec<bool> {
    let mut is_recorded = vec![false; plan.parts.len()];
    let is_real = plan.options.clock == ClockKind::Real && plan.options.scale == 1.0;
    if plan.options.explain == Explain::Off || !is_real {
        return is_recorded;
    }
    let ends = plan.paths.iter().filter(|path| path.max_latency_ns.is_some()).map(|path| path.end);
    let limited = |operator: &usize| {
        plan.operators[*operator].deadline_ns.is_some() || plan.operators[*operator].budget_ns.is_some()
    };
    let mut front: Vec<usize> = ends.chain((0..plan.operators.len()).filter(limited)).collect();
    if plan.options.explain == Explain::On {
        return vec![true; plan.parts.len()];
    }
    let mut counts = vec![false; plan.operators.len()];
    while let Some(operator) = front.pop() {
        if !std::mem::replace(&mut counts[operator], true) {
            front.extend(plan.wires.iter().filter(|wire| wire.to == operator).map(|wire| wire.from));
        }
    }
    let pools: Vec<usize> = (0..plan.operators.len())
        .filter(|&operator| counts[operator])
        .map(|operator| plan.parts[plan.operators[operator].part].pool)
        .collect();
    for (part, recorded) in plan.parts.iter().zip(&mut is_recorded) {
        *recorded = pools.contains(&part.pool);
    }
    is_recorded
}

/// What made a message late: the parts, what weighs most first. Their `late_ns` sum to the lateness.
///
/// A pure function: the same case gives the same parts. See [`Case`] for what goes in.
///
/// ```
/// use onbeat_runtime::explain::{Case, OperatorFacts, ThreadFacts, explain};
/// use onbeat_trace::cause::CauseClass;
/// use onbeat_trace::Span;
/// // A step of 50 ns that usually takes 20, of a message that was to be ready after 30.
/// let way = [Span { due_ns: 100, start_ns: 100, end_ns: 150, held_by: Span::NONE, ..Span::default() }];
/// let operators = [OperatorFacts { name: "demod".into(), usual_ns: Some(20), ..OperatorFacts::default() }];
/// let threads = [ThreadFacts::default()];
/// let case = Case {
///     due_ns: 100, end_ns: 150, limit_ns: 30, way: &way, spans: &way, operators: &operators, threads: &threads, ..Case::default()
/// };
/// let parts = explain(&case);
/// assert_eq!((parts[0].class, parts[0].name.as_str()), (CauseClass::OwnCompute, "demod"));
/// assert_eq!((parts[0].took_ns, parts[0].late_ns), (30, 20));
/// ```
#[must_use]
pub fn explain(case: &Case<'_>) -> Vec<Part> {
    share::share(case, split::split(case))
}
