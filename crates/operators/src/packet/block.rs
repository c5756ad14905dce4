//! Decisions over several symbols at once.

use num_complex::Complex;
use std::f64::consts::TAU;

/// Symbols of a block, of which the middle one is decided.
const LENGTH: usize = 5;

/// A symbol: its middle in seconds, and the correlations with both tones, space first, as if each tone
/// began there with the phase 0.
#[derive(Debug, Clone, Copy, Default)]
struct SeenSymbol {
    time_s: f64,
    tones: [Complex<f32>; 2],
}

/// Decides the middle of five symbols by the sequence of tones with continuous phase that fits them best.
///
/// The phase of the sender goes on from tone to tone, so neighbours tell where the phase of a symbol must be.
/// For each of the 32 sequences, the correlations are turned by the phase that the sequence would have, and
/// added; the largest magnitude wins. (Osborne and Luntz, "Coherent and noncoherent detection of CPFSK",
/// 1974.)
#[derive(Debug, Clone)]
pub(super) struct BlockDecision {
    /// Frequencies, space first, in hertz.
    tones_hz: [f64; 2],
    gain: f32,
    symbols: [SeenSymbol; LENGTH],
}

impl BlockDecision {
    /// Symbols by which a decision is late.
    pub const BEHIND: u64 = (LENGTH / 2) as u64;

    pub fn new(mark_hz: f64, space_hz: f64, gain: f32) -> Self {
        BlockDecision { tones_hz: [space_hz, mark_hz], gain, symbols: [SeenSymbol::default(); LENGTH] }
    }

    /// Takes the correlations of a symbol. Returns whether the symbol two before it was a mark.
    pub fn push(&mut self, time_s: f64, mark: Complex<f32>, space: Complex<f32>) -> bool {
        self.symbols.copy_within(1.., 0);
        // The correlators count the phase from the start of the stream.
        let turned = |tone: Complex<f32>, tone_hz: f64| tone * turn((tone_hz * time_s).fract());
        let tones = [turned(space, self.tones_hz[0]) * self.gain, turned(mark, self.tones_hz[1])];
        self.symbols[LENGTH - 1] = SeenSymbol { time_s, tones };
        let [space, mark] = [false, true].map(|middle| self.best(middle));
        mark > space
    }

    /// The best fit with this symbol in the middle.
    fn best(&self, middle: bool) -> f32 {
        let at = LENGTH / 2;
        let tone = usize::from(middle);
        let own = self.symbols[at].tones[tone];
        let mut best = 0.0f32;
        for first in self.sums(tone, [at - 1, at - 2]) {
            for second in self.sums(tone, [at + 1, at + 2]) {
                best = best.max((own + first + second).norm_sqr());
            }
        }
        best
    }

    /// Sums over the two symbols to one side, in order from the middle, for each of their tones.
    fn sums(&self, middle: usize, order: [usize; 2]) -> [Complex<f32>; 4] {
        let [near, far] = order.map(|at| self.symbols[at]);
        let step = |from: &SeenSymbol, from_tone: usize, to: &SeenSymbol, to_tone: usize| {
            // Half of the way with each tone.
            (self.tones_hz[from_tone] + self.tones_hz[to_tone]) * (to.time_s - from.time_s) / 2.0
        };
        let center = &self.symbols[LENGTH / 2];
        let mut sums = [Complex::default(); 4];
        for near_tone in 0..2 {
            let to_near = step(center, middle, &near, near_tone);
            for far_tone in 0..2 {
                let to_far = to_near + step(&near, near_tone, &far, far_tone);
                sums[2 * near_tone + far_tone] =
                    near.tones[near_tone] * turn(-to_near) + far.tones[far_tone] * turn(-to_far);
            }
        }
        sums
    }
}

/// The rotation by an angle in turns.
fn turn(turns: f64) -> Complex<f32> {
    let (sin, cos) = (turns * TAU).sin_cos();
    Complex::new(cos as f32, sin as f32)
}
