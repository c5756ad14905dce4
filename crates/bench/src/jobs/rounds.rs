//! All measurements in turn, once per round.

use super::case::{JobCase, JobSide, schedulers};
use super::folder::{JobFolder, at, is_same};
use super::kind::{JobInput, JobKind, JobRequest, kind};
use super::settings::{Job, JobsSettings};
use super::{ours, peers};
use crate::others::Others;
use crate::{BenchError, BenchWatch};
use onbeat_os::CoreSet;
use onbeat_runtime::Scheduler;
use std::fs;
use std::path::{Path, PathBuf};

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobMeasurement {
    /// Samples per second; NaN if a peer gave no figure.
    pub rate: f64,
    /// Quality of the result; NaN without one.
    pub quality: f64,
    /// Whether the result has the same bytes as that of onbeat on one core.
    pub is_same: bool,
}

/// A case, with a measurement per round.
pub(super) type MeasuredCase = (JobCase, Vec<JobMeasurement>);

/// All measurements.
pub(super) struct JobRounds {
    /// Cores used, in order.
    pub on: Vec<usize>,
    /// Jobs that were done, with their inputs.
    pub inputs: Vec<(Job, JobInput)>,
    /// Cases in the order of the table.
    pub cases: Vec<MeasuredCase>,
    /// Share of the machine used by others during the measurement.
    pub others: Option<f64>,
    pub notes: Vec<String>,
}

pub(super) fn measure(settings: &JobsSettings, watch: &mut dyn BenchWatch) -> Result<JobRounds, BenchError> {
    if let Some(fault) = settings.fault() {
        return Err(BenchError::Settings(fault));
    }
    let on = cores(settings)?;
    let folder = JobFolder::make()?;
    let mut rounds = JobRounds { on, inputs: Vec::new(), cases: Vec::new(), others: None, notes: Vec::new() };
    let found = rounds.find_peers(settings)?;
    rounds.prepare(settings, folder.path(), watch)?;
    rounds.add_cases(settings, &found);
    if rounds.cases.is_empty() {
        return Err(BenchError::Nothing(rounds.notes.join("; ")));
    }
    rounds.warm_up(watch)?;
    let others = Others::watch();
    let mut helpers_ns = 0;
    for round in 0..settings.rounds {
        if !rounds.once(round, settings.rounds, &mut helpers_ns, watch)? {
            if round == 0 {
                return Err(BenchError::Stopped);
            }
            rounds.notes.push(format!("stopped in round {} of {}", round + 1, settings.rounds));
            rounds.cases.iter_mut().for_each(|(_, taken)| taken.truncate(round));
            break;
        }
    }
    rounds.others = others.share(helpers_ns);
    Ok(rounds)
}

/// The cores to use: as many as the largest number of cores requires.
fn cores(settings: &JobsSettings) -> Result<Vec<usize>, BenchError> {
    let most = settings.cores.iter().copied().max().unwrap_or(1);
    let allowed =
        CoreSet::allowed().map_err(|error| BenchError::System { what: "cores of this process", error })?;
    let on: Vec<usize> = if settings.on.is_empty() { allowed.iter().collect() } else { settings.on.clone() };
    if let Some(core) = on.iter().find(|core| !allowed.contains(**core)) {
        let text = format!("on: core {core} is not available to this process, which can use {allowed}");
        return Err(BenchError::Settings(text));
    }
    if on.len() < most {
        let text = format!("cores: {most} are needed, but there are {}: give fewer", on.len());
        return Err(BenchError::Settings(text));
    }
    Ok(on)
}

impl JobRounds {
    /// Returns the cases of the peers. An error is found before the inputs are made.
    fn find_peers(&mut self, settings: &JobsSettings) -> Result<Vec<JobCase>, BenchError> {
        let Some(folder) = &settings.peers else { return Ok(Vec::new()) };
        let (cases, notes) = peers::find(folder, settings, &settings.jobs)?;
        self.notes.extend(notes);
        Ok(cases)
    }

    /// Makes the inputs. Jobs without one are left out, and a note says so.
    fn prepare(
        &mut self,
        settings: &JobsSettings,
        folder: &Path,
        watch: &mut dyn BenchWatch,
    ) -> Result<(), BenchError> {
        for &job in &settings.jobs {
            watch.at(0, 1, &format!("making the input of {}", job.name()));
            if watch.is_stopped() {
                return Err(BenchError::Stopped);
            }
            let kind = kind(job);
            let request = JobRequest {
                folder: folder.join(job.name()),
                seconds: settings.seconds.unwrap_or(kind.seconds),
                adsb: settings.adsb.clone(),
                has_peers: settings.peers.is_some(),
            };
            let made = fs::create_dir(&request.folder).map_err(at(&request.folder));
            match made.and_then(|()| (kind.prepare)(&request)) {
                Ok(samples) => self.inputs.push((job, JobInput { folder: request.folder, samples })),
                Err(reason) => self.notes.push(format!("{}: left out: {reason}", job.name())),
            }
        }
        Ok(())
    }

    /// Adds the cases of each job: onbeat, bare kernels, peers. A scheduler that cannot run a job is left
    /// out, and a note says so.
    fn add_cases(&mut self, settings: &JobsSettings, peers: &[JobCase]) {
        for (job, input) in &self.inputs {
            let (job, kind) = (*job, kind(*job));
            for &cores in &settings.cores {
                for &scheduler in schedulers(cores) {
                    let side = JobSide::Onbeat(scheduler);
                    let case = JobCase { job, side, cores };
                    match ours::plan(&kind, input, scheduler, &self.on[..cores]) {
                        Ok(()) => self.cases.push((case, Vec::new())),
                        Err(reason) => self.notes.push(format!("{}: left out: {reason}", case.name())),
                    }
                }
                if cores == 1 && kind.bare.is_some() {
                    self.cases.push((JobCase { job, side: JobSide::Bare, cores }, Vec::new()));
                }
                let alike = |case: &&JobCase| case.job == job && case.cores == cores;
                self.cases.extend(peers.iter().filter(alike).map(|case| (case.clone(), Vec::new())));
            }
        }
    }

    /// Does each job once on one core. Its result is the one that others are compared with, and its input is
    /// in memory then.
    fn warm_up(&self, watch: &mut dyn BenchWatch) -> Result<(), BenchError> {
        for (job, input) in &self.inputs {
            watch.at(0, 1, &format!("warming up {}", job.name()));
            let output = input.folder.join("first");
            ours::run(&kind(*job), input, &output, Scheduler::Greedy, &self.on[..1])
                .map_err(|reason| BenchError::Scenario { name: job.name().to_owned(), reason })?;
        }
        Ok(())
    }

    /// Makes one round. Returns `false` if it was stopped.
    fn once(
        &mut self,
        round: usize,
        rounds: usize,
        helpers_ns: &mut u64,
        watch: &mut dyn BenchWatch,
    ) -> Result<bool, BenchError> {
        let each = self.cases.len();
        for at in 0..each {
            let case = self.cases[at].0.clone();
            let text = format!("round {} of {rounds}: {}", round + 1, case.name());
            watch.at(round * each + at, rounds * each, &text);
            if watch.is_stopped() {
                return Ok(false);
            }
            let taken = self.take(&case, helpers_ns)?;
            self.cases[at].1.push(taken);
        }
        Ok(true)
    }

    /// Makes one measurement. A peer that gives no figure gets a note.
    fn take(&mut self, case: &JobCase, helpers_ns: &mut u64) -> Result<JobMeasurement, BenchError> {
        let Some((_, input)) = self.inputs.iter().find(|(job, _)| *job == case.job) else {
            return Err(BenchError::Nothing(format!("{} has no input", case.job.name())));
        };
        let (kind, on) = (kind(case.job), &self.on[..case.cores]);
        let done = match (&case.side, kind.bare) {
            (JobSide::Onbeat(scheduler), _) => {
                ours::run(&kind, input, &input.folder.join("onbeat"), *scheduler, on)
            }
            (JobSide::Bare, Some(bare)) => ours::bare(bare, input, on[0])?,
            (JobSide::Bare, None) => Err("there are no bare kernels".to_owned()),
            (JobSide::Peer(peer), _) => {
                let run = peer.run(case.job, input, on);
                *helpers_ns += run.cpu_ns;
                run.done
            }
        };
        let judged = done.and_then(|done| judge(&kind, input, done));
        match (judged, &case.side) {
            (Ok(taken), _) => Ok(taken),
            (Err(reason), JobSide::Peer(_)) => {
                let note = format!("{}: {reason}", case.name());
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                Ok(JobMeasurement { rate: f64::NAN, quality: f64::NAN, is_same: false })
            }
            (Err(reason), _) => Err(BenchError::Scenario { name: case.name(), reason }),
        }
    }
}

fn judge(
    kind: &JobKind,
    input: &JobInput,
    (result, seconds): (PathBuf, f64),
) -> Result<JobMeasurement, String> {
    let first = input.folder.join("first").join(super::kind::RESULT);
    Ok(JobMeasurement {
        rate: input.samples as f64 / seconds,
        quality: (kind.judge)(input, &result)?,
        is_same: is_same(&first, &result)?,
    })
}
