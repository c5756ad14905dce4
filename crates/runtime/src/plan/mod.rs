//! [`Plan`]: placement of operators on workers and edges on queues, as plain data that is decided once.

mod chains;
mod dot;
mod error;
pub(crate) mod frames;
mod guards;
mod order;
mod paths;
mod recorded;
pub(crate) mod replicate;
mod resolve;
pub mod response;
mod rows;
mod sizes;
mod split;
pub(crate) mod when;
mod workers;

pub(crate) use chains::CHAIN_MOST;
pub use error::GraphError;
pub(crate) use recorded::recorded_parts;
pub use rows::{EdgePlan, OperatorPlan, PartPlan, PathPlan, PoolPlan, StorePlan, WorkerPlan};

use crate::base::options::{Options, Share};
use crate::graph::{Graph, Node};
use crate::operator::when::When;
use onbeat_os::CoreSet;
use onbeat_trace::record::{ClockKind, Obtained, Scheduler, WhenFull};
use replicate::{Expanded, Recipe};
pub(crate) use resolve::{Wire, wires};
use serde::Serialize;
use std::collections::HashMap;
use workers::Workers;

/// Placement of operators and edges. It is plain data: print it, compare it, test it without threads.
///
/// ```
/// # use onbeat_runtime::{Graph, Options};
/// let mut graph = Graph::new("tiny");
/// let ones = graph.source("ones", || Some(1u8));
/// let end = graph.sink("end", |_: u8| ());
/// graph.connect(ones, |s| &s.out, end, |e| &e.input);
/// let plan = graph.plan(&Options::default())?;
/// assert_eq!(plan.workers[0].operators, ["ones", "end"]);
/// assert_eq!(plan.edges[0].from, "ones.out");
/// # Ok::<(), onbeat_runtime::GraphError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the graph.
    pub name: String,
    /// Scheduler that made the plan.
    pub scheduler: Scheduler,
    /// Threads that step operators.
    pub workers: Vec<WorkerPlan>,
    /// Pools: workers that share operators.
    pub pools: Vec<PoolPlan>,
    /// Parts: operators that one worker at a time steps.
    pub parts: Vec<PartPlan>,
    /// Operators in their order down the graph.
    pub operators: Vec<OperatorPlan>,
    /// Edges, in the order in which they were connected.
    pub edges: Vec<EdgePlan>,
    /// Chunk stores.
    pub stores: Vec<StorePlan>,
    /// Paths whose latency is measured.
    pub paths: Vec<PathPlan>,
    /// Chains: operators, by place in `operators`, that change chunks in place and have one step together.
    pub runs: Vec<Vec<usize>>,
    /// The same chains with the sources and sinks that have a part in the step.
    /// One operator between its ends is enough here.
    pub passes: Vec<Vec<usize>>,
    /// The `passes` that several workers of a pool may run as waves.
    /// The run does so if it measures that waves are faster.
    pub waves: Vec<Vec<usize>>,
    /// Requested settings, and the values that were obtained.
    pub obtained: Vec<Obtained>,
    /// Notes on settings that are valid and may be a mistake.
    pub notes: Vec<String>,
    /// Options that the plan was made with.
    pub options: Options,
    /// Place in the graph, by operator number.
    #[serde(skip)]
    pub(crate) order: Vec<usize>,
    /// Ends of each edge, by edge number.
    #[serde(skip)]
    pub(crate) wires: Vec<Wire>,
    /// Change of the graph before the run: copies of replicated operators. `None` if nothing is replicated.
    #[serde(skip)]
    pub(crate) recipe: Option<Recipe>,
}

impl Graph {
    /// Checks the graph and places its operators and edges.
    ///
    /// # Errors
    /// See [`GraphError`].
    pub fn plan(&self, options: &Options) -> Result<Plan, GraphError> {
        Plan::new(self, options)
    }
}

impl Plan {
    fn new(graph: &Graph, options: &Options) -> Result<Self, GraphError> {
        match options.scheduler {
            Scheduler::Replicated => Self::replicated(graph, options),
            Scheduler::Event => Self::event(graph, options),
            _ => Self::of(graph, options, None),
        }
    }

    /// Makes a plan for workers that share all parts. Stretches whose operators can continue a stream
    /// anywhere have a copy per worker; the run uses the copies if it measures that they are faster.
    fn event(graph: &Graph, options: &Options) -> Result<Self, GraphError> {
        let single = Self::of(graph, options, None)?;
        let cores = workers::for_replicas(options)?;
        // Virtual time stands still while there is work, so nothing can be measured.
        if cores < 2 || options.clock == ClockKind::Manual {
            return Ok(single);
        }
        let wires = resolve::wires(graph)?;
        let Plan { order, edges, .. } = &single;
        let (mut recipe, notes) = replicate::find(graph, &wires, order, edges, (cores, Scheduler::Event));
        recipe.is_tried = options.share == Share::Heavy;
        let copies = recipe.stretches.len() * cores;
        if copies == 0 || single.parts.len() + copies > workers::PARTS {
            return Ok(single);
        }
        let expanded = replicate::expand(graph, &wires, &recipe);
        let mut plan = Self::of(&expanded.graph, options, Some(&expanded))?;
        plan.recipe = Some(recipe);
        plan.obtained
            .extend(single.obtained.into_iter().filter(|setting| setting.what.starts_with("quantum")));
        plan.notes.splice(0..0, notes);
        plan.check_strict()?;
        Ok(plan)
    }

    /// Makes a plan with one copy of each stretch of stateless operators per worker.
    fn replicated(graph: &Graph, options: &Options) -> Result<Self, GraphError> {
        let cores = workers::for_replicas(options)?;
        // The plan for one worker comes first: it finds all mistakes in the graph itself.
        let one = Options {
            scheduler: Scheduler::Greedy,
            cores: Vec::new(),
            workers: None,
            strict: false,
            ..options.clone()
        };
        let single = Self::of(graph, &one, None)?;
        let wires = resolve::wires(graph)?;
        let (recipe, mut notes) =
            replicate::find(graph, &wires, &single.order, &single.edges, (cores, Scheduler::Replicated));
        let mut plan = if recipe.stretches.is_empty() || cores < 2 {
            let nothing = Recipe { stretches: Vec::new(), ..recipe };
            let expanded = replicate::expand(graph, &wires, &nothing);
            let mut plan = Self::of(graph, options, Some(&expanded))?;
            if cores == 1 {
                // One worker was requested: there is nothing to report.
                notes.clear();
            } else {
                let why = "no operator says that it has no state (`replica`) and can have copies";
                let refused = Obtained {
                    what: "replicated operators".to_string(),
                    asked: format!("on {cores} workers"),
                    obtained: "none, on one worker".to_string(),
                    reason: Some(why.to_string()),
                };
                plan.obtained.insert(0, refused);
            }
            plan
        } else {
            let expanded = replicate::expand(graph, &wires, &recipe);
            let mut plan = Self::of(&expanded.graph, options, Some(&expanded))?;
            plan.recipe = Some(recipe);
            plan
        };
        plan.obtained.extend(single.obtained);
        plan.notes.splice(0..0, notes);
        plan.check_strict()?;
        Ok(plan)
    }

    /// Makes a plan. With `lanes`, which were made of the graph, it has been checked before.
    fn of(graph: &Graph, options: &Options, lanes: Option<&Expanded>) -> Result<Self, GraphError> {
        let Options { scale, clock, .. } = *options;
        if !(1e-6..=1e6).contains(&scale) || clock == ClockKind::Manual && scale != 1.0 {
            return Err(GraphError::Scale(scale));
        }
        if lanes.is_none() {
            resolve::check_names(graph)?;
        }
        let wires = resolve::wires(graph)?;
        let order = order::order(graph, &wires)?;
        let workers = Workers::new(graph, &wires, &order, options, lanes)?;
        let frames = frames::FrameShapes::find(graph, &wires, &order).edges;
        let sizes = sizes::Sizes::new(graph, &wires, &order, &workers.part_of, &frames, options)?;
        if lanes.is_none() {
            sizes.check_initial(graph, &wires)?;
            when::check(graph, &wires, &sizes.edges)?;
            resolve::check_restarts(graph)?;
        }
        let wires = numbered(wires, &order);
        let operators = operator_rows(graph, &order, &wires, &workers, &sizes, options);
        let edges = edge_rows(graph, &order, &wires, (&sizes, &frames), &operators);
        let mut plan = Plan {
            name: graph.name.clone(),
            scheduler: options.scheduler,
            workers: workers.plans(&operators),
            pools: workers.pools(),
            parts: workers.parts(&operators),
            notes: workers.notes.clone(),
            operators,
            edges,
            stores: sizes.stores,
            paths: Vec::new(),
            runs: Vec::new(),
            passes: Vec::new(),
            waves: Vec::new(),
            obtained: workers.obtained.into_iter().chain(sizes.obtained).collect(),
            options: options.clone(),
            order,
            wires,
            recipe: None,
        };
        plan.notes.extend(guards::check(&plan.pools, &plan.workers, options)?);
        plan.paths = plan.find_paths(graph)?;
        (plan.runs, plan.passes) = plan.find_chains(graph);
        plan.waves = workers.waves.into_iter().filter(|wave| plan.passes.contains(wave)).collect();
        if lanes.is_none() {
            plan.check_strict()?;
        }
        Ok(plan)
    }

    /// Under `strict`, refuses a plan that lacks a requested setting.
    fn check_strict(&self) -> Result<(), GraphError> {
        if self.options.strict
            && let Some(missing) = self.obtained.iter().find(|setting| setting.asked != setting.obtained)
        {
            let reason = missing.reason.as_deref().unwrap_or("not available");
            let Obtained { what, asked, obtained, .. } = missing;
            return Err(GraphError::Strict(format!(
                "{what}: {asked} was asked for, {obtained} obtained: {reason}"
            )));
        }
        Ok(())
    }

    /// Number of each source, by operator, as stamps have it. Copies of one source share their number.
    pub(crate) fn source_numbers(&self) -> Vec<usize> {
        let mut sources: HashMap<&str, usize> = HashMap::new();
        let mut numbers = Vec::with_capacity(self.operators.len());
        for operator in &self.operators {
            let next = sources.len();
            numbers.push(if operator.source { *sources.entry(&operator.name).or_insert(next) } else { next });
        }
        numbers
    }

    /// Whether a message or step can be a miss: a path has a latency limit or an operator a deadline.
    pub(crate) fn has_limits(&self) -> bool {
        self.paths.iter().any(|path| path.max_latency_ns.is_some())
            || self.operators.iter().any(|operator| operator.deadline_ns.is_some())
    }

    /// Returns the cores for the threads that step no operators: those that were asked for, else those of the
    /// process without a worker, if each worker has a core. Empty for all of the process.
    #[must_use]
    pub fn house_keeping(&self) -> Vec<usize> {
        let busy: Option<Vec<usize>> = self.workers.iter().map(|worker| worker.core).collect();
        match (busy, CoreSet::allowed()) {
            (Some(busy), Ok(allowed)) if self.options.house_keeping.is_empty() => {
                allowed.iter().filter(|core| !busy.contains(core)).collect()
            }
            _ => self.options.house_keeping.clone(),
        }
    }

    /// Whether misses of a run under this plan are explained: see [`Options::explain`].
    #[must_use]
    pub fn is_explained(&self) -> bool {
        recorded_parts(self).contains(&true)
    }

    /// Workers of a pool as text: "onbeat-w0 on core 1".
    fn workers_of(&self, pool: &PoolPlan) -> Vec<String> {
        let name = |&worker: &usize| {
            let WorkerPlan { name, core, .. } = &self.workers[worker];
            core.map_or(name.clone(), |core| format!("{name} on core {core}"))
        };
        pool.workers.iter().map(name).collect()
    }
}

/// Period of an operator: the shorter of its own and that of its conditions.
/// `quantum_bytes` is the quantum of its outgoing edges.
fn period_ns(node: &Node, options: &Options, quantum_bytes: Option<u32>) -> Option<u64> {
    let own_ns = node.operator.rate(options.pace).and_then(|rate| rate.period_ns(quantum_bytes));
    node.when.iter().filter_map(When::tick_ns).chain(own_ns).min()
}

/// Edges by operator number, made of edges by place.
fn numbered(wires: Vec<Wire>, order: &[usize]) -> Vec<Wire> {
    let mut number_of = vec![0; order.len()];
    for (number, &place) in order.iter().enumerate() {
        number_of[place] = number;
    }
    wires
        .into_iter()
        .map(|wire| Wire { from: number_of[wire.from], to: number_of[wire.to], ..wire })
        .collect()
}

/// Rows of the operators, by number. `wires` has operator numbers.
fn operator_rows(
    graph: &Graph,
    order: &[usize],
    wires: &[Wire],
    workers: &Workers,
    sizes: &sizes::Sizes,
    options: &Options,
) -> Vec<OperatorPlan> {
    let mut has_input = vec![false; order.len()];
    for wire in wires.iter().filter(|wire| wire.required) {
        has_input[wire.to] = true;
    }
    let sent = |number| {
        let edges = wires.iter().zip(&sizes.edges).filter(move |(wire, _)| wire.from == number);
        edges.map(|(_, size)| size.quantum as u32).min()
    };
    let row = |(number, &place): (usize, &usize)| {
        let node = &graph.operators[place];
        OperatorPlan {
            name: node.name.clone(),
            kind: node.kind.clone(),
            part: workers.part_of[number],
            source: !has_input[number],
            period_ns: period_ns(node, options, sent(number)),
            deadline_ns: node.deadline_ns,
            budget_ns: node.budget_ns,
            on_miss: node.on_miss,
            on_error: node.on_error,
        }
    };
    order.iter().enumerate().map(row).collect()
}

/// Rows of the edges. `wires` has operator numbers.
fn edge_rows(
    graph: &Graph,
    order: &[usize],
    wires: &[Wire],
    (sizes, frames): (&sizes::Sizes, &[Option<[u32; 3]>]),
    operators: &[OperatorPlan],
) -> Vec<EdgePlan> {
    wires
        .iter()
        .zip(&graph.edges)
        .zip(sizes.edges.iter().zip(frames))
        .map(|((wire, asked), (size, frame))| {
            let output = &graph.operators[order[wire.from]].ports.outputs[wire.out];
            let input = &graph.operators[order[wire.to]].ports.inputs[wire.input];
            EdgePlan {
                from: format!("{}.{}", operators[wire.from].name, output.name),
                to: format!("{}.{}", operators[wire.to].name, input.name),
                message: output.label.clone(),
                capacity: size.capacity,
                when_full: asked.when_full,
                quantum_bytes: output.sample_bytes.map(|_| size.quantum as u32),
                frame: *frame,
                queue: match asked.when_full {
                    _ if operators[wire.from].part == operators[wire.to].part => "ring",
                    WhenFull::DropOldest | WhenFull::Latest => "overwriting ring",
                    WhenFull::Wait | WhenFull::DropNewest | WhenFull::Error => "spsc ring",
                },
                initial: asked.initial.len(),
            }
        })
        .collect()
}
