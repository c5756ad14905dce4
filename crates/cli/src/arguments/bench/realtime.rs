//! Arguments of `onbeat bench realtime`.

use super::{OutputFormat, once};
use clap::Args;
use onbeat::Idle;
use onbeat_bench::realtime::{RealtimePeer, RealtimePolicy, RealtimeSettings};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  onbeat bench realtime                                 measure as in the published benchmark
  onbeat bench realtime --duration 5 --rounds 5         measure shorter passes, five times each
  onbeat bench realtime --scheduling-policy SCHED_FIFO --output realtime
                                                        measure one policy; write JSON and SVG
  onbeat bench realtime --peer holoscan --python holoscan/bin/python
                                                        compare with Holoscan, alternating";

#[derive(Debug, Args)]
pub struct RealtimeArguments {
    /// Frames per second
    #[arg(long, value_name = "FPS", default_value_t = 60.0, allow_hyphen_values = true)]
    target_fps: f64,
    /// Duration of a pass, in seconds
    #[arg(long, short, value_name = "SECONDS", default_value_t = 30.0, allow_hyphen_values = true)]
    duration: f64,
    /// Real-time policies to measure: SCHED_FIFO, SCHED_RR, SCHED_DEADLINE [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = policies)]
    scheduling_policy: Vec<RealtimePolicy>,
    /// Priority for SCHED_FIFO and SCHED_RR
    #[arg(long, short = 'P', value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    /// Passes of a load operator over its array, per step
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bg_load_intensity: u32,
    /// Length of the array of a load operator
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bg_workload_size: u32,
    /// Passes of the frame operator over its array, per frame
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bm_load_intensity: u32,
    /// Length of the array of the frame operator
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bm_workload_size: u32,
    /// Number of workers for the load operators; in the baseline, the frame operator shares one of them
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    worker_thread_number: u16,
    /// Number of load operators
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(0..=256))]
    dummy_load_number: u16,
    /// Core that all threads share
    #[arg(long, value_name = "CORE", default_value_t = 0)]
    pin_cpu: u16,
    /// How the worker waits for the next frame under the real-time policies: park, spin:20us, or early:200us,
    /// which wakes up that long before the frame
    #[arg(long, value_name = "HOW", default_value = "early:200us", value_parser = super::idle)]
    idle: Idle,
    /// Number of rounds over all passes; the result is the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Other runtime to compare with, which runs the same passes alternately
    #[arg(long, value_name = "NAME", value_parser = ["holoscan"])]
    peer: Option<String>,
    /// Python interpreter that can import the peer
    #[arg(long, value_name = "PATH", default_value = "python3", requires = "peer")]
    python: PathBuf,
    /// Write realtime.json (with every period and outlier) and realtime.svg to this folder
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Write a plot of the results to this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

impl RealtimeArguments {
    pub fn settings(&self) -> RealtimeSettings {
        let all = RealtimePolicy::ALL.to_vec();
        RealtimeSettings {
            target_fps: self.target_fps,
            // A negative number or NaN becomes 0, which is refused as too short.
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
    RealtimePolicy::from_name(name).ok_or("write SCHED_FIFO, SCHED_RR or SCHED_DEADLINE".to_owned())
}
