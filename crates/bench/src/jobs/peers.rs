//! The same jobs in other programs, by the script of `peers/`: each measurement is a separate process.

use super::case::{JobCase, JobSide};
use super::kind::JobInput;
use super::ours::remove;
use super::settings::{Job, JobsSettings};
use crate::BenchError;
use crate::script::{PATIENCE, ask, children_cpu_ns};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Entry script of `peers/`.
const SCRIPT: &str = "jobs.sh";

/// Slowest rate that is waited for, in samples per second.
const SLOWEST: f64 = 100e3;

/// A peer with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPeer {
    /// Name: "gnuradio".
    pub peer: String,
    /// Version.
    pub version: String,
    /// Name of the settings: "default".
    pub variant: String,
    /// Description of the settings.
    pub how: String,
    script: PathBuf,
}

/// Figures of one run of a peer.
pub(super) struct JobPeerRun {
    /// The result's path and the seconds of the processing, or the reason why there are none.
    pub done: Result<(PathBuf, f64), String>,
    /// CPU time of all its threads.
    pub cpu_ns: u64,
}

/// A line of the script's list.
#[derive(Deserialize)]
#[serde(untagged)]
enum ListedPeer {
    Missing {
        peer: String,
        missing: String,
        /// The jobs that it could do.
        jobs: Vec<String>,
    },
    There {
        peer: String,
        version: String,
        variant: String,
        how: String,
        jobs: Vec<String>,
        /// Numbers of cores that it supports.
        cores: Vec<usize>,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JobAnswer {
    Done { samples: f64, seconds: f64 },
    Refused { error: String },
}

/// Returns the cases of the installed peers for these jobs, and notes about missing ones.
pub(super) fn find(
    folder: &Path,
    settings: &JobsSettings,
    jobs: &[Job],
) -> Result<(Vec<JobCase>, Vec<String>), BenchError> {
    let script = folder.join(SCRIPT);
    if !script.is_file() {
        return Err(BenchError::Settings(format!(
            "peers: {} does not exist: give the folder `peers` of the project: --peers=DIR",
            script.display()
        )));
    }
    let said = ask(Command::new("sh").arg(&script).arg("list"), PATIENCE);
    let text = said.map_err(|why| BenchError::Settings(format!("peers: {}: {why}", script.display())))?;
    let (mut cases, mut notes) = (Vec::new(), Vec::new());
    let wanted = |names: &[String]| -> Vec<Job> {
        jobs.iter().copied().filter(|job| names.iter().any(|name| name == job.name())).collect()
    };
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(ListedPeer::Missing { peer, missing, jobs }) => {
                if !wanted(&jobs).is_empty() {
                    notes.push(format!("{peer}: left out: {missing}"));
                }
            }
            Ok(ListedPeer::There { peer, version, variant, how, jobs, cores }) => {
                let peer = JobPeer { peer, version, variant, how, script: script.clone() };
                for job in wanted(&jobs) {
                    for &cores in settings.cores.iter().filter(|count| cores.contains(count)) {
                        cases.push(JobCase { job, side: JobSide::Peer(peer.clone()), cores });
                    }
                }
            }
            Err(_) => notes.push(format!("{}: unexpected output `{line}`", script.display())),
        }
    }
    Ok((cases, notes))
}

impl JobPeer {
    /// Does a job once.
    pub(super) fn run(&self, job: Job, input: &JobInput, on: &[usize]) -> JobPeerRun {
        let before_ns = children_cpu_ns();
        let done = self.try_run(job, input, on);
        JobPeerRun { done, cpu_ns: children_cpu_ns() - before_ns }
    }

    fn try_run(&self, job: Job, input: &JobInput, on: &[usize]) -> Result<(PathBuf, f64), String> {
        let result = input.folder.join("peer");
        remove(&result)?;
        let list: Vec<String> = on.iter().map(ToString::to_string).collect();
        let mut command = Command::new("sh");
        command.arg(&self.script).args(["run", &self.peer, &self.variant, job.name()]);
        command.args([&input.folder, &result]).args([list.join(",")]);
        let patience = PATIENCE + Duration::from_secs_f64(input.samples as f64 / SLOWEST);
        let text = ask(&mut command, patience)?;
        let line = text.lines().last().unwrap_or("");
        let (samples, seconds) = match serde_json::from_str(line) {
            Ok(JobAnswer::Done { samples, seconds }) => (samples, seconds),
            Ok(JobAnswer::Refused { error }) => return Err(error),
            Err(_) => return Err(format!("unexpected output `{line}`")),
        };
        // A block that is not full can be left at the end.
        let share = samples / input.samples as f64;
        if !(0.99..=1.01).contains(&share) {
            return Err(format!("it processed {samples} of {} samples", input.samples));
        }
        if !(seconds.is_finite() && seconds > 0.0) {
            return Err(format!("it reported {seconds} s"));
        }
        Ok((result, seconds))
    }
}
