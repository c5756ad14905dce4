//! Runs sections of second order over a stream, and fades to others.

use crate::dsp::{FirSample, not_finite};
use crate::equalizer::{BiquadWeights, CascadeBank};
use onbeat_runtime::Error;

/// Time over which the output changes from one filter to the next, in seconds.
const FADE_S: f64 = 0.01;

/// Longest time that the next filter gets before, to forget that it was another one.
const MOST_SETTLING_S: f64 = 0.5;

/// Time constants of a decay to 1 %.
const SETTLED: f64 = 4.6;

/// Sections one after the other, in double precision, for interleaved channels of real or complex samples.
#[derive(Debug, Clone, Default)]
pub(super) struct SectionFilter {
    bank: Option<CascadeBank>,
    /// Whether it has filtered a sample.
    is_used: bool,
    fade: Option<Fade>,
    /// Rate in frames.
    rate_hz: f64,
    /// Filter that begins after the current fade.
    next: Option<Vec<BiquadWeights>>,
    floats: usize,
    not_finite: u64,
}

/// The filter before the last change, which goes on beside the new one.
#[derive(Debug, Clone)]
struct Fade {
    old: CascadeBank,
    /// Frames since the change.
    frames: usize,
    /// Frames until the fade begins, and until it ends.
    begin: usize,
    end: usize,
}

impl Fade {
    fn new(old: CascadeBank, filters: &[BiquadWeights], rate_hz: f64) -> Self {
        let radius = filters.iter().map(|filter| radius(filter.a)).fold(0.0, f64::max);
        let settling = (SETTLED / -radius.ln()).min(MOST_SETTLING_S * rate_hz);
        let begin = settling as usize;
        Fade { old, frames: 0, begin, end: begin + (FADE_S * rate_hz).ceil().max(1.0) as usize }
    }

    /// Part of the new filter in the output.
    fn part(&self) -> f32 {
        self.frames.saturating_sub(self.begin) as f32 / (self.end - self.begin) as f32
    }
}

/// Distance of the pole farthest from 0.
fn radius([a1, a2]: [f64; 2]) -> f64 {
    let under_root = a1 * a1 / 4.0 - a2;
    if under_root < 0.0 { a2.sqrt() } else { a1.abs() / 2.0 + under_root.sqrt() }
}

impl SectionFilter {
    /// Begins with empty memory.
    pub fn start<T: FirSample>(&mut self, filters: &[BiquadWeights], channels: usize, rate_hz: f64) {
        let count = self.not_finite;
        *self = SectionFilter {
            bank: Some(CascadeBank::new(filters, channels * T::FLOATS)),
            floats: T::FLOATS,
            rate_hz: rate_hz / channels as f64,
            not_finite: count,
            ..SectionFilter::default()
        };
    }

    /// Changes the filters, as many as there were. The new ones begin with a copy of the memory, and when
    /// they have settled, the output fades to them.
    pub fn change(&mut self, filters: Vec<BiquadWeights>) {
        let Some(bank) = &mut self.bank else { return };
        if !self.is_used {
            bank.set(&filters);
        } else if self.fade.is_some() {
            self.next = Some(filters);
        } else {
            self.fade = Some(Fade::new(bank.clone(), &filters, self.rate_hz));
            bank.set(&filters);
        }
    }

    pub fn map<T: FirSample>(&mut self, samples: &mut [T]) {
        self.is_used |= !samples.is_empty();
        let samples: &mut [f32] = bytemuck::cast_slice_mut(samples);
        for sample in samples.chunks_exact_mut(self.floats.max(1)) {
            if !sample.iter().all(|part| part.is_finite()) {
                sample.fill(0.0);
                self.not_finite += 1;
            }
        }
        let mut at = 0;
        while self.fade.is_some() && at < samples.len() {
            self.faded(&mut samples[at]);
            at += 1;
        }
        if let Some(bank) = &mut self.bank {
            bank.run(&mut samples[at..]);
        }
    }

    /// Filters a sample during a fade.
    fn faded(&mut self, sample: &mut f32) {
        let (Some(bank), Some(fade)) = (&mut self.bank, &mut self.fade) else { return };
        let mut old = *sample;
        fade.old.one(&mut old);
        bank.one(sample);
        *sample = old + (*sample - old) * fade.part();
        if bank.channel() == 0 {
            fade.frames += 1;
            if fade.frames >= fade.end {
                self.fade = None;
                if let Some(next) = self.next.take() {
                    self.change(next);
                }
            }
        }
    }

    pub fn note(&self) -> Option<String> {
        not_finite(self.not_finite, "counted as 0")
    }
}

/// Makes sections of their coefficients.
pub(super) fn of_coefficients(sections: &[[f64; 6]]) -> Result<Vec<BiquadWeights>, Error> {
    let section = |(number, weights): (usize, &[f64; 6])| {
        let wrong = |text: &str| Err(Error::new(format!("`sos[{number}]` is {weights:?}: {text}")));
        let [b0, b1, b2, a0, a1, a2] = *weights;
        let scaled = [b0, b1, b2, a1, a2].map(|weight| weight / a0);
        if !scaled.iter().all(|weight| weight.is_finite() && weight.abs() < 1e9) {
            return wrong("it must be six finite numbers of which the fourth, a0, is not 0");
        }
        let [b0, b1, b2, a1, a2] = scaled;
        if a2.abs() >= 1.0 || a1.abs() >= 1.0 + a2 {
            return wrong("its poles must be inside the unit circle, or its output would grow without end");
        }
        Ok(BiquadWeights { b: [b0, b1, b2], a: [a1, a2] })
    };
    sections.iter().enumerate().map(section).collect()
}
