//! The measured cases: a job on one side.

use super::peers::JobPeer;
use super::settings::Job;
use onbeat_runtime::Scheduler;

/// A job as one side does it, on a number of cores.
#[derive(Debug, Clone)]
pub struct JobCase {
    /// The job.
    pub job: Job,
    /// The side.
    pub side: JobSide,
    /// Number of cores.
    pub cores: usize,
}

/// What does a job.
#[derive(Debug, Clone)]
pub enum JobSide {
    /// A pipeline under a scheduler.
    Onbeat(Scheduler),
    /// The same kernels in a loop, without an engine.
    Bare,
    /// Another program.
    Peer(JobPeer),
}

impl JobCase {
    /// Name in figures: "fm.onbeat.event.n2", "fm.peer.gnuradio.best.n1".
    pub(super) fn name(&self) -> String {
        let side = match &self.side {
            JobSide::Onbeat(scheduler) => format!("onbeat.{}", scheduler_name(*scheduler)),
            JobSide::Bare => "bare".to_owned(),
            JobSide::Peer(peer) => format!("peer.{}.{}", peer.peer, peer.variant),
        };
        format!("{}.{side}.n{}", self.job.name(), self.cores)
    }

    /// Name of the side for people: "onbeat event", "gnuradio 3.10.5 best".
    #[must_use]
    pub fn label(&self) -> String {
        match &self.side {
            JobSide::Onbeat(scheduler) => format!("onbeat {}", scheduler_name(*scheduler)),
            JobSide::Bare => "bare".to_owned(),
            JobSide::Peer(peer) => format!("{} {} {}", peer.peer, peer.version, peer.variant),
        }
    }
}

/// Schedulers to measure on a number of cores.
pub(super) fn schedulers(cores: usize) -> &'static [Scheduler] {
    if cores == 1 { &[Scheduler::Greedy] } else { &[Scheduler::Event, Scheduler::Replicated] }
}

pub(super) fn scheduler_name(scheduler: Scheduler) -> &'static str {
    match scheduler {
        Scheduler::Greedy => "greedy",
        Scheduler::Event => "event",
        Scheduler::Pinned => "pinned",
        Scheduler::Replicated => "replicated",
        Scheduler::Custom => "custom",
    }
}
