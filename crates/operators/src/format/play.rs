//! Common part of the file sources: pace, repetition, tags and frames.

use super::coding::ArraySample;
use super::read::SampleFile;
use onbeat_runtime::{Chunk, Context, Ending, Error, Output, Pace, Pacer, Rate, Step, Tag, Value};
use std::sync::Arc;

/// A tag on one sample of a file.
pub(crate) struct FileMark {
    pub sample: u64,
    /// The channel, if the tag is not for all.
    pub channel: Option<u64>,
    pub key: Arc<str>,
    pub value: Value,
}

/// Settings and state of a file source: pace, number of passes, and the player during a run.
pub(crate) struct Playing<T: ArraySample> {
    pub pace: Pace,
    /// Number of passes; 0 repeats without end.
    pub repeat: u64,
    player: Option<Player<T>>,
}

impl<T: ArraySample> Playing<T> {
    /// Plays once.
    pub fn once(pace: Pace) -> Self {
        Playing { pace, repeat: 1, player: None }
    }

    /// Creates a player of this file. `marks` must be sorted by sample. With a rate of 0 the player does not
    /// keep time.
    pub fn player(&self, file: SampleFile, marks: Vec<FileMark>, rate_hz: f64) -> Player<T> {
        Player::new(file, marks, rate_hz, self.pace, self.repeat)
    }

    /// Implements [`Operator::rate`](onbeat_runtime::Operator::rate) for samples at `rate_hz`, sent `chunk`
    /// at a time.
    pub fn rate(&self, pace: Option<Pace>, rate_hz: f64, chunk: Option<u64>) -> Option<Rate> {
        let rate_hz = Pacer::new(rate_hz, self.pace).kept_hz(pace)?;
        Some(Rate::Samples { rate_hz, chunk, bytes: size_of::<T>() })
    }

    /// Implements [`Operator::start`](onbeat_runtime::Operator::start).
    ///
    /// # Errors
    /// When a pipe shall be played more than once.
    pub fn start(&mut self, player: Player<T>, cx: &mut Context) -> Result<(), Error> {
        if player.file.ready() < u64::MAX && self.repeat != 1 {
            let (name, repeat) = (player.file.path().display(), self.repeat);
            return Err(Error::new(format!(
                "`repeat` is {repeat}: {name} is a pipe, which can be played once"
            )));
        }
        player.start(cx);
        self.player = Some(player);
        Ok(())
    }

    /// Implements [`Operator::step`](onbeat_runtime::Operator::step).
    pub fn step(&mut self, outputs: &mut [Output<Chunk<T>>], cx: &mut Context) -> Result<Step, Error> {
        match &mut self.player {
            Some(player) => player.step(outputs, cx),
            None => Ok(Step::Done),
        }
    }

    /// Implements [`Operator::stop`](onbeat_runtime::Operator::stop): adds notes and closes the file.
    pub fn stop(&mut self, cx: &mut Context, ending: Ending) {
        if let Some(player) = self.player.take() {
            player.file.lose_unread(ending, cx);
            player.stop(cx);
        }
    }
}

/// Plays a file of samples, one output for each channel that is read.
pub(crate) struct Player<T: ArraySample> {
    file: SampleFile,
    /// Chunks for the outputs during a step.
    chunks: Vec<Chunk<T>>,
    marks: Vec<FileMark>,
    rate_hz: f64,
    pacer: Pacer,
    /// Number of samples to send.
    total: u64,
    sent: u64,
    /// Next sample of the file, and next mark.
    at: u64,
    mark: usize,
    /// For a file of frames: samples per frame, and the shape of a frame.
    frame: Option<(u64, [u32; 3])>,
}

impl<T: ArraySample> Player<T> {
    fn new(file: SampleFile, marks: Vec<FileMark>, rate_hz: f64, pace: Pace, repeat: u64) -> Self {
        let pacer = Pacer::new(rate_hz, pace);
        let total = if repeat == 0 { u64::MAX } else { file.samples.saturating_mul(repeat) };
        let chunks = Vec::with_capacity(file.lanes() as usize);
        Player { file, chunks, marks, rate_hz, pacer, total, sent: 0, at: 0, mark: 0, frame: None }
    }

    /// Makes every chunk one frame with this many samples and this shape.
    pub fn frames(mut self, samples: u64, shape: [u32; 3]) -> Self {
        self.frame = Some((samples, shape));
        self
    }

    fn start(&self, cx: &mut Context) {
        if self.total < u64::MAX && self.rate_hz > 0.0 {
            cx.set_length_ns(self.pacer.time_ns(self.total));
        }
    }

    fn step(&mut self, outputs: &mut [Output<Chunk<T>>], cx: &mut Context) -> Result<Step, Error> {
        // Takes chunks for all outputs or for none: a chunk held while the store is empty would be missing
        // elsewhere.
        self.chunks.clear();
        for output in outputs.iter() {
            let Some(chunk) = output.chunk(cx) else {
                self.chunks.clear();
                return Ok(Step::Wait);
            };
            self.chunks.push(chunk);
        }
        if let Some(step) = self.file.receive(cx)? {
            self.chunks.clear();
            return Ok(step);
        }
        let room = self.chunks.iter().map(Chunk::capacity).min().unwrap_or(0) as u64;
        let length = match self.frame {
            None => room.min(self.file.ready()),
            Some((samples, _)) if samples <= room => samples,
            Some((samples, shape)) => {
                return Err(Error::new(format!(
                    "a frame of {} has {samples} samples, which is {} bytes: the edges of `out` have room \
                     for {room}; give each a larger `quantum`",
                    crate::npy::shape_text(&shape),
                    samples * size_of::<T>() as u64
                )));
            }
        };
        let end = self.total.min(self.sent.saturating_add(length));
        if let Some(wait) = self.pacer.wait(cx, self.sent, end) {
            self.chunks.clear();
            return Ok(wait);
        }
        self.fill((end - self.sent) as usize)?;
        for (output, chunk) in outputs.iter_mut().zip(self.chunks.drain(..)) {
            output.push(cx, chunk)?;
        }
        Ok(if self.sent == self.total { Step::Done } else { Step::Again })
    }

    /// Fills the chunks with the next samples and their tags.
    fn fill(&mut self, count: usize) -> Result<(), Error> {
        for chunk in &mut self.chunks {
            chunk.truncate(count);
            let info = chunk.info_mut();
            (info.start, info.rate_hz) = (self.sent, self.rate_hz);
            if let Some((_, shape)) = self.frame {
                info.shape = shape;
            }
        }
        let mut filled = 0;
        while filled < count {
            let piece = (self.file.samples - self.at).min((count - filled) as u64);
            let end = filled + piece as usize;
            self.file.read(&mut self.chunks, filled..end)?;
            while let Some(mark) = self.marks.get(self.mark).filter(|mark| mark.sample < self.at + piece) {
                let offset = filled + (mark.sample - self.at) as usize;
                for (channel, chunk) in (self.file.first()..).zip(&mut self.chunks) {
                    if mark.channel.is_none_or(|only| only == channel) {
                        let (key, value) = (mark.key.clone(), mark.value.clone());
                        chunk.info_mut().tags.push(Tag { offset, key, value });
                    }
                }
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

    fn stop(&self, cx: &mut Context) {
        if self.file.not_finite > 0 {
            let (count, name) = (self.file.not_finite, self.file.path().display());
            cx.note(format!("{count} numbers of {name} were not finite and were sent unchanged"));
        }
    }
}
