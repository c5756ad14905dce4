//! The same chain in other runtimes, by the programs of `peers/`: each measurement is a separate process.

use super::case::ChainShape;
use super::settings::{SaxpyForm, SaxpySettings};
use crate::BenchError;
use crate::script::{PATIENCE, ask, children_cpu_ns};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Entry script of `peers/`.
const SCRIPT: &str = "saxpy.sh";

/// A peer with its settings and one chain.
#[derive(Debug, Clone)]
pub struct SaxpyPeer {
    /// Name: "qsdr".
    pub peer: String,
    /// Version.
    pub version: String,
    /// Name of the settings: "default".
    pub variant: String,
    /// Description of the settings.
    pub how: String,
    /// Whether its saxpy works in place.
    pub in_place: bool,
    /// Bytes that it processes at once.
    pub quantum: usize,
    /// Number of cores.
    pub cores: usize,
    /// Number of saxpy operators.
    pub kernels: usize,
    script: PathBuf,
}

/// Shortest measurement: some peers have all threads at work only after a tenth of a second (measured: oneTBB
/// 6 to 8 Gsamples/s in 0.05 s, 9 to 11 in 0.2; FutureSDR 1.2 to 1.5 and 1.9).
const LEAST_S: f64 = 0.2;

/// Figures of one run of a peer.
pub(super) struct PeerRun {
    /// Samples per second, or the reason why there is no such figure.
    pub rate: Result<f64, String>,
    /// CPU time of all its threads.
    pub cpu_ns: u64,
}

/// A line of the script's list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Listed {
    Missing {
        peer: String,
        missing: String,
    },
    There {
        peer: String,
        version: String,
        variant: String,
        how: String,
        in_place: bool,
        quantum: usize,
        /// Numbers of cores that it supports.
        cores: Vec<usize>,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PeerAnswer {
    Rate { rate: f64 },
    Refused { error: String },
}

/// Returns the installed peers with each chain that the settings ask for, and notes about missing ones.
pub(super) fn find(
    folder: &Path,
    settings: &SaxpySettings,
) -> Result<(Vec<SaxpyPeer>, Vec<String>), BenchError> {
    let script = folder.join(SCRIPT);
    if !script.is_file() {
        return Err(BenchError::Settings(format!(
            "peers: {} does not exist: give the folder `peers` of the project: --peers=DIR",
            script.display()
        )));
    }
    let said = ask(Command::new("sh").arg(&script).arg("list"), PATIENCE);
    let text = said.map_err(|why| BenchError::Settings(format!("peers: {}: {why}", script.display())))?;
    let (mut peers, mut notes) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(Listed::Missing { peer, missing }) => {
                notes.push(format!("{peer}: not available: {missing}"));
            }
            Ok(Listed::There { peer, version, variant, how, in_place, quantum, cores }) => {
                for &kernels in &settings.kernels {
                    for &cores in settings.cores.iter().filter(|count| cores.contains(count)) {
                        peers.push(SaxpyPeer {
                            peer: peer.clone(),
                            version: version.clone(),
                            variant: variant.clone(),
                            how: how.clone(),
                            in_place,
                            quantum,
                            cores,
                            kernels,
                            script: script.clone(),
                        });
                    }
                }
            }
            Err(_) => notes.push(format!("{}: unexpected output `{line}`", script.display())),
        }
    }
    if peers.is_empty() {
        notes.push(format!("no peer is installed: see {}/README.md", folder.display()));
    }
    Ok((peers, notes))
}

impl SaxpyPeer {
    /// Name in figures: "qsdr.default.n2.m3".
    pub(super) fn name(&self) -> String {
        format!("{}.{}.n{}.m{}", self.peer, self.variant, self.cores, self.kernels)
    }

    /// The chain that it runs.
    pub(super) fn shape(&self) -> ChainShape {
        let form = if self.in_place { SaxpyForm::InPlace } else { SaxpyForm::OutOfPlace };
        // Limits the size that a peer may claim: at least some samples, and not all of the memory.
        let quantum = self.quantum.clamp(size_of::<f32>(), 64 << 20);
        ChainShape { cores: self.cores, kernels: self.kernels, quantum, form }
    }

    /// Makes one measurement.
    pub(super) fn run(&self, on: &[usize], seconds: f64) -> PeerRun {
        let seconds = seconds.max(LEAST_S);
        let before_ns = children_cpu_ns();
        let list: Vec<String> = on[..self.cores].iter().map(ToString::to_string).collect();
        let mut command = Command::new("sh");
        command.arg(&self.script).args(["run", &self.peer, &self.variant]);
        command.args([
            &self.cores.to_string(),
            &self.kernels.to_string(),
            &seconds.to_string(),
            &list.join(","),
        ]);
        let rate = ask(&mut command, PATIENCE + Duration::from_secs_f64(seconds)).and_then(|text| {
            let line = text.lines().last().unwrap_or("");
            match serde_json::from_str(line) {
                Ok(PeerAnswer::Rate { rate }) if rate.is_finite() && rate > 0.0 => Ok(rate),
                Ok(PeerAnswer::Rate { rate }) => Err(format!("it reported {rate} samples per second")),
                Ok(PeerAnswer::Refused { error }) => Err(error),
                Err(_) => Err(format!("unexpected output `{line}`")),
            }
        });
        PeerRun { rate, cpu_ns: children_cpu_ns() - before_ns }
    }
}
