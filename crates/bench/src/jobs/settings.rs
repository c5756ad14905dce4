//! Settings of the bench.

use std::path::PathBuf;

/// A job: an input file, the work, and an output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// A station is tuned, filtered, demodulated and resampled: the receiver of `examples/fm_receiver.toml`.
    Fm,
    /// Mode S frames are found in a capture and decoded.
    Adsb,
    /// Averaged power spectra of 1024 bins.
    Spectrum,
    /// Splits a band into 16 channels.
    Channelizer,
    /// Stereo through an equalizer, then from 48 to 44.1 kHz.
    Audio,
    /// Filters grey HD frames.
    Image,
}

impl Job {
    /// All of them.
    pub const ALL: &'static [Job] =
        &[Job::Fm, Job::Adsb, Job::Spectrum, Job::Channelizer, Job::Audio, Job::Image];

    /// Name in figures and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Job::Fm => "fm",
            Job::Adsb => "adsb",
            Job::Spectrum => "spectrum",
            Job::Channelizer => "channelizer",
            Job::Audio => "audio",
            Job::Image => "image",
        }
    }

    /// Returns the one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }
}

/// Settings of the bench.
#[derive(Debug, Clone)]
pub struct JobsSettings {
    /// Jobs, in the order of the table.
    pub jobs: Vec<Job>,
    /// Numbers of cores.
    pub cores: Vec<usize>,
    /// Cores to use, in order; empty: those that the process may use.
    pub on: Vec<usize>,
    /// Length of the input signal in seconds; `None`: each job's own.
    pub seconds: Option<f64>,
    /// Number of rounds.
    pub rounds: usize,
    /// Capture at 2 MS/s in `cu8` for the job `adsb`, which is left out without one.
    pub adsb: Option<PathBuf>,
    /// Folder with the peers' programs.
    pub peers: Option<PathBuf>,
}

impl Default for JobsSettings {
    fn default() -> Self {
        JobsSettings {
            jobs: Job::ALL.to_vec(),
            cores: vec![1, 2],
            on: Vec::new(),
            seconds: None,
            rounds: 7,
            adsb: None,
            peers: None,
        }
    }
}

/// Limits of the input's length in seconds. The longest is 6 GB of complex samples at 256 kHz.
const SECONDS: std::ops::RangeInclusive<f64> = 1.0..=3000.0;

impl JobsSettings {
    /// Description of the first invalid setting, if any.
    pub(super) fn fault(&self) -> Option<String> {
        for (name, list) in [("cores", &self.cores), ("on", &self.on)] {
            if name == "cores" && (list.is_empty() || list.contains(&0)) {
                return Some(format!("{name}: give at least one number, each 1 or more"));
            }
            if list.iter().enumerate().any(|(at, item)| list[..at].contains(item)) {
                return Some(format!("{name}: a number occurs twice"));
            }
        }
        if self.cores.iter().any(|&cores| cores > 1024) {
            return Some("cores: at most 1024".to_owned());
        }
        if self.jobs.is_empty() || self.rounds == 0 {
            return Some("jobs and rounds must not be empty or 0".to_owned());
        }
        let wrong = self.seconds.filter(|seconds| !SECONDS.contains(seconds))?;
        Some(format!(
            "seconds: {wrong}: it is the length of the input signal and must be from {} to {}",
            SECONDS.start(),
            SECONDS.end()
        ))
    }
}
