//! Finds the preambles of frames: many positions side by side, most of which are rejected here.

use pulp::{Simd, WithSimd};

/// Samples of a preamble, 8 µs.
pub(super) const PREAMBLE: usize = 16;

/// Positions examined at once.
pub(super) const BLOCK: usize = 512;

/// Minimum ratio of the magnitudes in a preamble's pulses to those in its gaps.
const PULSES_TO_GAPS: f32 = 1.1;

/// The second weakest of the four pulses must have at least this share of their mean. The weakest may be
/// missing.
const LEAST_PULSE: f32 = 0.4;

/// A preamble must stand out at least this share as clearly as it would one sample earlier or later.
const PEAK: f32 = 0.8;

/// The positions of a block at which a preamble may begin, one bit each.
#[derive(Debug, Clone, Default)]
pub(super) struct PreambleBlock {
    /// Number of the sample of bit 0.
    begin: u64,
    /// Number of positions.
    places: usize,
    bits: [u64; BLOCK / 64],
}

impl PreambleBlock {
    /// Number of the first sample after the block.
    pub fn end(&self) -> u64 {
        self.begin + self.places as u64
    }

    /// Returns the first position from this sample on.
    #[inline(always)]
    pub fn next(&self, from: u64) -> Option<u64> {
        let from = from.saturating_sub(self.begin) as usize;
        let first = from / 64;
        let mut rest = self.bits.get(first)? & (u64::MAX << (from % 64));
        for word in first..self.bits.len() {
            if word > first {
                rest = self.bits[word];
            }
            if rest != 0 {
                return Some(self.begin + (64 * word) as u64 + u64::from(rest.trailing_zeros()));
            }
        }
        None
    }
}

/// The search of a block, compiled for the processor's vectors.
pub(super) struct PreambleLoop<'s> {
    /// Samples from the one before the block on, with a preamble's length after the last position.
    pub samples: &'s [f32],
    /// Number of the first sample of the block.
    pub begin: u64,
    /// Number of positions, at most [`BLOCK`].
    pub places: usize,
}

impl WithSimd for PreambleLoop<'_> {
    type Output = PreambleBlock;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> PreambleBlock {
        let mut clear = [0.0; BLOCK + 2];
        let clear = &mut clear[..self.places + 2];
        clearness(self.samples, clear);
        let mut flags = [0; BLOCK];
        let near = clear.iter().zip(&clear[1..]).zip(&clear[2..]);
        for (flag, ((before, this), after)) in flags.iter_mut().zip(near) {
            *flag = u8::from(*this > 0.0) & u8::from(*this >= PEAK * more(*before, *after));
        }
        let mut block = PreambleBlock { begin: self.begin, places: self.places, bits: [0; _] };
        for (word, flags) in block.bits.iter_mut().zip(flags.as_chunks::<64>().0) {
            *word = bits(flags);
        }
        block
    }
}

/// Packs bytes of 0 or 1, the first one to the lowest bit.
#[inline(always)]
fn bits(flags: &[u8; 64]) -> u64 {
    let eights = flags.as_chunks::<8>().0.iter().enumerate();
    eights.fold(0, |word, (n, eight)| {
        // Each product has byte `k` of the eight in bit `56 + k`; no two of them meet in one bit.
        let packed = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word | packed << (8 * n)
    })
}

/// Sum of the magnitudes in the pulses of a preamble, independent of where between two samples it begins.
#[inline(always)]
pub(super) fn pulses(x: &[f32; PREAMBLE]) -> f32 {
    (x[0] + x[2] + x[7] + x[9]) + (x[1] + x[3] + x[8] + x[10])
}

/// Sum of the same number of magnitudes between and after the pulses.
#[inline(always)]
fn gaps(x: &[f32; PREAMBLE]) -> f32 {
    (x[4] + x[5] + x[6]) + (x[11] + x[12] + x[13] + x[14] + x[15])
}

/// How far the pulses of a preamble at each index stand out from its gaps; at 0 and below there is no
/// preamble.
#[inline(always)]
fn clearness(samples: &[f32], clear: &mut [f32]) {
    // Sixteen slices of one length, so that the compiler vectorises the loop.
    let len = clear.len();
    let x: [&[f32]; PREAMBLE] = std::array::from_fn(|n| &samples[n..n + len]);
    for (n, clear) in clear.iter_mut().enumerate() {
        let x: [f32; PREAMBLE] = std::array::from_fn(|k| x[k][n]);
        let (pulses, gaps) = (pulses(&x), gaps(&x));
        let [a, b, c, d] = [x[0] + x[1], x[2] + x[3], x[7] + x[8], x[9] + x[10]];
        let last_but_one = less(more(less(a, b), less(c, d)), less(more(a, b), more(c, d)));
        let stands_out = pulses - PULSES_TO_GAPS * gaps;
        *clear = if last_but_one > LEAST_PULSE / 4.0 * pulses { stands_out } else { 0.0 };
    }
}

/// The smaller number, in one instruction: there is no NaN here.
#[inline(always)]
pub(super) fn less(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The larger number.
#[inline(always)]
fn more(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
