//! Kernel events of a run, from the best source that this machine allows.

use onbeat_noise::decode::Extent;
use onbeat_noise::{ProcEvidence, TracepointEvidence};
use onbeat_os::CoreSet;
use onbeat_runtime::{Explain, Plan};
use onbeat_trace::{Evidence, NoEvidence};

/// Size of the ring of one core, in bytes: enough for 50 ms of a busy core.
const RING_BYTES: usize = 1 << 20;

/// Opens the source of kernel events for the cores of a plan: tracepoints if they can be read, else the
/// counters in `/proc`. The record has the source and the reason.
///
/// ```
/// use onbeat::Graph;
/// let mut graph = Graph::new("explained");
/// let ones = graph.source("ones", || Some(1u8));
/// let end = graph.sink("end", |_: u8| ());
/// graph.connect(ones, |s| &s.out, end, |e| &e.input);
/// graph.deadline(end, 1_000_000);
/// let options = onbeat::Options { duration_ns: Some(10_000_000), ..onbeat::Options::default() };
/// let plan = graph.plan(&options)?;
/// let evidence = onbeat::evidence(&plan);
/// let record = graph.start_explained(plan, evidence)?.wait()?;
/// for miss in &record.misses {
///     println!("{}", miss.verdict.as_ref().map_or("", |verdict| &verdict.sentence));
/// }
/// # Ok::<(), onbeat::RunError>(())
/// ```
#[must_use]
pub fn evidence(plan: &Plan) -> Box<dyn Evidence> {
    if plan.options.explain == Explain::Off || !plan.is_explained() {
        return Box::new(NoEvidence);
    }
    let cores: Option<Vec<usize>> = plan.workers.iter().map(|worker| worker.core).collect();
    let mut cores = cores.unwrap_or_else(|| CoreSet::online().map_or(Vec::new(), |all| all.iter().collect()));
    cores.sort_unstable();
    cores.dedup();
    match TracepointEvidence::open(&cores, RING_BYTES, Extent::Cores) {
        Ok(evidence) => Box::new(evidence.ready_to_follow()),
        Err(refused) => Box::new(ProcEvidence::new(refused.why, refused.fix)),
    }
}
