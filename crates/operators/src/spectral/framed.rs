//! Transforms the frames of a stream.

use super::{Measure, Window};
use crate::check;
use crate::dsp::fourier;
use crate::vectors::Vectors;
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Error, Input, Operator, Output, Ports, Sample, Stamp, Step, Tag};
use pulp::{Simd, WithSimd};
use std::sync::Arc;

/// Tags on the first result: the frequency of its first sample, and the step to the next one, in hertz.
pub(crate) const AXIS_FIRST: &str = "axis:first_hz";
pub(crate) const AXIS_STEP: &str = "axis:step_hz";

/// A sample type that can be transformed.
pub trait SpectralSample: Sample {
    /// Whether the type has an imaginary part.
    const IS_COMPLEX: bool;

    /// The sample as a complex number.
    fn complex(self) -> Complex<f32>;
}

impl SpectralSample for f32 {
    const IS_COMPLEX: bool = false;
    fn complex(self) -> Complex<f32> {
        Complex::new(self, 0.0)
    }
}

impl SpectralSample for Complex<f32> {
    const IS_COMPLEX: bool = true;
    fn complex(self) -> Complex<f32> {
        self
    }
}

#[doc = include_str!("../about/frames.md")]
pub struct Framed<T: SpectralSample, M: Measure> {
    /// Samples in.
    pub input: Input<Chunk<T>>,
    /// Results.
    pub out: Output<Chunk<M::Out>>,
    measure: M,
    weights: Vec<f32>,
    hop: usize,
    fft: Arc<dyn rustfft::Fft<f32>>,
    vectors: Vectors,
    /// The next frame, of which there are `filled` samples.
    frame: Vec<Complex<f32>>,
    filled: usize,
    /// Samples to skip before the next frame.
    skip: usize,
    transform: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    held: Option<(Chunk<T>, usize)>,
    /// Whether the measure has a result to send.
    ready: bool,
    finished: bool,
    rate_hz: Option<f64>,
    stamp: Stamp,
    sent: u64,
    not_finite: u64,
}

impl<T: SpectralSample, M: Measure> Framed<T, M> {
    /// Creates frames of `size` samples, one every `hop` samples.
    ///
    /// # Errors
    /// When the size is not from 2 to 2²⁰, or the hop not from 1 to 2³⁰.
    pub fn new(size: usize, hop: usize, window: Window, mut measure: M) -> Result<Self, Error> {
        check::within("size", size as f64, 2.0, 1_048_576.0, "powers of two are fastest")?;
        check::within("hop", hop as f64, 1.0, 1_073_741_824.0, "leave it out for the default")?;
        let weights = window.weights(size);
        measure.start(&weights, T::IS_COMPLEX);
        let fft = fourier::forward(size);
        Ok(Framed {
            input: Input::default(),
            out: Output::default(),
            measure,
            weights,
            hop,
            vectors: Vectors::new(),
            frame: vec![Complex::default(); size],
            filled: 0,
            skip: 0,
            transform: vec![Complex::default(); size],
            scratch: vec![Complex::default(); fft.get_inplace_scratch_len()],
            fft,
            held: None,
            ready: false,
            finished: false,
            rate_hz: None,
            stamp: Stamp::default(),
            sent: 0,
            not_finite: 0,
        })
    }

    /// Takes samples of the current chunk up to the end of the frame, and transforms the frame if it is
    /// complete.
    fn take(&mut self) {
        let Some((chunk, used)) = &mut self.held else { return };
        let rest = &chunk[*used..];
        let skip = self.skip.min(rest.len());
        let count = (self.frame.len() - self.filled).min(rest.len() - skip);
        self.skip -= skip;
        let places = &mut self.frame[self.filled..self.filled + count];
        self.not_finite += self.vectors.run(FiniteLoop { samples: &rest[skip..skip + count], places });
        self.filled += count;
        *used += skip + count;
        if *used == chunk.len() {
            self.held = None;
        }
        if self.filled < self.frame.len() {
            return;
        }
        let (frame, weights) = (&self.frame, &self.weights);
        self.vectors.run(WindowLoop { frame, weights, to: &mut self.transform });
        self.fft.process_with_scratch(&mut self.transform, &mut self.scratch);
        self.ready = self.measure.take(&self.transform);
        self.filled = self.frame.len().saturating_sub(self.hop);
        self.skip = self.hop.saturating_sub(self.frame.len());
        let begin = self.frame.len() - self.filled;
        self.frame.copy_within(begin.., 0);
    }

    /// Sends a result. Returns whether there was a chunk for it.
    fn send(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(false) };
        let len = self.measure.samples();
        if len > chunk.capacity() {
            return Err(Error::new(format!(
                "`size` is {}: a result has {len} samples, and the quantum of its edge has room for {}; give \
                 that edge `quantum = {}` or more, or a smaller size",
                self.weights.len(),
                chunk.capacity(),
                len * size_of::<M::Out>()
            )));
        }
        chunk.truncate(len);
        self.measure.write(chunk.edit_unique().expect("a new chunk is not shared"));
        let info = chunk.info_mut();
        info.start = self.sent;
        info.rate_hz =
            self.rate_hz.unwrap_or(0.0) * len as f64 / (self.hop as f64 * self.measure.frames() as f64);
        info.shape = [len as u32, 0, 0];
        if let Some(rate_hz) = self.rate_hz.filter(|&rate_hz| rate_hz > 0.0 && self.sent == 0) {
            let (first_hz, step_hz) = self.measure.axis(rate_hz);
            for (key, value) in [(AXIS_FIRST, first_hz), (AXIS_STEP, step_hz)] {
                info.tags.push(Tag { offset: 0, key: key.into(), value: value.into() });
            }
        }
        self.sent += len as u64;
        self.ready = false;
        cx.set_stamp(self.stamp);
        self.out.push(cx, chunk)?;
        Ok(true)
    }

    fn check_rate(&mut self, rate_hz: f64) -> Result<(), Error> {
        let known_hz = *self.rate_hz.get_or_insert(rate_hz);
        if known_hz == rate_hz {
            return Ok(());
        }
        Err(Error::new(format!(
            "the sample rate of its input changed from {known_hz} Hz to {rate_hz} Hz, but frames need a \
             single rate; resample before merging streams"
        )))
    }

    fn finish(&mut self, cx: &mut Context) {
        self.finished = true;
        self.ready = self.measure.finish();
        self.stamp = self.stamp.without_due();
        if self.not_finite > 0 {
            cx.note(format!("{} samples were not finite and counted as 0", self.not_finite));
        }
    }
}

/// Copies samples, those that are not finite as 0, and returns the number of these.
struct FiniteLoop<'f, T> {
    samples: &'f [T],
    places: &'f mut [Complex<f32>],
}

impl<T: SpectralSample> WithSimd for FiniteLoop<'_, T> {
    type Output = u64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> u64 {
        let mut bad = 0u32;
        for (x, place) in self.samples.iter().zip(self.places) {
            let x = x.complex();
            let is_finite = x.re.is_finite() & x.im.is_finite();
            bad += u32::from(!is_finite);
            *place = if is_finite { x } else { Complex::new(0.0, 0.0) };
        }
        bad.into()
    }
}

/// Multiplies a frame by the window.
struct WindowLoop<'w> {
    frame: &'w [Complex<f32>],
    weights: &'w [f32],
    to: &'w mut [Complex<f32>],
}

impl WithSimd for WindowLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for ((to, x), w) in self.to.iter_mut().zip(self.frame).zip(self.weights) {
            *to = x * w;
        }
    }
}

impl<T: SpectralSample, M: Measure> Operator for Framed<T, M> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out).fresh();
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            if self.ready {
                if self.out.room(cx) == 0 {
                    return Ok(Step::Again);
                }
                if !self.send(cx)? {
                    return Ok(Step::Wait);
                }
            } else if self.held.is_some() {
                self.take();
            } else if let Some(chunk) = self.input.pop(cx) {
                self.check_rate(chunk.rate_hz())?;
                self.stamp = cx.stamp();
                self.held = (!chunk.is_empty()).then_some((chunk, 0));
            } else if !self.input.is_ended(cx) {
                return Ok(Step::Wait);
            } else if self.finished {
                return Ok(Step::Done);
            } else {
                self.finish(cx);
            }
        }
    }
}
