//! Operators made of generators: sources of samples that keep time.

use crate::operator::changes::Changes;
use crate::operator::chunk::{Chunk, Info, Sample};
use crate::operator::inline::{Inline, Shortcut};
use crate::operator::kernel::{Change, not_settable};
use crate::operator::stream::say;
use crate::operator::{Ending, Operator, Step};
use crate::{Context, Error, Output, Pace, Pacer, Ports, Rate, Value};

/// Rate, pace and length of the stream that a [`Generator`] makes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StreamTiming {
    /// Samples per second; 0 for a stream without a rate, which keeps no time.
    pub rate_hz: f64,
    /// Pace, if the run does not ask for another.
    pub pace: Pace,
    /// Number of samples; `None` for a stream without end.
    pub count: Option<u64>,
}

/// A source of samples that computes them. It sees slices of samples, not chunks: what it writes must not
/// depend on how long the slices are.
///
/// [`Generated`] makes an operator of it, and handles chunks, pace, positions and changes of parameters.
pub trait Generator: Send + 'static {
    /// Type of a sample.
    type Sample: Sample;

    /// Returns rate, pace and length of the stream. Asked once, when the operator is made.
    fn timing(&self) -> StreamTiming;

    /// Writes the next samples.
    fn generate(&mut self, samples: &mut [Self::Sample]);

    /// Like [`Kernel::note`](crate::Kernel::note).
    fn note(&self) -> Option<String> {
        None
    }

    /// Like [`Kernel::settable`](crate::Kernel::settable).
    fn settable(&self) -> &'static [&'static str] {
        &[]
    }

    /// Like [`Kernel::change`](crate::Kernel::change).
    ///
    /// # Errors
    /// Like [`Kernel::change`](crate::Kernel::change).
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error>
    where
        Self: Sized,
    {
        let _ = value;
        Err(not_settable(name))
    }
}

/// A source made of a [`Generator`]: it sends chunks as large as its edges allow.
///
/// Under [`Pace::Real`] a chunk is sent when its last sample is due, under [`Pace::Fast`] as soon as there is
/// room. Positions count from 0. A parameter can change at any sample; samples count in the order in which
/// they are sent.
///
/// ```
/// use onbeat_runtime::testing::Trial;
/// use onbeat_runtime::{Generated, Generator, Pace, StreamTiming};
///
/// struct Ramp(f32);
/// impl Generator for Ramp {
///     type Sample = f32;
///     fn timing(&self) -> StreamTiming {
///         StreamTiming { rate_hz: 48e3, pace: Pace::Real, count: Some(10_000) }
///     }
///     fn generate(&mut self, samples: &mut [f32]) {
///         for x in samples {
///             *x = self.0;
///             self.0 += 1.0;
///         }
///     }
/// }
/// let seen = Trial::new(Generated::new(Ramp(0.0))).run();
/// assert_eq!(seen.samples::<f32>("out"), (0..10_000).map(|n| n as f32).collect::<Vec<_>>());
/// ```
pub struct Generated<G: Generator> {
    /// The samples.
    pub out: Output<Chunk<G::Sample>>,
    generator: G,
    timing: StreamTiming,
    pacer: Pacer,
    total: u64,
    sent: u64,
    changes: Changes<G>,
    /// Whether the run waits until samples are due; true before the start.
    waits: bool,
}

impl<G: Generator> Generated<G> {
    /// Makes a source with the port `out`.
    pub fn new(generator: G) -> Self {
        let timing = generator.timing();
        Generated {
            out: Output::default(),
            generator,
            timing,
            pacer: Pacer::new(timing.rate_hz, timing.pace),
            total: timing.count.unwrap_or(u64::MAX),
            sent: 0,
            changes: Changes::default(),
            waits: true,
        }
    }

    /// Writes the next samples, and makes the changes between them.
    fn write(&mut self, mut samples: &mut [G::Sample], info: &mut Info) -> Result<(), Error> {
        (info.start, info.rate_hz) = (self.sent, self.timing.rate_hz);
        while !samples.is_empty() {
            self.changes.make(self.sent, &mut self.generator)?;
            let count = self.changes.before_next(self.sent, samples.len());
            let (now, later) = samples.split_at_mut(count);
            self.generator.generate(now);
            self.sent += count as u64;
            samples = later;
        }
        Ok(())
    }
}

impl<G: Generator> Operator for Generated<G> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.waits = self.timing.rate_hz > 0.0 && cx.pace(self.timing.pace) == Pace::Real;
        if self.timing.rate_hz > 0.0 && self.total < u64::MAX {
            cx.set_length_ns(self.pacer.time_ns(self.total));
        }
        Ok(())
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let bytes = size_of::<G::Sample>();
        self.pacer.kept_hz(pace).map(|rate_hz| Rate::Samples { rate_hz, chunk: None, bytes })
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.sent == self.total {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let end = self.total.min(self.sent.saturating_add(chunk.capacity() as u64));
        if let Some(wait) = self.pacer.wait(cx, self.sent, end) {
            return Ok(wait);
        }
        chunk.truncate((end - self.sent) as usize);
        if let Some((samples, info)) = chunk.parts() {
            self.write(samples, info)?;
        }
        self.out.push(cx, chunk)?;
        Ok(if self.sent == self.total { Step::Done } else { Step::Again })
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        say(self.generator.note(), cx, ending);
        say(self.changes.note(self.sent), cx, ending);
        Ok(())
    }

    fn inline(&mut self) -> Option<&mut dyn Inline> {
        // A source that waits between its chunks would be stepped anyway.
        (self.timing.pace == Pace::Fast).then_some(self)
    }

    fn settable(&self) -> &'static [&'static str] {
        self.generator.settable()
    }

    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        self.generator.change(name, value)?(&mut self.generator)
    }

    fn set_at(&mut self, _: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        let change = self.generator.change(name, value)?;
        self.changes.add(sample, self.sent, change)
    }
}

impl<G: Generator> Inline for Generated<G> {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Fill(self.out.chunks())
    }

    fn fill(&mut self, cx: &mut Context, samples: &mut [u8], info: &mut Info) -> bool {
        let samples = G::Sample::samples_mut(samples);
        let is_last = self.total - self.sent <= samples.len() as u64;
        if self.waits || is_last || !self.changes.is_empty() {
            return false;
        }
        cx.set_time(self.pacer.time_ns(self.sent), None);
        // No change is left that could fail.
        self.write(samples, info).is_ok()
    }
}
