//! The clock of a receiver: finds the middles of symbols in a waveform.

use crate::phase_loops::LoopGains;
use num_complex::Complex;
use onbeat_runtime::Sample;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Add, Mul};

/// How a symbol clock measures that it is early or late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimingDetector {
    /// Where a line through three samples, half a symbol apart, crosses 0 between two symbols of unlike
    /// sign. It does not depend on the level.
    #[default]
    ZeroCrossing,
    /// The sample between two symbols times their difference (Gardner 1986), over the mean power.
    Gardner,
    /// Each symbol times the sign of the other one (Mueller and Müller 1976), over the mean magnitude.
    MuellerMuller,
}

/// Settings of a [`SymbolClock`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockSettings {
    pub detector: TimingDetector,
    /// Nominal length of a symbol in samples.
    pub period: f64,
    /// Noise bandwidth of the loop, as a share of the symbol rate.
    pub bandwidth: f64,
    /// Largest deviation from the nominal length, as a share of it.
    pub deviation: f64,
}

/// Damping of the loop: no overshoot of the phase that one could see.
const DAMPING: f64 = 1.0;

/// Share of a new symbol in the mean magnitude.
const LEVEL_SHARE: f64 = 1.0 / 32.0;

/// Samples in which there are symbols: one part, or two that are timed together.
pub trait SymbolSample: Sample + Add<Output = Self> + Mul<f32, Output = Self> {
    /// The parts of a sample; those beyond [`PARTS`](SymbolSample::PARTS) are 0.
    fn parts(self) -> [f64; 2];

    /// Number of parts.
    const PARTS: usize;

    /// Whether all parts are finite.
    fn is_good(self) -> bool {
        self.parts().iter().all(|part| part.is_finite())
    }
}

impl SymbolSample for f32 {
    const PARTS: usize = 1;

    fn parts(self) -> [f64; 2] {
        [self.into(), 0.0]
    }
}

impl SymbolSample for Complex<f32> {
    const PARTS: usize = 2;

    fn parts(self) -> [f64; 2] {
        [self.re.into(), self.im.into()]
    }
}

/// A loop of second order that follows the phase and the rate of symbols.
#[derive(Debug, Clone)]
pub(crate) struct SymbolClock<T = f32> {
    settings: ClockSettings,
    phase_gain: f64,
    rate_gain: f64,
    /// Length of a symbol in samples.
    period: f64,
    /// Samples from `recent[1]` to the next half symbol.
    next: f64,
    /// Whether the next half symbol is between two symbols.
    is_between: bool,
    recent: [T; 4],
    /// Sample between the last symbol and the next one.
    between: [f64; 2],
    last: [f64; 2],
    /// Mean magnitude of each part.
    level: [f64; 2],
}

/// A symbol that the clock has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Strobe<T = f32> {
    /// The waveform in the middle of the symbol.
    pub value: T,
    /// Place of the middle between the last sample but two (0) and the last but one (1).
    pub fraction: f64,
}

impl<T> Strobe<T> {
    /// Samples from the middle of a symbol to the newest sample, for a fraction of 0.
    pub const BEHIND: u64 = 2;
}

/// Cubic interpolation (Catmull and Rom) between the two samples in the middle.
pub(crate) fn interpolate<T: Copy + Add<Output = T> + Mul<f32, Output = T>>(x: &[T; 4], fraction: f64) -> T {
    let t = fraction as f32;
    let (t2, t3) = (t * t, t * t * t);
    x[0] * (-0.5 * t + t2 - 0.5 * t3)
        + x[1] * (1.0 - 2.5 * t2 + 1.5 * t3)
        + x[2] * (0.5 * t + 2.0 * t2 - 1.5 * t3)
        + x[3] * (0.5 * t3 - 0.5 * t2)
}

fn finite_or_zero<T: SymbolSample>(x: T) -> T {
    if x.is_good() { x } else { T::zeroed() }
}

impl<T: SymbolSample> SymbolClock<T> {
    pub fn new(settings: ClockSettings) -> Self {
        let gains = LoopGains::new(settings.bandwidth, DAMPING);
        SymbolClock {
            settings,
            phase_gain: gains.phase,
            rate_gain: gains.step,
            period: settings.period,
            next: settings.period / 2.0,
            is_between: true,
            recent: [T::zeroed(); 4],
            between: [0.0; 2],
            last: [0.0; 2],
            level: [0.0; 2],
        }
    }

    /// Length of a symbol in samples, as measured.
    pub fn period(&self) -> f64 {
        self.period
    }

    /// Takes a sample; one that is not finite counts as 0. Returns a symbol whose middle is now known.
    pub fn push(&mut self, x: T) -> Option<Strobe<T>> {
        self.recent.copy_within(1.., 0);
        self.recent[3] = finite_or_zero(x);
        let mut strobe = None;
        while self.next < 1.0 {
            let fraction = self.next;
            let value = finite_or_zero(interpolate(&self.recent, fraction));
            self.next += self.period / 2.0;
            if self.is_between {
                self.between = value.parts();
            } else {
                self.correct(value.parts());
                strobe = Some(Strobe { value, fraction });
            }
            self.is_between = !self.is_between;
        }
        self.next -= 1.0;
        strobe
    }

    /// Moves the next half symbol, and changes the rate, by how late this symbol was taken.
    fn correct(&mut self, value: [f64; 2]) {
        let late = (0..T::PARTS).map(|part| self.late(part, value[part])).sum::<f64>() / T::PARTS as f64;
        let late = late.clamp(-0.5, 0.5);
        let late = if late.is_nan() { 0.0 } else { late };
        self.last = value;
        self.next -= self.phase_gain * late * self.period;
        let ClockSettings { period, deviation, .. } = self.settings;
        let limits = (period * (1.0 - deviation), period * (1.0 + deviation));
        self.period = (self.period * (1.0 - self.rate_gain * late)).clamp(limits.0, limits.1);
    }

    /// How late the symbol was taken, as a share of its length, by one of its parts.
    fn late(&mut self, part: usize, value: f64) -> f64 {
        let (last, between, level) = (self.last[part], self.between[part], self.level[part]);
        let step = value - last;
        let is_change = (value >= 0.0) != (last >= 0.0);
        self.level[part] += (value.abs() - level) * LEVEL_SHARE;
        match self.settings.detector {
            TimingDetector::ZeroCrossing if is_change => between / step,
            TimingDetector::ZeroCrossing => 0.0,
            _ if level <= 0.0 => 0.0,
            TimingDetector::Gardner => between * step / (4.0 * level * level),
            TimingDetector::MuellerMuller => (value.signum() * last - last.signum() * value) / level,
        }
    }
}
