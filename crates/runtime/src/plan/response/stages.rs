//! Stages of each source, made from a plan and measured costs: work per worker, and its greatest lateness.

use super::Host;
use super::bound::{LoadStream, Supply, response_ns};
use crate::Plan;
use onbeat_os::Policy;
use onbeat_trace::Record;
use onbeat_trace::record::OperatorRecord;

/// Most rounds until the jitter of all stages is stable. Unless it grows without limit, it is stable after as
/// many rounds as there are stages.
const ROUNDS: usize = 200;

/// Operators of one worker that follow from one source after `depth` changes of worker.
#[derive(Debug, Clone)]
struct Stage {
    source: usize,
    worker: usize,
    depth: usize,
    /// Stages that send messages to this one.
    before: Vec<usize>,
    stream: LoadStream,
    /// Longest time from the source's nominal time to the end of the stage, in nanoseconds; `None` without a
    /// bound.
    worst_ns: Option<f64>,
}

/// All stages of one plan.
pub(super) struct Stages {
    stages: Vec<Stage>,
    /// Number of the stage, by source and operator.
    of: Vec<Vec<Option<usize>>>,
    /// Names of the operators.
    names: Vec<String>,
    /// First worker of the pool and number of its workers, by worker. The first stands for all of them.
    pools: Vec<(usize, usize)>,
    /// Reason why an operator has no bound, by operator: a source before it keeps no time.
    untimed: Vec<Option<String>>,
    /// Mean share of a core, by worker; `None` if a source keeps no time.
    means: Vec<Option<f64>>,
    host: Host,
    /// Longest late wake-up, by worker, in nanoseconds.
    wake_ns: Vec<u64>,
    /// Nanoseconds on the run's clock, which periods and limits count, for one that work takes.
    scale: f64,
}

impl Stages {
    pub fn new(plan: &Plan, record: &Record, host: &Host) -> Self {
        let edges = down_edges(plan);
        let measured: Vec<Option<&OperatorRecord>> = plan
            .operators
            .iter()
            .map(|operator| record.operators.iter().find(|measured| measured.name == operator.name))
            .collect();
        let workers: Vec<usize> = plan
            .operators
            .iter()
            .map(|operator| plan.pools[plan.parts[operator.part].pool].workers.first().copied().unwrap_or(0))
            .collect();
        let mut all = Stages {
            stages: Vec::new(),
            of: Vec::new(),
            names: plan.operators.iter().map(|operator| operator.name.clone()).collect(),
            pools: plan
                .workers
                .iter()
                .map(|worker| &plan.pools[worker.pool].workers)
                .map(|workers| (workers.first().copied().unwrap_or(0), workers.len().max(1)))
                .collect(),
            untimed: vec![None; plan.operators.len()],
            means: vec![Some(0.0); plan.workers.len()],
            host: *host,
            wake_ns: late_wakes_ns(plan, record),
            scale: plan.options.scale,
        };
        for source in (0..plan.operators.len()).filter(|&at| plan.operators[at].source) {
            let messages = sent(record, &plan.operators[source].name, measured[source]);
            let of = all.add_source(plan, source, messages, &edges, &workers, &measured);
            all.of.push(of);
        }
        all.settle(plan);
        all
    }

    /// Adds the stages of one source, and returns the stage of each operator that the source reaches.
    fn add_source(
        &mut self,
        plan: &Plan,
        source: usize,
        messages: u64,
        edges: &[(usize, usize)],
        workers: &[usize],
        measured: &[Option<&OperatorRecord>],
    ) -> Vec<Option<usize>> {
        let period_ns = plan.operators[source].period_ns.filter(|&ns| ns > 0);
        let why = match (period_ns, messages) {
            (None, _) => Some(format!("`{}` keeps no time: it sends as fast as it can", self.names[source])),
            (_, 0) => Some(format!("the record has no message of `{}`", self.names[source])),
            _ => None,
        };
        let mut of = vec![None; workers.len()];
        for (at, depth) in depths(source, edges, workers).into_iter().enumerate() {
            let Some(depth) = depth else { continue };
            if let Some(why) = &why {
                self.untimed[at].get_or_insert_with(|| why.clone());
                self.means[workers[at]] = None;
                continue;
            }
            let (Some(period_ns), Some(measured)) = (period_ns, measured[at]) else {
                let why = format!("the record has no operator `{}`", self.names[at]);
                self.untimed[at].get_or_insert(why);
                continue;
            };
            of[at] = Some(self.put(source, workers[at], depth, period_ns, measured, messages));
            if let Some(mean) = &mut self.means[workers[at]] {
                *mean += self.scale * measured.busy_ns as f64 / messages as f64 / period_ns as f64;
            }
        }
        for &(from, to) in edges {
            if let (Some(from), Some(to)) = (of[from], of[to])
                && from != to
                && !self.stages[to].before.contains(&from)
            {
                self.stages[to].before.push(from);
            }
        }
        of
    }

    /// Adds an operator to its stage, and returns the number of the stage.
    fn put(
        &mut self,
        source: usize,
        worker: usize,
        depth: usize,
        period_ns: u64,
        measured: &OperatorRecord,
        messages: u64,
    ) -> usize {
        let same = |stage: &Stage| (stage.source, stage.worker, stage.depth) == (source, worker, depth);
        let at = self.stages.iter().position(same).unwrap_or_else(|| {
            let stream = LoadStream { period_ns: period_ns as f64, jitter_ns: 0.0, work: Vec::new() };
            self.stages.push(Stage {
                source,
                worker,
                depth,
                before: Vec::new(),
                stream,
                worst_ns: Some(0.0),
            });
            self.stages.len() - 1
        });
        // A few steps belong to no message: those at the end of a run, and those without input.
        let ratio = measured.steps as f64 * 0.99 / messages as f64;
        let longest_ns = self.scale * measured.step.max_ns as f64;
        let work = if ratio > 0.5 {
            (1, ratio.ceil() * longest_ns)
        } else {
            ((1.0 / ratio.max(1e-9)) as u64, longest_ns)
        };
        if measured.steps > 0 {
            self.stages[at].stream.work.push(work);
        }
        at
    }

    /// Computes the lateness of each stage until all values are stable.
    fn settle(&mut self, plan: &Plan) {
        for _ in 0..ROUNDS {
            let mut changed = false;
            for at in 0..self.stages.len() {
                let jitter_ns = self.stages[at].before.iter().try_fold(0f64, |most_ns, &before| {
                    self.stages[before].worst_ns.map(|worst_ns| most_ns.max(worst_ns))
                });
                let worst_ns = jitter_ns.and_then(|jitter_ns| {
                    self.stages[at].stream.jitter_ns = jitter_ns;
                    self.response_ns(plan, at)
                });
                changed |= worst_ns != self.stages[at].worst_ns;
                self.stages[at].worst_ns = worst_ns;
            }
            if !changed {
                return;
            }
        }
        // The stages delay each other without limit.
        self.stages.iter_mut().for_each(|stage| stage.worst_ns = None);
    }

    /// Longest time from the source's nominal time to the end of a stage, in nanoseconds.
    fn response_ns(&self, plan: &Plan, at: usize) -> Option<f64> {
        let stage = &self.stages[at];
        let worker = stage.worker;
        // A source that keeps no time never frees its core.
        if self.goes_before(plan, worker).any(|other| self.means[other].is_none()) {
            return None;
        }
        let in_the_way = |other: &Stage| other.worker == worker || self.is_before(plan, other.worker, worker);
        let others =
            self.stages.iter().enumerate().filter(|(number, other)| *number != at && in_the_way(other));
        let others: Vec<LoadStream> = others.map(|(_, other)| other.stream.clone()).collect();
        response_ns(&stage.stream, &others, self.supply(plan, worker))
    }

    /// Whether worker `other` runs, or may run, before `worker` on the same core.
    fn is_before(&self, plan: &Plan, other: usize, worker: usize) -> bool {
        let policy = |worker: usize| plan.pools[plan.workers[worker].pool].policy;
        let rank = |worker: usize| match policy(worker) {
            Some(Policy::Deadline { .. }) => 101,
            Some(policy) => policy.priority().map_or(0, i32::from),
            None => 0,
        };
        let core = |worker: usize| plan.workers[worker].core;
        other != worker && core(other).is_some() && core(other) == core(worker) && rank(other) >= rank(worker)
    }

    /// Workers that run, or may run, before `worker` on its core, and `worker` itself.
    fn goes_before<'a>(&'a self, plan: &'a Plan, worker: usize) -> impl Iterator<Item = usize> + 'a {
        (0..plan.workers.len()).filter(move |&other| other == worker || self.is_before(plan, other, worker))
    }

    /// Computing time that a worker gets.
    pub fn supply(&self, plan: &Plan, worker: usize) -> Supply {
        let own = match plan.pools[plan.workers[worker].pool].policy {
            Some(Policy::Deadline { runtime_ns, period_ns, .. }) => {
                Supply::server(self.scale * runtime_ns as f64, self.scale * period_ns.max(1) as f64)
            }
            _ => Supply::CORE,
        };
        Supply {
            delay_ns: own.delay_ns + self.scale * (self.wake_ns[worker] + self.host.longest_ns) as f64,
            rate: own.rate * (1.0 - self.host.share).max(0.0),
        }
    }

    fn pool(&self, worker: usize) -> (usize, usize) {
        self.pools[worker]
    }

    /// Mean share of a core that the operators of a worker take; `None` if a source keeps no time.
    pub fn mean(&self, worker: usize) -> Option<f64> {
        let (first, count) = self.pool(worker);
        Some(self.means[first]? / count as f64)
    }

    /// Share of a core if each step took as long as its longest; `None` if a source keeps no time.
    pub fn most(&self, worker: usize) -> Option<f64> {
        let (first, count) = self.pool(worker);
        self.means[first]?;
        let own = self.stages.iter().filter(|stage| stage.worker == first);
        Some(own.map(|stage| stage.stream.utilisation()).sum::<f64>() / count as f64)
    }

    /// Sum of `most` of the workers that go before it on its core.
    pub fn before(&self, plan: &Plan, worker: usize) -> Option<f64> {
        self.goes_before(plan, worker).filter(|&other| other != worker).map(|other| self.most(other)).sum()
    }

    /// Longest time from the due time of a message to the end of a sink's work on it, in nanoseconds.
    ///
    /// # Errors
    /// The reason why there is no bound.
    pub fn worst_ns(&self, from: &str, to: &str) -> Result<u64, String> {
        let place = |name: &str| self.names.iter().position(|other| other == name);
        let (Some(source), Some(sink)) = (place(from), place(to)) else {
            return Err(format!("there is no operator `{from}` or `{to}`"));
        };
        if let Some(why) = &self.untimed[sink] {
            return Err(why.clone());
        }
        let stage = self.of.iter().filter_map(|of| of[sink]).find(|&at| self.stages[at].source == source);
        let Some(stage) = stage else { return Err(format!("no message of `{from}` reaches `{to}`")) };
        let worst_ns = self.stages[stage].worst_ns;
        worst_ns.map(|ns| ns.ceil() as u64).ok_or_else(|| {
            "with steps as long as the longest, a worker on the way has more to do than it has time for"
                .to_owned()
        })
    }

    /// Condition under which the bounds of this source's messages hold, if there is one.
    pub fn caveat(&self, plan: &Plan, from: &str) -> Option<String> {
        let stages = self.stages.iter().filter(|stage| self.names[stage.source] == from);
        let normal = |worker: usize| {
            let policy = plan.pools[plan.workers[worker].pool].policy;
            !policy.is_some_and(|policy| policy.is_real_time())
        };
        let worker = stages.map(|stage| stage.worker).find(|&worker| normal(worker))?;
        Some(format!(
            "while nobody else wants the core of {}, which has a normal policy",
            plan.workers[worker].name
        ))
    }
}

/// Number of messages that a source has sent: that of the edge with the most.
fn sent(record: &Record, source: &str, measured: Option<&OperatorRecord>) -> u64 {
    let of = |from: &str| from.rsplit_once('.').is_some_and(|(name, _)| name == source);
    let edges = record.edges.iter().filter(|edge| of(&edge.from)).map(|edge| edge.sent);
    edges.max().or(measured.map(|measured| measured.steps)).unwrap_or(0)
}

/// Ends of the edges that lead down the graph. Edges that lead back up close loops: they are left out.
fn down_edges(plan: &Plan) -> Vec<(usize, usize)> {
    let place = |port: &str| {
        let name = port.rsplit_once('.').map_or(port, |(name, _)| name);
        plan.operators.iter().position(|operator| operator.name == name)
    };
    plan.edges
        .iter()
        .filter_map(|edge| Some((place(&edge.from)?, place(&edge.to)?)))
        .filter(|(from, to)| from < to)
        .collect()
}

/// Longest late wake-up of each worker, in nanoseconds.
fn late_wakes_ns(plan: &Plan, record: &Record) -> Vec<u64> {
    plan.workers
        .iter()
        .map(|worker| {
            let thread = record.threads.iter().find(|thread| thread.name == worker.name);
            thread.and_then(|thread| thread.wake_late_max_ns).unwrap_or(0)
        })
        .collect()
}

/// Number of changes of worker from the source to each operator; `None` for operators that it does not reach.
fn depths(source: usize, edges: &[(usize, usize)], workers: &[usize]) -> Vec<Option<usize>> {
    let mut depth = vec![None; workers.len()];
    depth[source] = Some(0);
    // In the order of the plan, producers come before consumers.
    for to in source + 1..workers.len() {
        depth[to] = edges
            .iter()
            .filter(|(_, end)| *end == to)
            .filter_map(|&(from, _)| Some(depth[from]? + usize::from(workers[from] != workers[to])))
            .max();
    }
    depth
}
