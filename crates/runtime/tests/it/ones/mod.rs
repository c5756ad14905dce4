//! A source whose samples are all 1.

use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use onbeat_runtime::{Chunk, Context, Error, Operator, Output, Ports, Step};
use std::sync::Arc;

/// Sends chunks of the same length, each with the position of its first sample.
#[derive(Default)]
pub struct Ones {
    /// Chunks.
    pub out: Output<Chunk<f32>>,
    samples: usize,
    start: u64,
    /// Whether to end.
    pub over: Arc<AtomicBool>,
}

impl Ones {
    /// Until it is stopped, or `over` is true.
    pub fn new(samples: usize) -> Self {
        Ones { samples, ..Ones::default() }
    }
}

impl Operator for Ones {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.over.load(Ordering::Relaxed) {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        chunk.truncate(self.samples);
        chunk.edit_unique().expect("it is new").fill(1.0);
        chunk.info_mut().start = self.start;
        self.start += chunk.len() as u64;
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
}
