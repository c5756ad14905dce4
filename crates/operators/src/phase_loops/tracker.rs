//! An oscillator whose phase and frequency are corrected.

use num_complex::Complex;
use std::f64::consts::TAU;

/// Gains of a proportional and integrating loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoopGains {
    /// Share of the phase error by which the phase is corrected.
    pub phase: f64,
    /// Share of the phase error by which the phase step is corrected.
    pub step: f64,
}

impl LoopGains {
    /// Gains for a noise bandwidth (one side), as a share of the rate of corrections, and a damping.
    pub fn new(bandwidth: f64, damping: f64) -> Self {
        // Rice, Digital Communications, appendix C.
        let theta = bandwidth / (damping + 0.25 / damping);
        let below = 1.0 + 2.0 * damping * theta + theta * theta;
        LoopGains { phase: 4.0 * damping * theta / below, step: 4.0 * theta * theta / below }
    }
}

/// An oscillator whose phase and frequency follow a carrier. Angles are in turns.
#[derive(Debug, Clone)]
pub(crate) struct PhaseTracker {
    gains: LoopGains,
    /// From −0.5 to 0.5.
    phase: f64,
    /// Turns per sample, and its limits.
    step: f64,
    limits: (f64, f64),
}

impl PhaseTracker {
    /// Begins with this frequency, and follows up to `range` from it; both are shares of the sample rate.
    pub fn new(gains: LoopGains, frequency: f64, range: f64) -> Self {
        PhaseTracker { gains, phase: 0.0, step: frequency, limits: (frequency - range, frequency + range) }
    }

    /// Turns per sample.
    pub fn frequency(&self) -> f64 {
        self.step
    }

    /// Changes the gains.
    pub fn set_gains(&mut self, gains: LoopGains) {
        self.gains = gains;
    }

    /// The reference: a complex number of magnitude 1.
    pub fn reference(&self) -> Complex<f64> {
        let (sin, cos) = (self.phase * TAU).sin_cos();
        Complex::new(cos, sin)
    }

    /// Goes on by a sample after this phase error in radians, above 0 if the carrier is ahead.
    pub fn advance(&mut self, error: f64) {
        self.correct(error);
        self.turn(1.0);
    }

    /// Corrects phase and frequency by a phase error in radians.
    pub fn correct(&mut self, error: f64) {
        let turns = error / TAU;
        self.step = (self.step + self.gains.step * turns).clamp(self.limits.0, self.limits.1);
        self.phase += self.gains.phase * turns;
    }

    /// Goes on by this number of samples.
    pub fn turn(&mut self, samples: f64) {
        self.phase += self.step * samples;
        self.phase -= self.phase.round();
    }
}
