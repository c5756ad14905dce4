//! Why something was late.
//!
//! ```text
//! worker ──► Flight: one ring of spans, one of misses ──► Recorder (thread) ──► way ──► split ──► share ──► Verdict, Cause
//!            worker/after a step                          + Evidence of the kernel      pure functions
//! ```
//!
//! | file | what |
//! |---|---|
//! | `recorder`, `work` | the thread that empties them, keeps the last seconds, and looks into each miss |
//! | `strays` | workers on cores that are not theirs |
//! | `findings` | what it found, for the record |
//! | `slowest` | the messages of each path that took longest |
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
mod machine;
mod recorder;
mod route;
mod sentence;
mod share;
mod slowest;
mod split;
mod strays;
mod work;

pub use case::{Case, EdgeFacts, OperatorFacts, Scheduling, ThreadFacts};
pub(crate) use recorder::{Recorded, Recorder, rings};
pub use sentence::sentence;

use onbeat_trace::cause::Part;

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
