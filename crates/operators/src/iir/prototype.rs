//! Analogue low-pass filters with an edge at 1 radian per second.
//!
//! The poles are those of T. W. Parks and C. S. Burrus, *Digital Filter Design* (1987), chapter 7. We wrote
//! the designs ourselves: of the available crates, iir_filters 0.1 has Butterworth filters only, and sci-rs
//! 0.4 stops with a panic for Chebyshev filters.

use num_complex::Complex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Family of a filter: how its response falls from the pass band to the stop band.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IirFamily {
    /// Flat in the pass band, falling steadily.
    #[default]
    Butterworth,
    /// Ripple in the pass band, falling steadily: steeper.
    Chebyshev1,
    /// Flat in the pass band, ripple in the stop band.
    Chebyshev2,
}

/// Poles and zeros that are not real, one of each conjugate pair, and the real pole of an odd order. Zeros
/// that are missing are at infinity.
#[derive(Debug, Clone)]
pub(super) struct Prototype {
    pub poles: Vec<Complex<f64>>,
    pub real_pole: Option<f64>,
    pub zeros: Vec<Complex<f64>>,
    /// Gain at 0.
    pub gain: f64,
}

impl Prototype {
    /// A filter of this order. `ripple_db` is the ripple in the pass band of a Chebyshev filter of the first
    /// kind, or the attenuation of one of the second kind.
    pub fn new(family: IirFamily, order: usize, ripple_db: f64) -> Self {
        // The angles from the real axis to the poles of one side.
        let angles = (1..=order / 2).map(|n| PI * (2 * n - 1 + order % 2) as f64 / (2 * order) as f64);
        let circle = angles.map(|angle| Complex::from_polar(1.0, PI - angle));
        let has_real = order % 2 == 1;
        let (mut poles, mut real_pole): (Vec<_>, _) = (circle.collect(), has_real.then_some(-1.0));
        let (mut zeros, mut gain) = (Vec::new(), 1.0);
        let excess = 10f64.powf(ripple_db / 10.0) - 1.0;
        match family {
            IirFamily::Butterworth => {}
            IirFamily::Chebyshev1 => {
                let mu = (1.0 / excess.sqrt()).asinh() / order as f64;
                let squeeze = |pole: &mut Complex<f64>| {
                    *pole = Complex::new(pole.re * mu.sinh(), pole.im * mu.cosh());
                };
                poles.iter_mut().for_each(squeeze);
                real_pole = real_pole.map(|pole| pole * mu.sinh());
                if !has_real {
                    gain = 1.0 / (1.0 + excess).sqrt();
                }
            }
            IirFamily::Chebyshev2 => {
                let mu = excess.sqrt().asinh() / order as f64;
                zeros = poles.iter().map(|pole| Complex::new(0.0, 1.0 / pole.im)).collect();
                for pole in &mut poles {
                    *pole = Complex::new(pole.re * mu.sinh(), pole.im * mu.cosh()).inv();
                }
                real_pole = real_pole.map(|pole| 1.0 / (pole * mu.sinh()));
            }
        }
        Prototype { poles, real_pole, zeros, gain }
    }
}
