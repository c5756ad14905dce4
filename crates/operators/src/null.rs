//! Pipeline ends that cost nothing: for tests, benchmarks and unused outputs.

use crate::check;
use crate::format::real;
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Error, Folders, Hertz, Info, Inline, Input, Kind, Message, Numbers, Operator, Output,
    Pace, Pacer, Ports, Rate, Registry, Sample, Shortcut, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sends chunks without writing to them: the samples are whatever the memory held before.
pub struct NullSource<T: Sample> {
    /// The chunks.
    pub out: Output<Chunk<T>>,
    numbers: Numbers,
    count: Option<u64>,
    size: Option<usize>,
    rate_hz: f64,
    pace: Pace,
    pacer: Pacer,
}

impl<T: Sample> NullSource<T> {
    /// Sends `count` chunks as large as its edges allow, as fast as the consumer takes them; `None` sends
    /// without end.
    pub fn new(count: Option<u64>) -> Self {
        NullSource {
            out: Output::default(),
            numbers: Numbers::below(count),
            count,
            size: None,
            rate_hz: 0.0,
            pace: Pace::Fast,
            pacer: Pacer::new(0.0, Pace::Fast),
        }
    }

    /// Sets the chunk length in samples.
    ///
    /// # Errors
    /// When it is 0.
    pub fn size(mut self, samples: usize) -> Result<Self, Error> {
        if samples == 0 {
            return Err(Error::new(
                "`size` is 0: a chunk has at least 1 sample; leave `size` out for full chunks",
            ));
        }
        self.size = Some(samples);
        Ok(self)
    }

    /// Sets the rate in samples per second.
    ///
    /// # Errors
    /// When it is not a finite number above 0.
    pub fn rate(mut self, rate_hz: f64, pace: Pace) -> Result<Self, Error> {
        check::positive("rate", rate_hz)?;
        (self.rate_hz, self.pace) = (rate_hz, pace);
        self.pacer = Pacer::new(rate_hz, pace);
        Ok(self)
    }
}

impl<T: Sample> Operator for NullSource<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        if let (Some(size), Some(count), true) = (self.size, self.count, self.rate_hz > 0.0) {
            cx.set_length_ns(self.pacer.time_ns(count.saturating_mul(size as u64)));
        }
        Ok(())
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let chunk = self.size.map(|size| size as u64);
        self.pacer.kept_hz(pace).map(|rate_hz| Rate::Samples { rate_hz, chunk, bytes: size_of::<T>() })
    }

    #[inline]
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(number) = self.numbers.next() else { return Ok(Step::Done) };
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        if let Some(size) = self.size {
            if size > chunk.capacity() {
                return Err(Error::new(format!(
                    "`size` is {size}: the quantum of the output edge has room for {} samples; raise the \
                     quantum or reduce `size`",
                    chunk.capacity()
                )));
            }
            chunk.truncate(size);
        }
        // All chunks have the same size.
        let begin = number * chunk.len() as u64;
        if let Some(wait) = self.pacer.wait(cx, begin, begin + chunk.len() as u64) {
            return Ok(wait);
        }
        let info = chunk.info_mut();
        info.start = begin;
        info.rate_hz = self.rate_hz;
        self.numbers.used(cx);
        self.out.push(cx, chunk)?;
        Ok(if self.numbers.next().is_none() { Step::Done } else { Step::Again })
    }

    fn inline(&mut self) -> Option<&mut dyn Inline> {
        // Full chunks at no fixed rate.
        (self.size.is_none() && self.rate_hz == 0.0).then_some(self)
    }

    fn replica(&self) -> Option<Box<dyn Operator>> {
        Some(Box::new(NullSource::<T> {
            out: Output::default(),
            numbers: self.numbers.share(),
            count: self.count,
            size: self.size,
            rate_hz: self.rate_hz,
            pace: self.pace,
            pacer: Pacer::new(self.rate_hz, self.pace),
        }))
    }
}

impl<T: Sample> Inline for NullSource<T> {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Fill(self.out.chunks())
    }

    #[inline]
    fn fill(&mut self, cx: &mut Context, samples: &mut [u8], info: &mut Info) -> bool {
        let Some(number) = self.numbers.next_of_several() else { return false };
        info.start = number * (samples.len() / size_of::<T>()) as u64;
        self.numbers.used(cx);
        true
    }
}

/// Discards its input.
pub struct NullSink<M: Message> {
    /// Messages to discard.
    pub input: Input<M>,
}

impl<M: Message> Default for NullSink<M> {
    fn default() -> Self {
        NullSink { input: Input::default() }
    }
}

impl<M: Message> Operator for NullSink<M> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    #[inline]
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        drop(self.input.pop(cx));
        Ok(Step::Wait)
    }

    fn inline(&mut self) -> Option<&mut dyn Inline> {
        Some(self)
    }

    fn replica(&self) -> Option<Box<dyn Operator>> {
        Some(Box::<NullSink<M>>::default())
    }
}

impl<M: Message> Inline for NullSink<M> {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Drain(self.input.edge())
    }

    #[inline]
    fn drain(&mut self, _: &mut Context, _: &[u8], _: &Info) -> bool {
        true
    }
}

/// Unwritten chunks to send.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NullSourceParameters {
    /// How many chunks to send; without it, the source never ends.
    #[serde(default)]
    count: Option<u64>,
    /// Samples per chunk; without it, as many as fit the quantum of the output edge.
    #[serde(default)]
    size: Option<usize>,
    /// Samples per second; without it, chunks are sent as fast as possible.
    #[serde(default)]
    rate: Option<Hertz>,
    /// Used if `rate` is set. `real`: a chunk is sent when its last sample is due. `fast`: as soon as there
    /// is room.
    #[serde(default = "real")]
    pace: Pace,
}

fn source<T: Sample>(p: &NullSourceParameters, _: &Folders) -> Result<NullSource<T>, Error> {
    let mut source = NullSource::new(p.count);
    if let Some(size) = p.size {
        source = source.size(size)?;
    }
    if let Some(Hertz(rate_hz)) = p.rate {
        source = source.rate(rate_hz, p.pace)?;
    }
    Ok(source)
}

/// `null.sink` has no parameters.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NullSinkParameters {}

fn sink<M: Message>(_: &NullSinkParameters, _: &Folders) -> Result<NullSink<M>, Error> {
    Ok(NullSink::default())
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "sends chunks with arbitrary content, for benchmarks";
    registry.add(Kind::new("null.source", text, "count = 1000", source::<f32>));
    registry.add(Kind::new("null.source.complex", text, "count = 1000", source::<Complex<f32>>));
    registry.add(Kind::new("null.source.bytes", text, "count = 1000", source::<u8>));
    let text = "discards chunks";
    registry.add(Kind::new("null.sink", text, "", sink::<Chunk<f32>>));
    registry.add(Kind::new("null.sink.complex", text, "", sink::<Chunk<Complex<f32>>>));
    registry.add(Kind::new("null.sink.bytes", text, "", sink::<Chunk<u8>>));
    registry.add(Kind::new("count.sink", "discards numbers", "", sink::<u64>));
}
