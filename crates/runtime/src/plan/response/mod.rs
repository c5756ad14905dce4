//! How late a message may be at a sink, and whether threads are admitted: what follows from measured costs, without a run.
//!
//! # Method
//!
//! The operators of one thread that follow from one source are a *stage*: work that comes with each message of that source. A message
//! goes from stage to stage; how late it may be at the end of one is how late it may come to the next (its *jitter*). In a stage it
//! may have to wait for all other stages of that thread and for those of threads that go first on that core: whichever order they
//! take turns in, the bound holds, since steps of one thread end before others begin and every message is counted that may come
//! meanwhile. This is the response-time analysis of Joseph and Pandya (1986, *Finding Response Times in a Real-Time System*) with the
//! busy period of Lehoczky (1990) and the jitter of Tindell and Clark (1994, *Holistic schedulability analysis for distributed hard
//! real-time systems*). A thread under `SCHED_DEADLINE` is a server that gives its run time once in each period (Shin and Lee 2003,
//! *Periodic resource model*, in its linear form).
//!
//! What a step costs at most is what it did cost at most in the run: measured on the clock, so what the host took of it is in it. The
//! longest wake-up is measured too. Noise of a host that was measured apart ([`Host`]) comes on top.
//!
//! | file | what |
//! |---|---|
//! | `bound` | the arithmetic |
//! | `stages` | from a plan and a record to stages |
//!
//! # What it is not
//!
//! A bound by measured maxima is no proof: a step that can take longer than it ever did makes it wrong. Threads under a normal policy
//! share their core with whoever comes; their bound holds while nobody comes. Sources that keep no time have none.

mod bound;
mod stages;

pub use bound::{Stream, Supply, response_ns};

use crate::Plan;
use onbeat_os::Policy;
use onbeat_trace::Record;
use serde::Serialize;
use stages::Stages;

/// What the host takes of every thread, beside what steps and wake-ups have in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Host {
    /// The longest single interruption, in nanoseconds.
    pub longest_ns: u64,
    /// Share of a core that interruptions take: 0.01 for a hundredth.
    pub share: f64,
}

/// What was worked out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Responses {
    /// By worker of the plan.
    pub threads: Vec<Admission>,
    /// By path of the plan.
    pub paths: Vec<PathBound>,
}

/// Whether a worker has the time that it needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Admission {
    /// Its name.
    pub worker: String,
    /// Its core, if the plan names one.
    pub core: Option<usize>,
    /// Share of a core that its operators took in the mean: 0.5 for half. `None` where a source keeps no time.
    pub mean: Option<f64>,
    /// The same if each step took what its longest did.
    pub most: Option<f64>,
    /// What there is for it and for those that go before it on its core.
    pub there: f64,
    /// Why it is not admitted.
    pub refused: Option<String>,
}

/// How long a message may take at most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathBound {
    /// The source.
    pub from: String,
    /// The sink.
    pub to: String,
    /// From the due time to the end of the last step, in nanoseconds.
    pub worst_ns: Option<u64>,
    /// Why there is no bound, or what it does not count.
    pub why: Option<String>,
    /// The limit of the path.
    pub max_latency_ns: Option<u64>,
}

impl Responses {
    /// What does not fit: workers that are not admitted, and paths whose bound is above their limit.
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

/// Works it out for a plan, by what the record of a run of the same operators says of their costs.
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
