//! Start of a run: from a plan to threads that step operators.
//!
//! The order of effects is fixed: chunk stores, parts, settings of the process, worker threads,
//! helper threads. The settings of each thread come last, because each thread applies its own.

mod helpers;
mod stores;
mod threads;

use super::bind::BoundParts;
use super::handle::RunFixtures;
use super::{Run, RunError, RunHandle, rights};
use crate::base::options::Options;
use crate::engine::control::board::Board;
use crate::engine::control::{Control, RunFault};
use crate::engine::limits::Limits;
use crate::graph::Graph;
use crate::operator::context::cores_beside;
use crate::plan::{Plan, replicate};
use helpers::{Helpers, attach_rings};
use onbeat_trace::{Evidence, NoEvidence, Record};
use std::sync::Arc;
use stores::Stores;
use threads::{Threads, distribute};

/// Address space that a run maps beyond its chunk stores: per worker, and for explanations. Measured with
/// some room to spare; most of it is never touched.
const WORKER_BYTES: u64 = 8 << 20;
const EXPLAINED_BYTES: u64 = 96 << 20;

/// Refuses a run that a limit on the address space would abort in the middle, where nothing can be put right.
fn check_address_space(plan: &Plan) -> Result<(), RunError> {
    let Some((limit, used)) = onbeat_os::memory::address_space() else { return Ok(()) };
    let explained = if plan.is_explained() { EXPLAINED_BYTES } else { 0 };
    let needed = used + WORKER_BYTES * (plan.workers.len() as u64 + 2) + explained;
    if needed <= limit {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let without = if explained > 0 { ", or run without explanations (explain = \"off\")" } else { "" };
    Err(RunError::Begin(format!(
        "the address space of this process is limited to {} MiB, and the run needs {}: raise the limit (ulimit -v){without}",
        mib(limit),
        mib(needed)
    )))
}

impl Graph {
    /// Plans and starts the graph. Returns while it runs.
    ///
    /// # Errors
    /// [`RunError::Graph`] if the graph cannot be run, [`RunError::Begin`] if threads or memory are missing.
    pub fn start(self, options: &Options) -> Result<Run, RunError> {
        let plan = self.plan(options)?;
        self.start_plan(plan)
    }

    /// Plans and starts the graph, and waits for its end.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(self, options: &Options) -> Result<Record, RunError> {
        self.start(options)?.wait()
    }

    /// Starts the graph under a plan that was made from it before. Otherwise as [`start`](Graph::start).
    ///
    /// # Errors
    /// [`RunError::Begin`].
    pub fn start_plan(self, plan: Plan) -> Result<Run, RunError> {
        self.start_explained(plan, Box::new(NoEvidence))
    }

    /// As [`start_plan`](Graph::start_plan), with evidence from the kernel by which misses are explained.
    /// [`Options::explain`](crate::Options::explain) says whether they are explained at all.
    ///
    /// # Errors
    /// [`RunError::Begin`].
    pub fn start_explained(self, plan: Plan, evidence: Box<dyn Evidence>) -> Result<Run, RunError> {
        let (name, config) = (self.name.clone(), self.config.clone());
        let (gates, events) = (self.gates.clone(), self.events.clone());
        let values = self.values.clone();
        let mut graph = match &plan.recipe {
            Some(recipe) => replicate::apply(self, recipe)?,
            None => self,
        };
        let limits = Limits::of(&plan);
        limits.bind(&mut graph, &plan);
        let Stores { seeds, mut obtained } = Stores::make(&plan)?;
        check_address_space(&plan)?;
        obtained.extend(rights::of_evidence(&plan, evidence.as_ref()));
        let started_unix_ns = onbeat_os::clock::realtime_unix_ns();
        let BoundParts { mut parts, team, seats, orders } = BoundParts::bind(graph, &plan);
        let rings = attach_rings(&plan, &mut parts);
        let plan = Arc::new(plan);
        let board = Board::new(plan.parts.len(), plan.operators.len(), plan.edges.len(), plan.paths.len());
        let control = Arc::new(Control::new(
            team,
            plan.workers.len(),
            orders,
            board,
            limits,
            cores_beside(plan.house_keeping()),
        ));
        control.values.begin(values);
        let pools = seats.iter().map(|(_, pool)| pool.as_ref().map(|(pool, _)| Arc::clone(pool))).collect();
        let starts = distribute(&plan, seats, parts, seeds);
        let mut process = rights::ProcessSettings::take(&plan, obtained)?;
        let mut threads = Threads::spawn(&plan, &control)?;
        threads.begin(starts);
        let Helpers { watch, recorder } = match Helpers::start(&plan, &control, pools, rings, evidence) {
            Ok(helpers) => helpers,
            Err(error) => {
                let text = format!("cannot start the thread that watches or explains: {error}");
                control.fail(RunFault::of_the_run(text.clone()));
                threads.handles.into_iter().for_each(|thread| drop(thread.join()));
                return Err(RunError::Begin(text));
            }
        };
        process.obtained.extend(threads.obtained());
        let obtained = plan.obtained.iter().chain(&process.obtained).cloned().collect();
        let fixtures = RunFixtures { gates, events, obtained };
        let handle = RunHandle::new(Arc::clone(&control), Arc::clone(&plan), fixtures);
        let threads = threads.handles;
        Ok(Run {
            name,
            config,
            plan,
            threads,
            control,
            handle,
            started_unix_ns,
            watch,
            process,
            service: None,
            recorder,
        })
    }
}
