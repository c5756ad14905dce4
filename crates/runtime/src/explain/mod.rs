//! Causes of late messages.
//!
//! ```text
//! worker ──► Flight: rings of ──► Recorder (thread) ──► route ──► split ──► share ──► Verdict,
//!            spans and misses     + kernel Evidence     pure functions                Cause
//! ```
//!
//! | file | what |
//! |---|---|
//! | `recorder`, `work` | the thread that empties the rings and explains each miss |
//! | `kept` | the steps of the last seconds |
//! | `strays` | workers found on foreign cores |
//! | `findings` | the results, entered into the record |
//! | `slowest` | the slowest messages of each path |
//! | `machine` | scheduling of the threads, cost of a page fault |
//! | `quota` | threads that may use part of a core only |
//! | `case` | the facts on one miss, as plain data |
//! | `route` | the steps that one message went through |
//! | `cores` | timeline of each core: kernel events, nested |
//! | `lines` | timeline of each worker: steps, and times without a core |
//! | `split` | a window of time to its causes: in each of its `slices` the worker was `busy`, or `away` from its core; a wait for earlier steps is followed back through their `backlog` |
//! | `share` | times to shares: parts that sum to the lateness |
//! | `sentence` | the verdict in words |
//! | `elsewhere` | the causes on other nodes, from their records |

mod case;
mod cores;
mod elsewhere;
mod findings;
mod kept;
mod lines;
mod machine;
mod quota;
mod recorder;
mod route;
mod sentence;
mod share;
mod slowest;
mod split;
mod strays;
mod work;

pub use case::{Case, EdgeFacts, OperatorFacts, Scheduling, ThreadFacts};
pub use elsewhere::{NodeRun, name_causes_elsewhere};
pub(crate) use recorder::{Recorder, RecorderReport, rings};
pub use sentence::sentence;

use onbeat_trace::CauseClass;
use onbeat_trace::cause::Part;

/// Returns the causes of a late message as parts, by falling weight. Their `late_ns` sum to the lateness.
///
/// This is a pure function: the same case gives the same parts.
///
/// ```
/// use onbeat_runtime::explain::{Case, OperatorFacts, ThreadFacts, explain};
/// use onbeat_trace::cause::CauseClass;
/// use onbeat_trace::Span;
/// // A step took 50 ns instead of the usual 20. The limit of its message is 30 ns.
/// let way = [Span { due_ns: 100, start_ns: 100, end_ns: 150, held_by: Span::NONE, ..Span::default() }];
/// let operators = [OperatorFacts { name: "demod".into(), usual_ns: Some(20), ..OperatorFacts::default() }];
/// let threads = [ThreadFacts::default()];
/// let case = Case {
///     due_ns: 100,
///     end_ns: 150,
///     limit_ns: 30,
///     way: &way,
///     spans: &way,
///     operators: &operators,
///     threads: &threads,
///     ..Case::default()
/// };
/// let parts = explain(&case);
/// assert_eq!((parts[0].class, parts[0].name.as_str()), (CauseClass::OwnCompute, "demod"));
/// assert_eq!((parts[0].took_ns, parts[0].late_ns), (30, 20));
/// ```
#[must_use]
pub fn explain(case: &Case<'_>) -> Vec<Part> {
    let mut parts = share::share(case, split::split(case));
    let origin = split::origin(case);
    for part in parts.iter_mut().filter(|part| part.class == CauseClass::OtherNode) {
        part.origin = origin;
    }
    parts
}
