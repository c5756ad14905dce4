//! The parts in which jobs differ.

use super::settings::Job;
use super::{adsb, audio, channelizer, fm, image, spectrum};
use std::path::{Path, PathBuf};

/// Bare kernels in a loop, from the input to a result.
pub(super) type BareJob = fn(&JobInput, &Path) -> Result<(), String>;

/// A job's input, its graph, and the measure of its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobKind {
    /// The work, for people.
    pub about: &'static str,
    /// Samples per second of the input signal.
    pub rate_hz: f64,
    /// Length of the input in seconds, if the settings give none.
    pub seconds: f64,
    /// The measure of the result, and its unit.
    pub quality: (&'static str, &'static str),
    /// The pipeline file. It reads `input`, and writes `result` in its output folder.
    pub pipeline: &'static str,
    /// Writes `input`, and all files that peers need. Returns the number of samples.
    pub prepare: fn(&JobRequest) -> Result<u64, String>,
    /// Measures the quality of a result.
    pub judge: fn(&JobInput, &Path) -> Result<f64, String>,
    /// The same kernels in a loop, without an engine: from the input to a result.
    pub bare: Option<BareJob>,
}

/// What a job's files are made of.
#[derive(Debug, Clone)]
pub(super) struct JobRequest {
    /// Folder for them.
    pub folder: PathBuf,
    /// Length of the input in seconds.
    pub seconds: f64,
    /// The capture for `adsb`.
    pub adsb: Option<PathBuf>,
    /// Whether peers will run.
    pub has_peers: bool,
}

/// The prepared files of a job.
#[derive(Debug, Clone)]
pub(super) struct JobInput {
    pub folder: PathBuf,
    /// Number of samples in `input`.
    pub samples: u64,
}

impl JobInput {
    pub fn path(&self) -> PathBuf {
        self.folder.join(INPUT)
    }
}

/// Name of the input file.
pub(super) const INPUT: &str = "input";
/// Name of the file that a pipeline writes.
pub(super) const RESULT: &str = "result";

pub(super) fn kind(job: Job) -> JobKind {
    match job {
        Job::Fm => fm::KIND,
        Job::Adsb => adsb::KIND,
        Job::Spectrum => spectrum::KIND,
        Job::Channelizer => channelizer::KIND,
        Job::Audio => audio::KIND,
        Job::Image => image::KIND,
    }
}
