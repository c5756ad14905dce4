//! From a plan and what a run of it cost to the stages of each source: what it brings to which worker, and how late that may be.

use super::Host;
use super::bound::{Stream, Supply, response_ns};
use crate::Plan;
use onbeat_os::Policy;
use onbeat_trace::Record;
use onbeat_trace::record::OperatorRecord;

/// Rounds until lateness that stages give to one another stands. There is none that does not stand after as many rounds as there are
/// stages, unless it grows for ever.
const ROUNDS: usize = 200;

/// The operators of one worker that follow from one source, so many changes of worker after it.
#[derive(Debug, Clone)]
struct Stage {
    source: usize,
    worker: usize,
    depth: usize,
    /// The stages that hand over to it.
    before: Vec<usize>,
    stream: Stream,
    /// From the source's nominal time to the end of it; `None` where there is no bound.
    worst_ns: Option<f64>,
}

/// Everything about one plan.
pub(super) struct Stages {
    stages: Vec<Stage>,
    /// By source and operator: its stage.
    of: Vec<Vec<Option<usize>>>,
    names: Vec<String>,
    /// By worker: the first of its pool, on which all is taken to be, and how many there are.
    pools: Vec<(usize, usize)>,
    /// By operator: of sources that keep no time, why nothing can be said of what they reach.
    untimed: Vec<Option<String>>,
    /// By worker: share of a core in the mean.
    means: Vec<Option<f64>>,
    host: Host,
    /// By worker: the longest that it woke up late.
    wake_ns: Vec<u64>,
}

impl Stages {
    pub fn new(plan: &Plan, record: &Record, host: &Host) -> Self {
        let count = plan.operators.len();
        let place = |port: &str| {
            let name = port.rsplit_once('.').map_or(port, |(name, _)| name);
            plan.operators.iter().position(|operator| operator.name == name)
        };
        let edges: Vec<(usize, usize)> =
            plan.edges.iter().filter_map(|edge| Some((place(&edge.from)?, place(&edge.to)?))).collect();
        // Edges that lead back up the graph carry what a loop had before.
        let down = || edges.iter().filter(|(from, to)| from < to);
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
        let wake_ns = plan
            .workers
            .iter()
            .map(|worker| {
                let thread = record.threads.iter().find(|thread| thread.name == worker.name);
                thread.and_then(|thread| thread.wake_late_max_ns).unwrap_or(0)
            })
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
            untimed: vec![None; count],
            means: vec![Some(0.0); plan.workers.len()],
            host: *host,
            wake_ns,
        };
        for source in (0..count).filter(|&at| plan.operators[at].source) {
            let mut depth = vec![None; count];
            depth[source] = Some(0);
            // In the order of the plan whoever sends is before who takes.
            for to in source + 1..count {
                let from = down().filter(|(_, end)| *end == to);
                depth[to] = from
                    .filter_map(|&(from, _)| Some(depth[from]? + usize::from(workers[from] != workers[to])))
                    .max();
            }
            let messages = sent(record, &plan.operators[source].name, measured[source]);
            let period_ns = plan.operators[source].period_ns.filter(|&ns| ns > 0);
            let why = match (period_ns, messages) {
                (None, _) => {
                    Some(format!("`{}` keeps no time: it sends as fast as it can", all.names[source]))
                }
                (_, 0) => Some(format!("the record has no message of `{}`", all.names[source])),
                _ => None,
            };
            let mut of = vec![None; count];
            for (at, depth) in depth.iter().enumerate() {
                let Some(depth) = *depth else { continue };
                if let Some(why) = &why {
                    all.untimed[at].get_or_insert_with(|| why.clone());
                    all.means[workers[at]] = None;
                    continue;
                }
                let (Some(period_ns), Some(measured)) = (period_ns, measured[at]) else {
                    let why = format!("the record has no operator `{}`", all.names[at]);
                    all.untimed[at].get_or_insert(why);
                    continue;
                };
                of[at] = Some(all.put(source, workers[at], depth, period_ns, measured, messages));
                if let Some(mean) = &mut all.means[workers[at]] {
                    *mean += measured.busy_ns as f64 / messages as f64 / period_ns as f64;
                }
            }
            for (from, to) in down() {
                if let (Some(from), Some(to)) = (of[*from], of[*to])
                    && from != to
                    && !all.stages[to].before.contains(&from)
                {
                    all.stages[to].before.push(from);
                }
            }
            all.of.push(of);
        }
        all.settle(plan);
        all
    }

    /// Adds an operator to its stage; gives the place of that.
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
            let stream = Stream { period_ns: period_ns as f64, jitter_ns: 0.0, work: Vec::new() };
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
        // Steps at the end of a run, and those that found nothing, are few and are nobody's message.
        let ratio = measured.steps as f64 * 0.99 / messages as f64;
        let longest_ns = measured.step.max_ns as f64;
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

    /// Works out how late each stage may end, until all agree.
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
        // They drive one another on and on.
        self.stages.iter_mut().for_each(|stage| stage.worst_ns = None);
    }

    fn response_ns(&self, plan: &Plan, at: usize) -> Option<f64> {
        let stage = &self.stages[at];
        let worker = stage.worker;
        // A source that keeps no time never lets go of its core.
        if self.goes_before(plan, worker).any(|other| self.means[other].is_none()) {
            return None;
        }
        let in_the_way = |other: &Stage| other.worker == worker || self.is_before(plan, other.worker, worker);
        let others =
            self.stages.iter().enumerate().filter(|(number, other)| *number != at && in_the_way(other));
        let others: Vec<Stream> = others.map(|(_, other)| other.stream.clone()).collect();
        response_ns(&stage.stream, &others, self.supply(plan, worker))
    }

    /// Whether a thread on the same core is run first, or may be.
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

    fn goes_before<'a>(&'a self, plan: &'a Plan, worker: usize) -> impl Iterator<Item = usize> + 'a {
        (0..plan.workers.len()).filter(move |&other| other == worker || self.is_before(plan, other, worker))
    }

    /// What a worker is given to work with.
    pub fn supply(&self, plan: &Plan, worker: usize) -> Supply {
        let own = match plan.pools[plan.workers[worker].pool].policy {
            Some(Policy::Deadline { runtime_ns, period_ns, .. }) => {
                Supply::server(runtime_ns as f64, period_ns.max(1) as f64)
            }
            _ => Supply::CORE,
        };
        Supply {
            delay_ns: own.delay_ns + (self.wake_ns[worker] + self.host.longest_ns) as f64,
            rate: own.rate * (1.0 - self.host.share).max(0.0),
        }
    }

    fn pool(&self, worker: usize) -> (usize, usize) {
        self.pools[worker]
    }

    /// Share of a core that the operators of a worker take in the mean; `None` where a source keeps no time.
    pub fn mean(&self, worker: usize) -> Option<f64> {
        let (first, count) = self.pool(worker);
        Some(self.means[first]? / count as f64)
    }

    /// The same if each step took what its longest did.
    pub fn most(&self, worker: usize) -> Option<f64> {
        let (first, count) = self.pool(worker);
        self.means[first]?;
        let own = self.stages.iter().filter(|stage| stage.worker == first);
        Some(own.map(|stage| stage.stream.utilisation()).sum::<f64>() / count as f64)
    }

    /// The same of those that go before it on its core.
    pub fn before(&self, plan: &Plan, worker: usize) -> Option<f64> {
        self.goes_before(plan, worker).filter(|&other| other != worker).map(|other| self.most(other)).sum()
    }

    /// From the due time of a message to the end of a sink's work on it, at most, in nanoseconds.
    ///
    /// # Errors
    /// Why there is no bound.
    pub fn worst_ns(&self, from: &str, to: &str) -> Result<u64, String> {
        let place = |name: &str| self.names.iter().position(|other| other == name);
        let (Some(source), Some(sink)) = (place(from), place(to)) else {
            return Err(format!("there is no operator `{from}` or `{to}`"));
        };
        if let Some(why) = &self.untimed[sink] {
            return Err(why.clone());
        }
        let stage = self.of.iter().filter_map(|of| of[sink]).find(|&at| self.stages[at].source == source);
        let Some(stage) = stage else { return Err(format!("nothing of `{from}` comes to `{to}`")) };
        let worst_ns = self.stages[stage].worst_ns;
        worst_ns.map(|ns| ns.ceil() as u64).ok_or_else(|| {
            "with steps as long as the longest, a worker on the way has more to do than it has time for"
                .to_owned()
        })
    }

    /// What a bound of this source's messages takes for granted.
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

/// Messages that a source has sent: on the edge that had most of them.
fn sent(record: &Record, source: &str, measured: Option<&OperatorRecord>) -> u64 {
    let of = |from: &str| from.rsplit_once('.').is_some_and(|(name, _)| name == source);
    let edges = record.edges.iter().filter(|edge| of(&edge.from)).map(|edge| edge.sent);
    edges.max().or(measured.map(|measured| measured.steps)).unwrap_or(0)
}
