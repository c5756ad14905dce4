//! Workers, their cores, and the operators that each of them steps.

mod event;
mod pools;

use super::replicate::Expanded;
use super::resolve::Wire;
use super::split::{Cost, split};
use super::{GraphError, OperatorPlan, PartPlan, PoolPlan, WorkerPlan};
use crate::base::idle::Idle;
use crate::base::options::Options;
use crate::graph::Graph;
use onbeat_os::{CoreSet, Policy};
use onbeat_trace::record::{Obtained, Scheduler};

/// Assumed cost of a step if the operator states none, in nanoseconds.
const COST_NS: f64 = 1000.0;

/// Cost in nanoseconds from which moving one operator to another worker pays.
const WORTH_NS: f64 = 5000.0;

/// Most parts that the workers of one pool share: a set of parts is one word.
pub(super) const PARTS: usize = 64;

pub(super) struct Workers {
    /// Threads, by worker number.
    threads: Vec<Thread>,
    /// Part of each operator, by operator number.
    pub part_of: Vec<usize>,
    /// Pool of each part.
    pool_of: Vec<usize>,
    /// Parts that get blocks of work from another one.
    lanes: Vec<usize>,
    pools: Vec<PoolSpec>,
    pub obtained: Vec<Obtained>,
    /// Notes for the plan: valid, but perhaps a mistake.
    pub notes: Vec<String>,
    /// Chains that may run as waves, by operator number.
    pub waves: Vec<Vec<usize>>,
}

/// One worker.
struct Thread {
    name: String,
    core: Option<usize>,
    pool: usize,
}

/// Settings of a pool.
struct PoolSpec {
    name: String,
    policy: Option<Policy>,
    idle: Idle,
}

/// Placement on workers that are all alike: the result of all schedulers but `custom`.
struct Alike {
    /// Core of each worker; `None` if it has no core of its own.
    cores: Vec<Option<usize>>,
    part_of: Vec<usize>,
    /// Whether all workers share all parts. Otherwise each has its own.
    shared: bool,
    obtained: Vec<Obtained>,
    /// Chains that may run as waves, by operator number; at most one per part.
    waves: Vec<Vec<usize>>,
    /// Parts that get blocks of work from another one.
    lanes: Vec<usize>,
}

impl Workers {
    /// Places operators on workers. `wires` has places in the graph; `order` has the place of each operator
    /// number.
    pub fn new(
        graph: &Graph,
        wires: &[Wire],
        order: &[usize],
        options: &Options,
        lanes: Option<&Expanded>,
    ) -> Result<Self, GraphError> {
        check_cores(options)?;
        let alike = match options.scheduler {
            Scheduler::Replicated if options.pools.is_empty() => {
                replicated(order, options, lanes.map_or(&[], |lanes| &lanes.worker))?
            }
            Scheduler::Custom => return pools::custom(graph, order, options),
            _ if !options.pools.is_empty() => return Err(pools::misplaced(options)),
            Scheduler::Greedy => greedy(order, options)?,
            Scheduler::Event => event::event(graph, wires, order, options, lanes)?,
            _ => pinned(graph, wires, order, options)?,
        };
        Ok(Workers::alike(alike, options))
    }

    fn alike(Alike { cores, part_of, shared, obtained, waves, lanes }: Alike, options: &Options) -> Self {
        let spec = |name| PoolSpec { name, policy: options.policy, idle: options.idle };
        let parts = part_of.iter().max().map_or(1, |&last| last + 1);
        let pools = match shared {
            true => vec![spec("event".to_string())],
            false => (0..cores.len()).map(|number| spec(name(number))).collect(),
        };
        let pool = |number| if shared { 0 } else { number };
        let thread = |(number, core)| Thread { name: name(number), core, pool: pool(number) };
        Workers {
            threads: cores.into_iter().enumerate().map(thread).collect(),
            part_of,
            lanes,
            pool_of: (0..parts).map(pool).collect(),
            pools,
            obtained,
            notes: Vec::new(),
            waves,
        }
    }

    /// Rows of the plan for the threads.
    pub fn plans(&self, operators: &[OperatorPlan]) -> Vec<WorkerPlan> {
        let names = |pool: usize| {
            let may = operators.iter().filter(move |operator| self.pool_of[operator.part] == pool);
            may.map(|operator| operator.name.clone()).collect()
        };
        let plan = |Thread { name, core, pool }: &Thread| WorkerPlan {
            name: name.clone(),
            core: *core,
            pool: *pool,
            operators: names(*pool),
        };
        self.threads.iter().map(plan).collect()
    }

    pub fn pools(&self) -> Vec<PoolPlan> {
        let workers =
            |pool| (0..self.threads.len()).filter(|&thread| self.threads[thread].pool == pool).collect();
        let plan = |(number, spec): (usize, &PoolSpec)| PoolPlan {
            name: spec.name.clone(),
            policy: spec.policy,
            idle: spec.idle,
            workers: workers(number),
        };
        self.pools.iter().enumerate().map(plan).collect()
    }

    pub fn parts(&self, operators: &[OperatorPlan]) -> Vec<PartPlan> {
        let plan = |(part, &pool): (usize, &usize)| {
            let workers: Vec<&Thread> = self.threads.iter().filter(|thread| thread.pool == pool).collect();
            let first = operators.iter().find(|operator| operator.part == part);
            let name = match (workers.as_slice(), first) {
                ([alone], _) => alone.name.clone(),
                (_, Some(first)) => first.name.clone(),
                (_, None) => self.pools[pool].name.clone(),
            };
            PartPlan { name, pool, is_lane: self.lanes.contains(&part) }
        };
        self.pool_of.iter().enumerate().map(plan).collect()
    }
}

fn greedy(order: &[usize], options: &Options) -> Result<Alike, GraphError> {
    if let [first, second, ..] = options.cores.as_slice() {
        return Err(GraphError::Cores(format!(
            "`greedy` has one worker, and more than one core was named ({first}, {second}, ...): name one, or \
             choose `scheduler = \"pinned\"`"
        )));
    }
    if let Some(workers) = options.workers.filter(|&workers| workers != 1) {
        return Err(GraphError::Cores(format!(
            "`greedy` has one worker, not {workers}: choose `scheduler = \"pinned\"`"
        )));
    }
    Ok(Alike {
        cores: vec![options.cores.first().copied()],
        part_of: vec![0; order.len()],
        shared: false,
        obtained: Vec::new(),
        waves: Vec::new(),
        lanes: Vec::new(),
    })
}

/// Name of a worker and its thread.
fn name(worker: usize) -> String {
    format!("onbeat-w{worker}")
}

fn check_cores(options: &Options) -> Result<(), GraphError> {
    if !options.house_keeping.is_empty() {
        let online = CoreSet::online().map_err(|error| GraphError::Cores(error.to_string()))?;
        if let Some(core) = options.house_keeping.iter().find(|&&core| !online.contains(core)) {
            return Err(GraphError::HouseKeeping(format!(
                "there is no core {core} for house-keeping on this machine: it has {online}"
            )));
        }
    }
    check_workers(&options.cores, options.workers, "").map_err(GraphError::Cores)
}

/// Checks that the cores exist and have one worker each. `whose` is the begin of the message.
fn check_workers(cores: &[usize], workers: Option<usize>, whose: &str) -> Result<(), String> {
    if workers == Some(0) {
        return Err(format!("{whose}`workers` is 0: there must be at least one"));
    }
    if cores.is_empty() {
        return Ok(());
    }
    if let Some(workers) = workers.filter(|&workers| workers != cores.len()) {
        return Err(format!(
            "{whose}{workers} workers on {} cores: there is one worker on each core; name the cores or the number, not both",
            cores.len()
        ));
    }
    let online = CoreSet::online().map_err(|error| error.to_string())?;
    for (at, &core) in cores.iter().enumerate() {
        if !online.contains(core) {
            return Err(format!("{whose}there is no core {core} on this machine: it has {online}"));
        }
        if cores[..at].contains(&core) {
            return Err(format!("{whose}core {core} is named twice: there is one worker on each core"));
        }
    }
    Ok(())
}

/// Core of each worker; `None` if the kernel chooses.
fn cores(options: &Options) -> Result<Vec<Option<usize>>, GraphError> {
    Ok(match (options.workers, options.cores.as_slice()) {
        (Some(workers), []) => vec![None; workers],
        (None, []) => {
            let allowed = CoreSet::allowed().map_err(|error| GraphError::Cores(error.to_string()))?;
            let free: Vec<_> =
                allowed.iter().filter(|core| !options.house_keeping.contains(core)).map(Some).collect();
            if free.is_empty() {
                return Err(GraphError::HouseKeeping(format!(
                    "no core is left for workers: this process may use {allowed}, and all of them are for house-keeping"
                )));
            }
            free
        }
        (_, cores) => cores.iter().copied().map(Some).collect(),
    })
}

/// Report of fewer workers than requested.
fn fewer(asked: usize, used: usize, options: &Options) -> Vec<Obtained> {
    if used >= asked || options.workers.is_none() && options.cores.is_empty() {
        return Vec::new();
    }
    vec![Obtained {
        what: "workers".to_string(),
        asked: asked.to_string(),
        obtained: used.to_string(),
        reason: Some(format!("there are only {used} operators to share out")),
    }]
}

fn pinned(graph: &Graph, wires: &[Wire], order: &[usize], options: &Options) -> Result<Alike, GraphError> {
    let cores = cores(options)?;
    let part_of = split(&costs(graph, wires, order, options, cores.len()), cores.len());
    let used = part_of.last().map_or(1, |&last| last + 1);
    let obtained = fewer(cores.len(), used, options);
    Ok(Alike {
        cores: cores.into_iter().take(used).collect(),
        part_of,
        shared: false,
        obtained,
        waves: Vec::new(),
        lanes: Vec::new(),
    })
}

/// Number of workers under `replicated`, each with a copy of the replicated operators.
pub(super) fn for_replicas(options: &Options) -> Result<usize, GraphError> {
    check_cores(options)?;
    if !options.pools.is_empty() {
        return Err(pools::misplaced(options));
    }
    let cores = cores(options)?.len();
    if cores > PARTS {
        return Err(GraphError::Cores(format!("{cores} workers for replicas: there may be {PARTS} at most")));
    }
    Ok(cores)
}

/// Placement that `replicated` has found before. `lanes` has the worker of each operator, by place.
fn replicated(order: &[usize], options: &Options, lanes: &[usize]) -> Result<Alike, GraphError> {
    let part_of: Vec<usize> = order.iter().map(|&place| lanes.get(place).copied().unwrap_or(0)).collect();
    let used = part_of.iter().max().map_or(1, |&last| last + 1);
    let cores = cores(options)?.into_iter().take(used).collect();
    Ok(Alike { cores, part_of, shared: false, obtained: Vec::new(), waves: Vec::new(), lanes: Vec::new() })
}

/// Cost of each operator, by operator number. A measured cost has precedence over a stated one.
/// Without either, 1 µs is assumed, and 0 for sources and sinks. With fewer operators than workers, sources
/// and sinks count as well.
fn costs(graph: &Graph, wires: &[Wire], order: &[usize], options: &Options, workers: usize) -> Vec<Cost> {
    let (mut takes, mut sends) = (vec![false; order.len()], vec![false; order.len()]);
    for wire in wires {
        takes[wire.to] |= wire.required;
        sends[wire.from] = true;
    }
    let cost = |ends_ns: f64| {
        let cost = |&place: &usize| {
            let node = &graph.operators[place];
            let assumed = if takes[place] && sends[place] { COST_NS } else { ends_ns };
            let stated = node.cost_ns.map_or(assumed, |cost_ns| cost_ns as f64);
            let cost = options.costs.get(&node.name).copied().unwrap_or(stated);
            Cost { cost, source: !takes[place] }
        };
        order.iter().map(cost).collect::<Vec<_>>()
    };
    let costs = cost(0.0);
    if costs.iter().filter(|cost| cost.cost > 0.0).count() < workers { cost(COST_NS) } else { costs }
}
