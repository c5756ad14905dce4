//! The same passes in Holoscan: a Python process runs `peers/holoscan/realtime.py`.

use super::frames::FrameTimes;
use super::settings::{RealtimePolicy, RealtimeSettings};
use crate::python_process::{PythonProcess, PythonScript, START};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Embedded script, so that no path is needed.
const SCRIPT: PythonScript = PythonScript::holoscan(include_str!("../../../../peers/holoscan/realtime.py"));

/// Another runtime.
#[derive(Debug, Clone)]
pub struct RealtimePeer {
    /// The Python that has Holoscan.
    pub python: PathBuf,
}

/// A running Holoscan process that waits for requests.
pub(super) struct RealtimeHoloscan(PythonProcess);

#[derive(Deserialize)]
#[serde(untagged)]
enum PassAnswer {
    PassFigures { starts_ns: Vec<u64>, ends_ns: Vec<u64> },
    Refused { error: String },
}

/// Whether its threads support this policy: with `SCHED_DEADLINE` and a core, its operator never runs, and no
/// error is reported.
pub(super) fn has(kind: RealtimePolicy) -> bool {
    kind != RealtimePolicy::Deadline
}

impl RealtimeHoloscan {
    /// Starts Holoscan. On failure the error says why, and how to install it.
    pub fn start(peer: &RealtimePeer) -> Result<RealtimeHoloscan, String> {
        PythonProcess::start(&peer.python, SCRIPT).map(RealtimeHoloscan)
    }

    /// Versions of Holoscan and its Python.
    pub fn versions(&self) -> &(String, String) {
        &self.0.versions
    }

    /// CPU time of its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Makes one pass. Its frames have no due time: each counts from the one before.
    pub fn run(
        &mut self,
        settings: &RealtimeSettings,
        kind: Option<RealtimePolicy>,
    ) -> Result<Vec<FrameTimes>, String> {
        let wanted = json!({
            "policy": kind.map(RealtimePolicy::name),
            "priority": settings.priority,
            "fps": settings.target_fps,
            "duration_s": settings.duration_ns as f64 / 1e9,
            "bg_load_intensity": settings.bg_load_intensity,
            "bg_workload_size": settings.bg_workload_size,
            "bm_load_intensity": settings.bm_load_intensity,
            "bm_workload_size": settings.bm_workload_size,
            "workers": settings.worker_threads,
            "loads": settings.dummy_loads,
            "core": settings.pin_cpu,
        });
        let limit = START + 3 * Duration::from_nanos(settings.duration_ns);
        let line = self.0.ask(&wanted, limit)?;
        match serde_json::from_str(&line) {
            Ok(PassAnswer::PassFigures { starts_ns, ends_ns }) => {
                let frame = |(at, (&start_ns, &end_ns)): (usize, (&u64, &u64))| {
                    let due_ns = starts_ns[0] + at as u64 * settings.period_ns();
                    FrameTimes { due_ns, start_ns, end_ns, cpu: settings.pin_cpu as u32, tid: 0 }
                };
                Ok(starts_ns.iter().zip(&ends_ns).enumerate().map(frame).collect())
            }
            Ok(PassAnswer::Refused { error }) => Err(error),
            Err(_) => Err(format!("unexpected answer `{line}`")),
        }
    }
}
