//! The case that `doctor` and `tune` examine: this machine or files of another one, and a pipeline.

use crate::arguments::host::CaseArguments;
use crate::error::CommandError;
use onbeat::{Idle, Overrides, Plan, Registry};
use onbeat_host::{Facts, MachineCase, PipelineNeeds, Root, WorkerNeeds};
use onbeat_os::CoreSet;
use std::path::Path;

/// Returns the root of the machine's files.
pub fn root(arguments: &CaseArguments) -> Result<Root, CommandError> {
    let folder = arguments.root.as_deref().unwrap_or(Path::new("/"));
    if arguments.root.is_none() && !folder.join("proc").join("self").exists() {
        return Err(CommandError::new("/proc is not mounted: nothing is known of this machine").help(
            "mount -t proc proc /proc and mount -t sysfs sysfs /sys, or --root FOLDER with copies of both",
        ));
    }
    if !folder.join("proc").is_dir() {
        return Err(CommandError::new(format!("--root {}: it has no folder `proc`", folder.display()))
            .help("name a folder with copies of /proc and /sys"));
    }
    Ok(Root::new(folder))
}

/// Reads the machine's files and the pipeline.
pub fn case(
    arguments: &CaseArguments,
    root: &Root,
    registry: &Registry,
) -> Result<MachineCase, CommandError> {
    let pipeline =
        arguments.pipeline.as_deref().map(|path| pipeline(path, arguments, registry)).transpose()?;
    let mut case = MachineCase { facts: Facts::read(root), pipeline, ..MachineCase::default() };
    case.choose_cpus(arguments.cpus.as_ref());
    let online = case.online();
    let missing = case.cpus.without(&online);
    if arguments.cpus.is_some() && !missing.is_empty() {
        return Err(CommandError::new(format!("--cpus {}: {missing} are not online", case.cpus))
            .help(format!("choose from {online}")));
    }
    Ok(case)
}

fn pipeline(
    path: &Path,
    arguments: &CaseArguments,
    registry: &Registry,
) -> Result<PipelineNeeds, CommandError> {
    let mut overrides = Overrides::default();
    for setting in &arguments.set {
        overrides.set(setting);
    }
    if let Some(cores) = &arguments.house_keeping {
        overrides.flag("--house-keeping", "house_keeping", cores);
    }
    let read = onbeat::Pipeline::read(path, registry, &overrides)?;
    let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (shortest_ns, shortest_of) = shortest(&read);
    Ok(PipelineNeeds {
        name: read.name().to_owned(),
        file: file.to_string_lossy().into_owned(),
        workers: workers(&read.plan),
        house: CoreSet::from_cores(read.options.house_keeping.iter().copied()).unwrap_or_default(),
        lock_memory: read.options.lock_memory,
        dma_latency_us: read.options.dma_latency_us,
        shortest_ns,
        shortest_of,
    })
}

fn workers(plan: &Plan) -> Vec<WorkerNeeds> {
    let one = |worker: &onbeat::WorkerPlan| {
        let pool = plan.pools.get(worker.pool);
        let idle = pool.map(|pool| pool.idle);
        WorkerNeeds {
            name: worker.name.clone(),
            core: worker.core,
            policy: pool.and_then(|pool| pool.policy),
            spins: matches!(idle, Some(Idle::Spin | Idle::SpinFor(_))),
            never_sleeps: idle == Some(Idle::Spin),
        }
    };
    plan.workers.iter().map(one).collect()
}

/// Returns the shortest time limit of the pipeline, and its description.
fn shortest(pipeline: &onbeat::Pipeline) -> (Option<u64>, String) {
    let plan = &pipeline.plan;
    let deadlines = plan
        .operators
        .iter()
        .filter_map(|operator| Some((operator.deadline_ns?, format!("the deadline of `{}`", operator.name))));
    let limits = plan
        .paths
        .iter()
        .filter_map(|path| Some((path.max_latency_ns?, format!("the limit of {} → {}", path.from, path.to))));
    let rates = plan
        .operators
        .iter()
        .filter_map(|operator| Some((operator.period_ns?, format!("the period of `{}`", operator.name))));
    let periods = plan.pools.iter().filter_map(|pool| match pool.policy? {
        onbeat_os::Policy::Deadline { period_ns, .. } => {
            Some((period_ns, format!("the period of pool `{}`", pool.name)))
        }
        _ => None,
    });
    let least = deadlines.chain(limits).chain(rates).chain(periods).min_by_key(|(ns, _)| *ns);
    least.map_or((None, String::new()), |(ns, what)| (Some(ns), what))
}
