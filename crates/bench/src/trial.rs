//! Runs one graph under one scheduler for a limited time.

use crate::model::{GraphLoad, StretchEnds, WorkerLayout};
use onbeat_runtime::{Graph, Idle, Options, Plan, RunError, Scheduler};
use onbeat_trace::{Record, Summary};

/// Creates the same graph repeatedly, because a run consumes it.
pub trait Maker {
    /// Returns the graph and its options. Scheduler, cores and duration of the options are overridden.
    ///
    /// # Errors
    /// A text that says why the graph cannot be created.
    fn make(&mut self) -> Result<(Graph, Options), String>;
}

/// Figures of one run.
#[derive(Debug, Clone)]
pub(crate) struct TrialFigures {
    /// Iterations per second.
    pub rate: f64,
    /// Median and 99th percentile of the slowest path, in nanoseconds.
    pub latency: Option<(f64, f64)>,
    /// CPU time of all workers per iteration, in nanoseconds.
    pub cpu_ns: f64,
    /// Share of the run in which workers were idle: 0 to 1.
    pub idle: f64,
}

/// Schedulers to try, with their names on the command line; the simplest comes first.
pub(crate) const ALL: [Scheduler; 4] =
    [Scheduler::Greedy, Scheduler::Event, Scheduler::Pinned, Scheduler::Replicated];

/// The same options for another scheduler and duration.
pub(crate) fn options(given: &Options, scheduler: Scheduler, duration_ns: u64) -> Options {
    let mut options = Options { scheduler, duration_ns: Some(duration_ns), ..given.clone() };
    if scheduler != Scheduler::Custom {
        options.pools = Vec::new();
    }
    if scheduler == Scheduler::Greedy {
        options.workers = None;
        options.cores.truncate(1);
    }
    options
}

/// How often a run in which no source sent anything is repeated, each time twice as long: a busy machine may
/// not have scheduled its workers.
const TRIES: u32 = 6;

/// Runs the graph once.
///
/// # Errors
/// A text that says why the run failed, or that no source sent anything.
pub(crate) fn run(maker: &mut dyn Maker, options: &Options) -> Result<Record, String> {
    for again in 0..TRIES {
        let (graph, _) = maker.make()?;
        let duration_ns = options.duration_ns.map(|ns| ns.saturating_mul(1 << again));
        let options = Options { duration_ns, ..options.clone() };
        let record = graph.run(&options).map_err(|error: RunError| error.to_string())?;
        let sent = record.edges.get(counted(&record)).map_or(0, |edge| edge.received);
        if sent > 0 && record.result.duration_ns > 0 {
            return Ok(record);
        }
    }
    Err("its sources sent nothing in that time: give more --seconds".to_owned())
}

/// Figures of a run. The messages on edge `counted` are its iterations.
pub(crate) fn taken(record: &Record, counted: usize) -> Result<TrialFigures, String> {
    let iterations = record.edges.get(counted).map_or(0, |edge| edge.received) as f64;
    let duration_ns = record.result.duration_ns as f64;
    if iterations == 0.0 || duration_ns == 0.0 {
        return Err("its sources sent nothing in that time: give more --seconds".to_owned());
    }
    let worst = record.paths.iter().map(|path| &path.latency).filter(|latency| latency.count > 0);
    let worst: Option<&Summary> = worst.max_by_key(|latency| latency.median_ns);
    let workers = || record.threads.iter().filter(|thread| thread.busy_ns > 0 || thread.idle_ns > 0);
    let count = workers().count().max(1) as f64;
    Ok(TrialFigures {
        rate: iterations * 1e9 / duration_ns,
        latency: worst.map(|latency| (latency.median_ns as f64, latency.p99_ns as f64)),
        cpu_ns: workers().map(|thread| thread.cpu_ns as f64).sum::<f64>() / iterations,
        idle: workers().map(|thread| thread.idle_ns as f64).sum::<f64>() / duration_ns / count,
    })
}

/// Placement of the operators under this plan, for the model.
pub(crate) fn layout(plan: &Plan, workload: &GraphLoad) -> WorkerLayout {
    let workers = plan.workers.len();
    let copies = |name: &str| plan.operators.iter().filter(|operator| operator.name == name).count();
    let part = |name: &str| plan.operators.iter().find(|it| it.name == name).map_or(0, |it| it.part);
    let operators = || workload.operators.iter().map(|operator| operator.name.as_str());
    match plan.scheduler {
        _ if workers == 1 => WorkerLayout::One,
        Scheduler::Event => WorkerLayout::Shared {
            workers,
            // `Share::Heavy` documents this threshold for both idle policies.
            heavy_ns: if plan.options.idle == Idle::Park { 5_000.0 } else { 1_000.0 },
            waves: plan.waves.iter().any(|wave| wave.len() == plan.operators.len()),
        },
        Scheduler::Replicated => {
            let copied: Vec<bool> = operators().map(|name| copies(name) > 1).collect();
            let is_said = |text: &str| plan.notes.iter().any(|note| note.contains(text));
            let ends = match copied.iter().all(|copied| *copied) {
                false => StretchEnds::Rest,
                true if is_said("from worker to worker, in order") => StretchEnds::Turns,
                true => StretchEnds::Copies,
            };
            WorkerLayout::Replicated { workers, copied, ends }
        }
        _ => {
            let worker =
                |part: usize| plan.pools[plan.parts[part].pool].workers.first().copied().unwrap_or(0);
            WorkerLayout::Split(operators().map(|name| worker(part(name))).collect())
        }
    }
}

/// Index of the edge whose messages count as iterations: that of the source that sent most.
pub(crate) fn counted(record: &Record) -> usize {
    let operator =
        |end: &str| end.rsplit_once('.').map_or_else(|| end.to_owned(), |(name, _)| name.to_owned());
    let is_fed = |name: &str| record.edges.iter().any(|edge| operator(&edge.to) == name);
    let sent = (0..record.edges.len()).filter(|&at| !is_fed(&operator(&record.edges[at].from)));
    sent.max_by_key(|&at| (record.edges[at].received, std::cmp::Reverse(at))).unwrap_or(0)
}
