//! Reproducible Gaussian noise.

use std::f64::consts::TAU;

/// White noise of variance 1.
///
/// The generator is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014): ten lines that never change, whereas the generators of a crate may change with a release.
pub(super) struct Noise {
    state: u64,
}

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Noise { state: seed }
    }

    /// Returns a uniform value above 0 and up to 1, in steps of 2⁻⁵³.
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((z >> 11) + 1) as f64 * 2f64.powi(-53)
    }

    /// Returns two independent values, by the method of Box and Muller.
    pub(super) fn pair(&mut self) -> (f64, f64) {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (TAU * self.uniform()).sin_cos();
        (radius * cos, radius * sin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_value_is_the_published_one() {
        // SplitMix64 from seed 0 begins with e220a8397b1dcdaf.
        let expected = ((0xe220_a839_7b1d_cdaf_u64 >> 11) + 1) as f64 * 2f64.powi(-53);
        assert_eq!(Noise::new(0).uniform(), expected);
    }

    #[test]
    fn is_white_and_of_variance_one() {
        let mut noise = Noise::new(1);
        let values: Vec<f64> = (0..100_000).flat_map(|_| <[f64; 2]>::from(noise.pair())).collect();
        let mean = |f: &dyn Fn(usize) -> f64| (1..values.len()).map(f).sum::<f64>() / values.len() as f64;
        assert!(mean(&|n| values[n]).abs() < 0.01);
        assert!((mean(&|n| values[n] * values[n]) - 1.0).abs() < 0.02);
        assert!(mean(&|n| values[n] * values[n - 1]).abs() < 0.01);
        assert!((mean(&|n| values[n].powi(4)) - 3.0).abs() < 0.1);
    }
}
