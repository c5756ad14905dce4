//! From chunks of I/Q samples to chunks of soft bits.

use super::BLOCK;
use crate::dsp::{FirDecimator, not_finite};
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Kernel, Output, Stamp, Step};

/// Makes soft bits of filtered samples.
pub(super) trait Demodulator: Send + 'static {
    /// Takes samples behind the filter, at most [`BLOCK`].
    fn take(&mut self, samples: &[Complex<f32>], bits: &mut Vec<f32>);

    /// What to note at the end.
    fn note(&self) -> Option<String>;
}

/// A filter, and the demodulator behind it.
pub(super) struct FilteredDemodulator<D> {
    pub filter: FirDecimator<Complex<f32>>,
    pub demodulator: D,
    /// Soft bits per second.
    pub bits_hz: f64,
    /// Samples behind the stream that bring the last bits.
    pub behind: usize,
}

/// Carries chunks through a demodulator. The bits do not depend on where chunks begin and end.
pub(super) struct BitDriver<D> {
    chain: Option<FilteredDemodulator<D>>,
    rate_hz: f64,
    /// Bits that were not sent, and how many of them were.
    bits: Vec<f32>,
    used: usize,
    sent: u64,
    stamp: Stamp,
    is_finished: bool,
    not_finite: u64,
}

impl<D> Default for BitDriver<D> {
    fn default() -> Self {
        BitDriver {
            chain: None,
            rate_hz: 0.0,
            bits: Vec::new(),
            used: 0,
            sent: 0,
            stamp: Stamp::default(),
            is_finished: false,
            not_finite: 0,
        }
    }
}

const ZERO: Complex<f32> = Complex::new(0.0, 0.0);

impl<D: Demodulator> FilteredDemodulator<D> {
    /// Takes samples. Returns how many of them were not finite; they count as 0.
    fn take(&mut self, samples: &[Complex<f32>], bits: &mut Vec<f32>) -> u64 {
        let (mut good, mut filtered) = ([ZERO; BLOCK], [ZERO; BLOCK]);
        let mut wrong = 0;
        for part in samples.chunks(BLOCK) {
            for (to, from) in good.iter_mut().zip(part) {
                wrong += u64::from(!from.is_finite());
                *to = if from.is_finite() { *from } else { ZERO };
            }
            let made = self.filter.process(&good[..part.len()], &mut filtered).produced;
            self.demodulator.take(&filtered[..made], bits);
        }
        wrong
    }

    /// Takes the end of the stream.
    fn finish(&mut self, bits: &mut Vec<f32>) {
        let mut rest = [ZERO; BLOCK];
        loop {
            let made = self.filter.finish(&mut rest);
            self.demodulator.take(&rest[..made], bits);
            if made == 0 {
                break;
            }
        }
        for _ in 0..self.behind {
            self.demodulator.take(&[ZERO], bits);
        }
    }
}

impl<D: Demodulator> BitDriver<D> {
    pub fn step(
        &mut self,
        input: &mut Input<Chunk<Complex<f32>>>,
        out: &mut Output<Chunk<f32>>,
        make: impl FnOnce(f64) -> Result<FilteredDemodulator<D>, Error>,
        cx: &mut Context,
    ) -> Result<Step, Error> {
        if self.used < self.bits.len() {
            return self.send(out, cx);
        }
        self.bits.clear();
        self.used = 0;
        if let Some(chunk) = input.pop(cx) {
            self.stamp = cx.stamp();
            let rate_hz = chunk.rate_hz();
            if self.chain.is_none() {
                (self.chain, self.rate_hz) = (Some(make(rate_hz)?), rate_hz);
            } else if self.rate_hz != rate_hz {
                return Err(Error::new(format!(
                    "the sample rate of its input changed from {} Hz to {rate_hz} Hz: resample before merging streams",
                    self.rate_hz
                )));
            }
            if let Some(chain) = &mut self.chain {
                self.not_finite += chain.take(&chunk, &mut self.bits);
            }
        } else if !input.is_ended(cx) {
            return Ok(Step::Wait);
        } else if let Some(chain) = self.chain.as_mut().filter(|_| !self.is_finished) {
            self.is_finished = true;
            self.stamp = self.stamp.without_due();
            chain.finish(&mut self.bits);
        } else {
            return Ok(Step::Done);
        }
        if self.bits.is_empty() { Ok(Step::Again) } else { self.send(out, cx) }
    }

    fn send(&mut self, out: &mut Output<Chunk<f32>>, cx: &mut Context) -> Result<Step, Error> {
        let Some(mut chunk) = out.chunk(cx) else { return Ok(Step::Wait) };
        let left = &self.bits[self.used..];
        let count = left.len().min(chunk.capacity());
        chunk.truncate(count);
        chunk.edit_unique().expect("a new chunk is not shared").copy_from_slice(&left[..count]);
        let info = chunk.info_mut();
        info.start = self.sent;
        info.rate_hz = self.chain.as_ref().map_or(0.0, |chain| chain.bits_hz);
        (self.used, self.sent) = (self.used + count, self.sent + count as u64);
        cx.set_stamp(self.stamp);
        out.push(cx, chunk)?;
        Ok(Step::Again)
    }

    /// Notes what there is to say at the end.
    pub fn say(&self, cx: &mut Context, ending: Ending) {
        if ending == Ending::Failed {
            return;
        }
        let note = self.chain.as_ref().and_then(|chain| chain.demodulator.note());
        note.into_iter().chain(not_finite(self.not_finite, "counted as 0")).for_each(|note| cx.note(note));
    }
}
