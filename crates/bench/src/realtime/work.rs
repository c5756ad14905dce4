//! Work of frames and loads: the same function on every side.

use super::frames::FrameLog;
use onbeat_os::clock;
use onbeat_runtime::{Context, Error, Operator, Ports, Step};
use std::hint::black_box;
use std::sync::Arc;

/// Numbers, and how often to process them.
#[derive(Debug, Clone)]
pub struct TrigonometryWork {
    numbers: Vec<f64>,
    intensity: u32,
}

impl TrigonometryWork {
    pub fn new(intensity: u32, size: usize) -> TrigonometryWork {
        TrigonometryWork { numbers: (0..size).map(|at| at as f64).collect(), intensity }
    }

    /// Computes one sine and one cosine of each number in each round.
    pub fn work(&mut self) {
        for _ in 0..self.intensity {
            for number in &mut self.numbers {
                *number = number.sin() + number.cos();
            }
            black_box(&mut self.numbers);
        }
    }
}

/// Makes a frame whenever one is due.
pub struct FrameOperator {
    pub frames: Arc<FrameLog>,
    pub work: TrigonometryWork,
}

impl Operator for FrameOperator {
    fn ports(&mut self, _: &mut Ports) {}

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let start_ns = clock::monotonic_ns();
        // The origin of the run's clock differs from that of `CLOCK_MONOTONIC`.
        let due_ns = cx.stamp().due_ns().unwrap_or(u64::MAX);
        let late_ns = cx.now_ns().saturating_sub(due_ns);
        self.frames.make(start_ns.saturating_sub(late_ns), start_ns, || self.work.work());
        Ok(Step::Again)
    }
}

/// Works without a pause.
pub struct LoadOperator(pub TrigonometryWork);

impl Operator for LoadOperator {
    fn ports(&mut self, _: &mut Ports) {}

    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        self.0.work();
        Ok(Step::Again)
    }
}
