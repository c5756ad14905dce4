//! Response-time analysis: bounds for the lateness at sinks, and admission of threads. It uses measured costs
//! and needs no further run.
//!
//! # Method
//!
//! The operators of one thread that follow from one source are a *stage*: the work that comes with each
//! message of that source. A message goes from stage to stage. Its greatest lateness at the end of one stage
//! is its *jitter* at the next. In a stage it may have to wait for all other stages of that thread, and for
//! threads that go first on that core. The bound holds for every order of these: steps of one thread do not
//! overlap, and every message that may come meanwhile is counted.
//!
//! This is the response-time analysis of Joseph and Pandya (1986, *Finding Response Times in a Real-Time
//! System*) with the busy period of Lehoczky (1990) and the jitter of Tindell and Clark (1994, *Holistic
//! schedulability analysis for distributed hard real-time systems*). A thread under `SCHED_DEADLINE` is a
//! server that gives its run time once in each period (Shin and Lee 2003, *Periodic resource model*, in its
//! linear form).
//!
//! The cost of a step is the longest step of the measured run. It was measured on the clock, so it includes
//! the time that the host took. The longest wake-up is measured too. Noise of the host that was measured
//! separately ([`Host`]) is added.
//!
//! | file | contents |
//! |---|---|
//! | `bound` | the arithmetic |
//! | `stages` | stages of a plan, from a record |
//!
//! # Limits of the method
//!
//! A bound from measured maxima is not a proof: it fails if a step takes longer than the longest measured
//! one, or if the host takes time between a wake-up and the step, which only [`Host`] tells of. Threads under
//! a normal policy share their core with other threads; their bound holds while no other thread wants the
//! core. Sources that keep no time have no bound.

mod bound;
mod stages;

pub use bound::{LoadStream, Supply, response_ns};

use crate::Plan;
use onbeat_os::Policy;
use onbeat_trace::Record;
use serde::Serialize;
use stages::Stages;

/// Time that the host takes from every thread, in addition to that within measured steps and wake-ups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Host {
    /// The longest single interruption, in nanoseconds.
    pub longest_ns: u64,
    /// Share of a core that interruptions take: 0.01 for a hundredth.
    pub share: f64,
}

/// Result of the analysis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Responses {
    /// Admission of each worker of the plan.
    pub threads: Vec<Admission>,
    /// Bound of each path of the plan.
    pub paths: Vec<PathBound>,
}

/// Whether a worker has the time that it needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Admission {
    /// Name of the worker.
    pub worker: String,
    /// Its core, if the plan names one.
    pub core: Option<usize>,
    /// Mean share of a core that its operators took: 0.5 for half. `None` if a source keeps no time.
    pub mean: Option<f64>,
    /// Share of a core if each step took as long as the longest. `None` if a source keeps no time.
    pub most: Option<f64>,
    /// Share of a core that is available to it and to threads that go first on its core.
    pub there: f64,
    /// Reason why it is not admitted; `None` if it is.
    pub refused: Option<String>,
}

/// Bound for the latency of a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathBound {
    /// The source.
    pub from: String,
    /// The sink.
    pub to: String,
    /// Longest time from the due time to the end of the last step, in nanoseconds.
    pub worst_ns: Option<u64>,
    /// Reason why there is no bound, or the condition under which it holds.
    pub why: Option<String>,
    /// Latency limit of the path, in nanoseconds.
    pub max_latency_ns: Option<u64>,
}

impl Responses {
    /// Texts for workers that are not admitted, and for paths whose bound is above their limit.
    pub fn refusals(&self) -> impl Iterator<Item = String> {
        let threads = self.threads.iter().filter_map(|thread| {
            Some(format!("{} is not admitted: {}", thread.worker, thread.refused.as_ref()?))
        });
        let paths = self.paths.iter().filter_map(|path| {
            let (worst_ns, limit_ns) = (path.worst_ns?, path.max_latency_ns?);
            let us = |ns: u64| ns as f64 / 1e3;
            (worst_ns > limit_ns).then(|| {
                format!(
                    "{} → {} may take {:.1} us, and its limit is {:.1} us: shorter steps, a longer period, or a core of its own",
                    path.from,
                    path.to,
                    us(worst_ns),
                    us(limit_ns)
                )
            })
        });
        threads.chain(paths)
    }
}

/// Analyses a plan with the costs from `record`, the record of a run of the same operators.
#[must_use]
pub fn responses(plan: &Plan, record: &Record, host: &Host) -> Responses {
    let stages = Stages::new(plan, record, host);
    let threads = (0..plan.workers.len()).map(|worker| admission(plan, &stages, worker)).collect();
    let paths = plan
        .paths
        .iter()
        .map(|path| {
            let (worst_ns, why) = match stages.worst_ns(&path.from, &path.to) {
                Ok(worst_ns) => (Some(worst_ns), stages.caveat(plan, &path.from)),
                Err(why) => (None, Some(why)),
            };
            PathBound {
                from: path.from.clone(),
                to: path.to.clone(),
                worst_ns,
                why,
                max_latency_ns: path.max_latency_ns,
            }
        })
        .collect();
    Responses { threads, paths }
}

fn admission(plan: &Plan, stages: &Stages, worker: usize) -> Admission {
    let policy = plan.pools[plan.workers[worker].pool].policy;
    let there = stages.supply(plan, worker).rate;
    let (mean, most) = (stages.mean(worker), stages.most(worker));
    let percent = |share: f64| share * 100.0;
    let refused = match (mean, most, stages.before(plan, worker)) {
        (None, ..) => None,
        (Some(mean), _, _) if mean >= there => Some(format!(
            "its operators need {:.1} % of a core in the mean, and {:.1} % is there{}",
            percent(mean),
            percent(there),
            match policy {
                Some(Policy::Deadline { .. }) => ": a longer run time, or less work",
                _ => ": less work, longer periods, or more workers",
            }
        )),
        (_, Some(most), Some(before)) if most + before >= there && policy.is_some() => Some(format!(
            "with steps as long as the longest, it needs {:.1} % of its core and those that go first {:.1} %; {:.1} % is there",
            percent(most),
            percent(before),
            percent(there)
        )),
        _ => None,
    };
    Admission {
        worker: plan.workers[worker].name.clone(),
        core: plan.workers[worker].core,
        mean,
        most,
        there,
        refused,
    }
}
