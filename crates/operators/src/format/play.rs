//! What sources of files share: time, repetition, tags, frames.

use super::coding::FileSample;
use super::read::SampleFile;
use onbeat_runtime::{Chunk, Context, Error, Output, Pace, Pacer, Step, Tag, Value};
use std::sync::Arc;

/// A tag on one sample of a file.
pub(crate) struct Mark {
    pub sample: u64,
    pub key: Arc<str>,
    pub value: Value,
}

/// Plays a file of samples.
pub(crate) struct Player {
    file: SampleFile,
    marks: Vec<Mark>,
    rate_hz: f64,
    pacer: Pacer,
    /// Samples to send in all.
    total: u64,
    sent: u64,
    /// Next sample of the file, and the next mark.
    at: u64,
    mark: usize,
    /// Of a file of frames: samples per frame, and the shape of one.
    frame: Option<(u64, [u32; 3])>,
}

impl Player {
    /// `repeat` is how often, 0 for without end; `marks` are sorted by sample. With a rate of 0 there is no
    /// time to keep.
    pub fn new(file: SampleFile, marks: Vec<Mark>, rate_hz: f64, pace: Pace, repeat: u64) -> Self {
        let pacer = Pacer::new(rate_hz, pace);
        let total = if repeat == 0 { u64::MAX } else { file.samples.saturating_mul(repeat) };
        Player { file, marks, rate_hz, pacer, total, sent: 0, at: 0, mark: 0, frame: None }
    }

    /// Every chunk is one frame of so many samples and this shape.
    pub fn frames(mut self, samples: u64, shape: [u32; 3]) -> Self {
        self.frame = Some((samples, shape));
        self
    }

    /// For [`Operator::start`](onbeat_runtime::Operator::start).
    pub fn start(&self, cx: &mut Context) {
        if self.total < u64::MAX && self.rate_hz > 0.0 {
            cx.set_length_ns(self.pacer.time_ns(self.total));
        }
    }

    /// One step of the source.
    pub fn step<T: FileSample>(
        &mut self,
        out: &mut Output<Chunk<T>>,
        cx: &mut Context,
    ) -> Result<Step, Error> {
        let Some(mut chunk) = out.chunk(cx) else { return Ok(Step::Wait) };
        let room = chunk.capacity() as u64;
        let length = match self.frame {
            None => room,
            Some((samples, _)) if samples <= room => samples,
            Some((samples, shape)) => {
                return Err(Error::new(format!(
                    "a frame of {} has {samples} samples, which is {} bytes: the edges of `out` have room for {room}; \
                     give each a larger `quantum`",
                    crate::npy::shape_text(&shape),
                    samples * size_of::<T>() as u64
                )));
            }
        };
        let end = self.total.min(self.sent.saturating_add(length));
        if let Some(wait) = self.pacer.wait(cx, self.sent, end) {
            return Ok(wait);
        }
        chunk.truncate((end - self.sent) as usize);
        self.fill(&mut chunk)?;
        out.push(cx, chunk)?;
        Ok(if self.sent == self.total { Step::Done } else { Step::Again })
    }

    /// Fills a chunk with the next samples and their tags.
    fn fill<T: FileSample>(&mut self, chunk: &mut Chunk<T>) -> Result<(), Error> {
        let (mut filled, count) = (0, chunk.len());
        let info = chunk.info_mut();
        (info.start, info.rate_hz) = (self.sent, self.rate_hz);
        if let Some((_, shape)) = self.frame {
            info.shape = shape;
        }
        while filled < count {
            let piece = (self.file.samples - self.at).min((count - filled) as u64);
            let end = filled + piece as usize;
            let samples = chunk.edit_unique().expect("a new chunk is not shared");
            self.file.read(&mut samples[filled..end])?;
            while let Some(mark) = self.marks.get(self.mark).filter(|mark| mark.sample < self.at + piece) {
                let offset = filled + (mark.sample - self.at) as usize;
                let (key, value) = (mark.key.clone(), mark.value.clone());
                chunk.info_mut().tags.push(Tag { offset, key, value });
                self.mark += 1;
            }
            (filled, self.at) = (end, self.at + piece);
            if self.at == self.file.samples {
                self.file.rewind();
                (self.at, self.mark) = (0, 0);
            }
        }
        self.sent += count as u64;
        Ok(())
    }

    /// For [`Operator::stop`](onbeat_runtime::Operator::stop): says what was odd.
    pub fn stop(&self, cx: &mut Context) {
        if self.file.not_finite > 0 {
            let (count, name) = (self.file.not_finite, self.file.path().display());
            cx.note(format!("{count} numbers of {name} were not finite and were sent as they are"));
        }
    }
}
