//! The pilot of a stereo station: its phase, and whether there is one.

use crate::dsp::{FirDecimator, LowPass, angle};
use crate::phase_loops::{LockDetector, LoopGains, PhaseTracker};
use num_complex::Complex;
use onbeat_runtime::{Error, Kernel};
use std::f64::consts::FRAC_1_SQRT_2;

/// Frequency of the pilot.
pub(super) const PILOT_HZ: f64 = 19e3;

/// Largest deviation of the pilot in hertz: 500 ppm.
const RANGE_HZ: f64 = 10.0;

/// Rate of corrections, at least.
const CORRECTED_HZ: f64 = 8e3;

/// Length of the windows in which the lock is judged, and time in which left and right go apart, in seconds.
const JUDGED_S: f64 = 0.05;
const BLEND_S: f64 = 0.02;

/// Quality from which on there is a pilot, and below which there is none.
const THRESHOLDS: (f64, f64) = (0.5, 0.35);

/// Least amplitude of a pilot, as a share of the level of the whole input: what is left of the sound behind
/// the filter is not a pilot.
const LEAST: f64 = 0.01;

/// Follows the pilot, and knows how far left and right may go apart.
///
/// The input, turned back by the reference, passes a low-pass that stops all but the pilot, and is decimated.
/// Each of its samples corrects the reference.
#[derive(Debug, Clone)]
pub(super) struct PilotLoop {
    tracker: PhaseTracker,
    filter: FirDecimator<Complex<f32>>,
    lock: LockDetector,
    /// Samples per correction, and those that have come.
    factor: usize,
    turned: Vec<Complex<f32>>,
    /// The reference, and its turn per sample.
    reference: Complex<f64>,
    step: Complex<f64>,
    /// From 0 (mono) to 1 (stereo), and the share of a correction by which it moves.
    blend: f64,
    blend_share: f64,
    rate_hz: f64,
    /// Twice the mean of the filter's output while it is locked: the pilot's amplitude.
    amplitude: f64,
    amplitude_share: f64,
}

impl PilotLoop {
    pub fn new(bandwidth_hz: f64, rate_hz: f64) -> Result<Self, Error> {
        let factor = (rate_hz / CORRECTED_HZ).floor().max(1.0);
        let corrected_hz = rate_hz / factor;
        // The sound is 4 kHz away on both sides.
        let low_pass = LowPass { cutoff_hz: 2e3, transition_hz: 3.5e3, attenuation_db: 80.0 };
        let mut filter = FirDecimator::new(factor as u32, low_pass)?;
        filter.start(rate_hz)?;
        let mut gains = LoopGains::new(bandwidth_hz / corrected_hz, FRAC_1_SQRT_2);
        // The frequency is one of samples, and is corrected once in `factor` of them.
        gains.step /= factor;
        let share = |time_s: f64| (1.0 / (time_s * corrected_hz)).min(1.0);
        let mut it = PilotLoop {
            tracker: PhaseTracker::new(gains, PILOT_HZ / rate_hz, RANGE_HZ / rate_hz),
            filter,
            lock: LockDetector::new(JUDGED_S * corrected_hz, THRESHOLDS),
            factor: factor as usize,
            turned: Vec::with_capacity(factor as usize),
            reference: Complex::default(),
            step: Complex::default(),
            blend: 0.0,
            blend_share: share(BLEND_S),
            rate_hz,
            amplitude: 0.0,
            amplitude_share: share(JUDGED_S),
        };
        it.restart();
        Ok(it)
    }

    /// Reads the reference after the tracker was corrected.
    fn restart(&mut self) {
        self.reference = self.tracker.reference();
        self.step = Complex::from_polar(1.0, self.tracker.frequency() * std::f64::consts::TAU);
    }

    /// Takes a sample. Returns the reference, in phase with a pilot that is a cosine, and the blend.
    pub fn push(&mut self, x: f32) -> (Complex<f32>, f32) {
        let reference = Complex::new(self.reference.re as f32, self.reference.im as f32);
        self.turned.push(reference.conj() * x);
        self.reference *= self.step;
        let blend = self.blend as f32;
        if self.turned.len() == self.factor {
            self.correct();
        }
        (reference, blend)
    }

    /// Corrects the reference by the samples since the last time.
    fn correct(&mut self) {
        let mut found = [Complex::new(0.0, 0.0); 2];
        let power = self.turned.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / self.factor as f64;
        // The filter's output has half of the pilot's amplitude.
        let least = LEAST / 2.0 * power.sqrt();
        let made = self.filter.process(&self.turned, &mut found).produced;
        self.turned.clear();
        self.tracker.turn(self.factor as f64);
        for pilot in &found[..made] {
            let (re, size) = (f64::from(pilot.re), f64::from(pilot.norm()));
            self.tracker.correct(angle(pilot.re, pilot.im).into());
            let is_locked = self.lock.push(re, size.max(least));
            self.blend += (f64::from(u8::from(is_locked)) - self.blend) * self.blend_share;
            if is_locked {
                self.amplitude += (2.0 * re - self.amplitude) * self.amplitude_share;
            }
        }
        // Exactly mono and exactly stereo.
        if (self.blend - self.blend.round()).abs() < 1e-4 {
            self.blend = self.blend.round();
        }
        self.restart();
    }

    /// Whether there is a pilot.
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// Frequency of the pilot in hertz.
    pub fn frequency_hz(&self) -> f64 {
        self.tracker.frequency() * self.rate_hz
    }

    /// Amplitude of the pilot, when it was locked last.
    pub fn amplitude(&self) -> f64 {
        self.amplitude
    }
}
