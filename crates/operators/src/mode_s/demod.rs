//! The frame search as an operator.

use super::{Frame, FrameSearch, RATE_HZ};
use crate::check;
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Operator, Output, Ports, Sample, Step};

/// A sample that has a magnitude.
pub trait MagnitudeSample: Sample {
    /// The magnitude; not finite if the sample is not.
    fn magnitude(self) -> f32;
}

impl MagnitudeSample for f32 {
    #[inline(always)]
    fn magnitude(self) -> f32 {
        self
    }
}

impl MagnitudeSample for Complex<f32> {
    #[inline(always)]
    fn magnitude(self) -> f32 {
        (self.re * self.re + self.im * self.im).sqrt()
    }
}

/// Finds Mode S frames in a stream at 2 MS/s, of magnitudes or of complex samples: see [`FrameSearch`].
///
/// The result does not depend on chunk borders. A frame is sent when all its samples have arrived, with its
/// own time as source time. A sample that is not finite counts as 0; a note gives the number of such samples
/// at the end.
pub struct Demod<T: MagnitudeSample> {
    /// Samples to search.
    pub input: Input<Chunk<T>>,
    /// Frames found, in order of time.
    pub out: Output<Frame>,
    search: FrameSearch,
    /// The current chunk, and the number of its samples that are used up.
    held: Option<(Chunk<T>, usize)>,
    /// Whether the search may have more frames in the samples it took.
    more: bool,
    started: bool,
    finished: bool,
    not_finite: u64,
    /// Number of frames found.
    frames: u64,
    level: SampledLevel,
}

/// Level of the samples, from a few of each chunk.
#[derive(Debug, Default)]
struct SampledLevel {
    /// Number of all samples.
    samples: u64,
    looked_at: u64,
    sum: f64,
    /// Number of those looked at that are at full scale.
    full: u64,
}

impl SampledLevel {
    /// Samples of a chunk that are looked at.
    const SOME: usize = 64;

    fn look<T: MagnitudeSample>(&mut self, samples: &[T]) {
        self.samples += samples.len() as u64;
        for size in samples.iter().take(Self::SOME).map(|x| x.magnitude()).filter(|size| size.is_finite()) {
            self.looked_at += 1;
            self.sum += f64::from(size);
            self.full += u64::from(size >= 0.99);
        }
    }

    /// What may be wrong if there was no frame.
    fn hint(&self) -> String {
        let looked_at = self.looked_at.max(1) as f64;
        let (level_db, full) = (20.0 * (self.sum / looked_at).log10(), 100.0 * self.full as f64 / looked_at);
        format!(
            "no frame in {:.2} s of samples: their mean magnitude is {level_db:.1} dB of full scale, and {full:.0} % are at \
             full scale; is this 1090 MHz, recorded at {} MS/s (or resampled to it), neither too weak nor too strong?",
            self.samples as f64 / RATE_HZ,
            RATE_HZ / 1e6
        )
    }
}

impl<T: MagnitudeSample> Demod<T> {
    /// Creates a demodulator that treats an aircraft as known for `remember_s` seconds after its last frame.
    /// [`FrameSearch`] explains which frames this affects.
    ///
    /// # Errors
    /// When `remember_s` is not from 0 to 10⁶.
    pub fn new(remember_s: f64) -> Result<Self, Error> {
        check::within("remember", remember_s, 0.0, 1e6, "\"60 s\" is usual")?;
        Ok(Demod {
            input: Input::default(),
            out: Output::default(),
            search: FrameSearch::new((remember_s * RATE_HZ) as u64),
            held: None,
            more: false,
            started: false,
            finished: false,
            not_finite: 0,
            frames: 0,
            level: SampledLevel::default(),
        })
    }

    fn check_rate(rate_hz: f64) -> Result<(), Error> {
        if rate_hz == RATE_HZ {
            return Ok(());
        }
        check::rate(rate_hz)?;
        Err(Error::new(format!(
            "the sample rate of its input is {rate_hz} Hz, but it works only at {RATE_HZ} Hz, one sample per \
             pulse: resample the input to that rate"
        )))
    }

    /// Passes samples to the search.
    fn take(&mut self) {
        let Some((chunk, used)) = &mut self.held else { return };
        if *used == 0 {
            self.level.look(chunk);
        }
        let not_finite = &mut self.not_finite;
        *used += self.search.take(&chunk[*used..], |x| {
            let size = x.magnitude();
            if size.is_finite() {
                size
            } else {
                *not_finite += 1;
                0.0
            }
        });
        if *used == chunk.len() {
            self.held = None;
        }
        self.more = true;
    }

    /// Handles the end of the stream. Returns whether there was anything left to do.
    fn finish(&mut self, cx: &mut Context) -> bool {
        if std::mem::replace(&mut self.finished, true) {
            return false;
        }
        self.search.finish();
        self.more = true;
        cx.set_stamp(cx.stamp().without_due());
        if self.not_finite > 0 {
            cx.note(format!("{} samples were not finite and counted as 0", self.not_finite));
        }
        true
    }
}

impl<T: MagnitudeSample> Operator for Demod<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Self::check_rate(rate_hz).map(|()| None)
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if !self.more && self.held.is_none() {
            if let Some(chunk) = self.input.pop(cx) {
                Self::check_rate(chunk.rate_hz())?;
                self.started = true;
                self.held = Some((chunk, 0));
            } else if !self.input.is_ended(cx) {
                return Ok(Step::Wait);
            } else if !self.finish(cx) {
                return Ok(Step::Done);
            }
        }
        loop {
            if !self.more {
                if self.held.is_none() {
                    break;
                }
                self.take();
            }
            for _ in 0..self.out.room(cx).min(64) {
                let Some(frame) = self.search.next() else {
                    self.more = false;
                    break;
                };
                cx.set_time((frame.time_s * 1e9) as u64, None);
                self.out.push(cx, frame)?;
                self.frames += 1;
            }
            if self.more {
                return Ok(Step::Again);
            }
        }
        Ok(if self.input.is_ended(cx) { Step::Again } else { Step::Wait })
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if self.frames == 0 && self.level.samples > 0 {
            cx.note(self.level.hint());
        }
        Ok(())
    }
}
