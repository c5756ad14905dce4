//! What may be typed after `onbeat bench realtime`.

use super::{Format, once};
use clap::Args;
use onbeat::Idle;
use onbeat_bench::realtime::{RealtimePeer, RealtimePolicy, RealtimeSettings};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench realtime                                 as published: 60 frames per second beside two loads, 30 s per pass
  onbeat bench realtime --duration 5 --rounds 5         shorter passes, and all of them five times in turn
  onbeat bench realtime --scheduling-policy SCHED_FIFO --output realtime
                                                        one policy; the figures as JSON and SVG in that folder
  onbeat bench realtime --peer holoscan --python holoscan/bin/python
                                                        beside Holoscan, in turn";

#[derive(Debug, Args)]
pub struct RealtimeArguments {
    /// Frames per second
    #[arg(long, value_name = "FPS", default_value_t = 60.0, allow_hyphen_values = true)]
    target_fps: f64,
    /// Seconds per pass
    #[arg(long, short, value_name = "SECONDS", default_value_t = 30.0, allow_hyphen_values = true)]
    duration: f64,
    /// The real-time policies: SCHED_FIFO, SCHED_RR, SCHED_DEADLINE [default: all of them]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = policies)]
    scheduling_policy: Vec<RealtimePolicy>,
    /// Priority of SCHED_FIFO and SCHED_RR
    #[arg(long, short = 'P', value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    /// Rounds over its numbers that a load operator makes per step
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bg_load_intensity: u32,
    /// How many numbers it has
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bg_workload_size: u32,
    /// Rounds over its numbers that the frame operator makes per frame
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bm_load_intensity: u32,
    /// How many numbers it has
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bm_workload_size: u32,
    /// Workers of the load; in the baseline they step the frame operator, too
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    worker_thread_number: u16,
    /// Load operators
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(0..=256))]
    dummy_load_number: u16,
    /// The core that all of them share
    #[arg(long, value_name = "CORE", default_value_t = 0)]
    pin_cpu: u16,
    /// How the frame's worker waits for the next frame under the real-time policies: park, spin:20us, or early:200us, which is up
    /// that long before it
    #[arg(long, value_name = "HOW", default_value = "early:200us", value_parser = super::idle)]
    idle: Idle,
    /// How often all passes are made, in turn; shown is the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Another runtime that makes the same passes in turn with ours
    #[arg(long, value_name = "NAME", value_parser = ["holoscan"])]
    peer: Option<String>,
    /// The Python that has the peer
    #[arg(long, value_name = "PATH", default_value = "python3", requires = "peer")]
    python: PathBuf,
    /// Write realtime.json, with every period and outlier, and realtime.svg into this folder
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Draw the figures into this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

impl RealtimeArguments {
    pub fn settings(&self) -> RealtimeSettings {
        let all = RealtimePolicy::ALL.to_vec();
        RealtimeSettings {
            target_fps: self.target_fps,
            // A negative or senseless one becomes 0, which is too short.
            duration_ns: (self.duration * 1e9) as u64,
            policies: if self.scheduling_policy.is_empty() { all } else { once(&self.scheduling_policy) },
            priority: self.priority,
            bg_load_intensity: self.bg_load_intensity,
            bg_workload_size: self.bg_workload_size as usize,
            bm_load_intensity: self.bm_load_intensity,
            bm_workload_size: self.bm_workload_size as usize,
            worker_threads: usize::from(self.worker_thread_number),
            dummy_loads: usize::from(self.dummy_load_number),
            pin_cpu: usize::from(self.pin_cpu),
            idle: self.idle,
            rounds: usize::from(self.rounds),
            peer: self.peer.as_ref().map(|_| RealtimePeer { python: self.python.clone() }),
        }
    }
}

fn policies(name: &str) -> Result<RealtimePolicy, String> {
    RealtimePolicy::from_name(name).ok_or("SCHED_FIFO, SCHED_RR or SCHED_DEADLINE".to_owned())
}
