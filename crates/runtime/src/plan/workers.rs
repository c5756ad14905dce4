//! Which workers there are, on which cores, and which operators each of them steps.

use super::GraphError;
use super::resolve::Wire;
use super::split::{Cost, split};
use super::{OperatorPlan, PartPlan, PoolPlan, WorkerPlan};
use crate::graph::Graph;
use crate::options::Options;
use onbeat_os::CoreSet;
use onbeat_trace::record::{Obtained, Scheduler};

/// What an operator costs that says nothing about it, in nanoseconds.
const COST_NS: f64 = 1000.0;

/// Most parts that the workers of one pool share: sets of them are one word.
const PARTS: usize = 64;

pub(super) struct Workers {
    /// By worker: its core, where it has one of its own.
    pub cores: Vec<Option<usize>>,
    /// By operator number: its part.
    pub part_of: Vec<usize>,
    /// Whether all workers share all parts; else each has its own.
    pub shared: bool,
    pub obtained: Vec<Obtained>,
}

impl Workers {
    /// `wires` go by places in the graph, `order` has the place of each operator number.
    pub fn new(
        graph: &Graph,
        wires: &[Wire],
        order: &[usize],
        options: &Options,
    ) -> Result<Self, GraphError> {
        check_cores(options)?;
        match options.scheduler {
            Scheduler::Greedy => {
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
                Ok(Workers {
                    cores: vec![options.cores.first().copied()],
                    part_of: vec![0; order.len()],
                    shared: false,
                    obtained: Vec::new(),
                })
            }
            Scheduler::Event => event(graph, wires, order, options),
            _ => pinned(graph, wires, order, options),
        }
    }
}

impl Workers {
    /// The threads.
    pub fn plans(&self, operators: &[OperatorPlan]) -> Vec<WorkerPlan> {
        let names = |worker: usize| {
            let may = operators.iter().filter(move |operator| self.shared || operator.part == worker);
            may.map(|operator| operator.name.clone()).collect()
        };
        let plan = |(number, &core)| WorkerPlan { name: name(number), core, operators: names(number) };
        self.cores.iter().enumerate().map(plan).collect()
    }

    pub fn pools(&self) -> Vec<PoolPlan> {
        if self.shared {
            return vec![PoolPlan { name: "event".to_string(), workers: (0..self.cores.len()).collect() }];
        }
        (0..self.cores.len()).map(|number| PoolPlan { name: name(number), workers: vec![number] }).collect()
    }

    pub fn parts(&self, operators: &[OperatorPlan]) -> Vec<PartPlan> {
        if !self.shared {
            return (0..self.cores.len()).map(|pool| PartPlan { name: name(pool), pool }).collect();
        }
        let mut parts: Vec<PartPlan> = Vec::new();
        for operator in operators.iter() {
            if operator.part == parts.len() {
                parts.push(PartPlan { name: operator.name.clone(), pool: 0 });
            }
        }
        parts
    }
}

/// Of a worker, and of its thread.
fn name(worker: usize) -> String {
    format!("onbeat-w{worker}")
}

fn check_cores(options: &Options) -> Result<(), GraphError> {
    if options.cores.is_empty() && options.house_keeping.is_empty() {
        return Ok(());
    }
    let differs = |&workers: &usize| !options.cores.is_empty() && workers != options.cores.len();
    if let Some(workers) = options.workers.filter(differs) {
        return Err(GraphError::Cores(format!(
            "{workers} workers on {} cores: there is one worker on each core; name the cores or the number, not both",
            options.cores.len()
        )));
    }
    let online = CoreSet::online().map_err(|error| GraphError::Cores(error.to_string()))?;
    for &core in &options.house_keeping {
        if !online.contains(core) {
            return Err(GraphError::Cores(format!(
                "there is no core {core} for house-keeping on this machine: it has {online}"
            )));
        }
    }
    for (at, &core) in options.cores.iter().enumerate() {
        if !online.contains(core) {
            return Err(GraphError::Cores(format!(
                "there is no core {core} on this machine: it has {online}"
            )));
        }
        if options.cores[..at].contains(&core) {
            return Err(GraphError::Cores(format!(
                "core {core} is named twice: there is one worker on each core"
            )));
        }
    }
    Ok(())
}

/// The cores that workers get, one each; as many as there are workers.
fn cores(options: &Options) -> Result<Vec<Option<usize>>, GraphError> {
    Ok(match (options.workers, options.cores.as_slice()) {
        (Some(0), _) => {
            return Err(GraphError::Cores("`workers` is 0: there must be one at least".to_string()));
        }
        (Some(workers), []) => vec![None; workers],
        (None, []) => {
            let allowed = CoreSet::allowed().map_err(|error| GraphError::Cores(error.to_string()))?;
            let free: Vec<_> =
                allowed.iter().filter(|core| !options.house_keeping.contains(core)).map(Some).collect();
            if free.is_empty() {
                return Err(GraphError::Cores(format!(
                    "no core is left for workers: this process may use {allowed}, and all of them are for house-keeping"
                )));
            }
            free
        }
        (_, cores) => cores.iter().copied().map(Some).collect(),
    })
}

/// What is said when there are fewer workers than were asked for.
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

fn pinned(graph: &Graph, wires: &[Wire], order: &[usize], options: &Options) -> Result<Workers, GraphError> {
    let cores = cores(options)?;
    let part_of = split(&costs(graph, wires, order, options, cores.len()), cores.len());
    let used = part_of.last().map_or(1, |&last| last + 1);
    let obtained = fewer(cores.len(), used, options);
    Ok(Workers { cores: cores.into_iter().take(used).collect(), part_of, shared: false, obtained })
}

/// Every operator is a part of its own while they are few; one worker shares with nobody, so it gets all of them in one.
fn event(graph: &Graph, wires: &[Wire], order: &[usize], options: &Options) -> Result<Workers, GraphError> {
    let cores = cores(options)?;
    if cores.len() > PARTS {
        let cores = cores.len();
        return Err(GraphError::Cores(format!("{cores} workers in one pool: there may be {PARTS} at most")));
    }
    let used = cores.len().min(order.len()).max(1);
    let part_of = match used {
        1 => vec![0; order.len()],
        _ if order.len() <= PARTS => (0..order.len()).collect(),
        _ => split(&costs(graph, wires, order, options, PARTS), PARTS),
    };
    let obtained = fewer(cores.len(), used, options);
    Ok(Workers { cores: cores.into_iter().take(used).collect(), part_of, shared: used > 1, obtained })
}

/// By operator number. What is measured goes before what is stated, and that before what is assumed: 1 µs, and nothing for
/// sources and sinks. With fewer operators than workers, sources and sinks count as well.
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
