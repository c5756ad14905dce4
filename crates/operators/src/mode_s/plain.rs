//! The search as plain loops, one position after the other: the reference for the tests of the fast one.

use super::Frame;
use super::frame::remainder;
use super::known::Known;
use super::search::{RATE_HZ, WINDOW};
use super::slicer::PHASES;

/// Samples of the preamble.
const PREAMBLE: usize = 16;

/// Minimum ratio of the magnitudes in a preamble's pulses to those in its gaps.
const PULSES_TO_GAPS: f32 = 1.1;

/// The second weakest of the four pulses must have at least this share of their mean. The weakest may be
/// missing.
const LEAST_PULSE: f32 = 0.4;

/// A preamble must stand out at least this share as clearly as it would one sample earlier or later.
const PEAK: f32 = 0.8;

/// Highest share of the first byte's power that its pulses do not explain.
const UNEXPLAINED: f32 = 0.25;

/// Positions are examined further if they explain the first byte as well as the best one, within this share.
const NEARLY: f32 = 0.06;

/// All frames in these samples.
pub(super) fn plain_search(samples: &[f32], age: u64) -> Vec<Frame> {
    let samples = [&[0.0], samples, &[0.0; WINDOW]].concat();
    let mut clear = vec![0.0; samples.len() - PREAMBLE];
    preambles(&samples, &mut clear);
    let mut search = PlainSearch { samples, at: 1, known: Known::new(age) };
    let mut frames = Vec::new();
    while search.at + WINDOW < search.samples.len() {
        let [before, this, after] = clear[search.at - 1..search.at + 2] else { unreachable!() };
        let at = search.at;
        search.at += 1;
        if this > 0.0 && this >= PEAK * before.max(after) {
            frames.extend(search.attempt(at));
        }
    }
    frames
}

/// A frame candidate.
#[derive(Clone, Copy)]
struct PlainCandidate {
    bytes: [u8; 16],
    len: usize,
    distance: f32,
}

struct PlainSearch {
    samples: Vec<f32>,
    at: usize,
    known: Known,
}

impl PlainSearch {
    /// Searches for a frame that begins at this index or less than a sample later.
    fn attempt(&mut self, at: usize) -> Option<Frame> {
        let (mut phase, mut best) = self.best(at)?;
        let mut begin = at;
        // Close to the next sample, the attempt there finds the frame too, and perhaps better.
        if let Some((next, found)) = self.best(at + 1)
            && found.bytes == best.bytes
            && found.distance < best.distance
        {
            (begin, phase, best) = (at + 1, next, found);
        }
        let end = begin + PREAMBLE + 16 * best.len;
        let now = begin as u64 - 1;
        let time_s = (now as f64 + phase as f64 / PHASES as f64) / RATE_HZ;
        let power: f32 = self.samples[begin..end].iter().map(|x| x * x).sum();
        let level_db = 10.0 * (power / (end - begin) as f32).max(1e-20).log10();
        let frame = Frame::new(&best.bytes[..best.len], time_s, level_db)?;
        if matches!(frame.downlink_format(), 11 | 17 | 18) && frame.remainder() == 0 {
            self.known.hear(frame.address(), now);
        }
        self.at = end;
        Some(frame)
    }

    /// Returns the frame at this index at its best position, and that position.
    fn best(&self, at: usize) -> Option<(usize, PlainCandidate)> {
        let samples = self.samples.get(at..at + WINDOW)?;
        let (preamble, data) = samples.split_at(PREAMBLE);
        let first: &[f32; 16] = data.first_chunk()?;
        // The preamble has four pulses, eight bits have eight.
        let pulse = (pulses(preamble) + first.iter().sum::<f32>()) / 12.0;
        let power: f32 = first.iter().map(|x| x * x).sum();
        let (starts, distances) = first_bytes(first, pulse);
        let least = distances.into_iter().fold(f32::MAX, less);
        let limit = less(least + NEARLY * power, (UNEXPLAINED - 1.0) * power);
        let mut best: Option<(usize, PlainCandidate)> = None;
        for (phase, (byte, distance)) in starts.into_iter().zip(distances).enumerate() {
            if distance > limit {
                continue;
            }
            let len = match byte >> 3 {
                0 | 4 | 5 | 11 => 7,
                16 | 17 | 18 | 20 | 21 => 14,
                _ => continue,
            };
            let (bits, distance) = slice(&data[..16 * len], phase as f32 / PHASES as f32, pulse);
            let bytes = (bits << (128 - 8 * len)).to_be_bytes();
            let found = PlainCandidate { bytes, len, distance };
            if best.is_none_or(|(_, best)| distance < best.distance) && self.accepts(&bytes[..len], at as u64)
            {
                best = Some((phase, found));
            }
        }
        best
    }

    fn accepts(&self, bytes: &[u8], now: u64) -> bool {
        let rest = remainder(bytes);
        match bytes[0] >> 3 {
            17 | 18 => rest == 0,
            11 => {
                let address = u32::from_be_bytes([0, bytes[1], bytes[2], bytes[3]]);
                rest == 0 || rest < 128 && self.known.has(address, now)
            }
            _ => self.known.has(rest, now),
        }
    }
}

/// Contribution of a sample to the squared distance, less its own square.
fn distance(size: f32, x: f32) -> f32 {
    size * (size - 2.0 * x)
}

/// Slices two samples per bit, at most 128 bits, with pulses of magnitude `pulse` that begin the part `f` of
/// a sample late. Returns the bits, the last one lowest, and their distance from the samples: the sum of
/// squared differences, less the squares of the samples.
fn slice(samples: &[f32], f: f32, pulse: f32) -> (u128, f32) {
    let (f, g) = (f * pulse, (1.0 - f) * pulse);
    let (mut d0, mut d1) = (f32::MAX, 0.0);
    let (mut bits0, mut bits1) = (0u128, 0u128);
    for x in samples.chunks_exact(2) {
        let (from00, from10) = (d0 + distance(f, x[0]), d1);
        let (from01, from11) = (d0 + distance(pulse, x[0]), d1 + distance(g, x[0]));
        let (is0, was0) = (from00 < from10, from01 < from11);
        d0 = if is0 { from00 } else { from10 } + distance(g, x[1]);
        d1 = if was0 { from01 } else { from11 } + distance(f, x[1]);
        let (to0, to1) = (if is0 { bits0 } else { bits1 }, if was0 { bits0 } else { bits1 });
        (bits0, bits1) = (to0 << 1, to1 << 1 | 1);
    }
    if d1 < d0 { (bits1, d1) } else { (bits0, d0) }
}

/// One number per position, so that the compiler vectorises the loop.
type Phases<T> = [T; PHASES];

/// Slices the first byte like [`slice`], at all positions at once. Returns the bytes and their distances.
fn first_bytes(samples: &[f32; 16], pulse: f32) -> (Phases<u32>, Phases<f32>) {
    let f: Phases<f32> = std::array::from_fn(|n| n as f32 / PHASES as f32 * pulse);
    let g: Phases<f32> = std::array::from_fn(|n| (1.0 - n as f32 / PHASES as f32) * pulse);
    let (mut d0, mut d1) = ([f32::MAX; PHASES], [0.0; PHASES]);
    let (mut bits0, mut bits1) = ([0; PHASES], [0; PHASES]);
    for x in samples.chunks_exact(2) {
        let whole = distance(pulse, x[0]);
        for n in 0..PHASES {
            let (from00, from10) = (d0[n] + distance(f[n], x[0]), d1[n]);
            let (from01, from11) = (d0[n] + whole, d1[n] + distance(g[n], x[0]));
            let (is0, was0) = (from00 < from10, from01 < from11);
            d0[n] = if is0 { from00 } else { from10 } + distance(g[n], x[1]);
            d1[n] = if was0 { from01 } else { from11 } + distance(f[n], x[1]);
            let to0: u32 = if is0 { bits0[n] } else { bits1[n] };
            let to1: u32 = if was0 { bits0[n] } else { bits1[n] };
            (bits0[n], bits1[n]) = (to0 << 1, to1 << 1 | 1);
        }
    }
    for n in 0..PHASES {
        if d1[n] < d0[n] {
            (bits0[n], d0[n]) = (bits1[n], d1[n]);
        }
    }
    (bits0, d0)
}

/// Sum of the magnitudes in the pulses of a preamble, independent of where between two samples it begins.
fn pulses(x: &[f32]) -> f32 {
    (x[0] + x[2] + x[7] + x[9]) + (x[1] + x[3] + x[8] + x[10])
}

/// Sum of the same number of magnitudes between and after the pulses.
fn gaps(x: &[f32]) -> f32 {
    (x[4] + x[5] + x[6]) + (x[11] + x[12] + x[13] + x[14] + x[15])
}

/// How far the pulses of a preamble at each index stand out from its gaps; at 0 and below there is no
/// preamble.
fn preambles(samples: &[f32], clear: &mut [f32]) {
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
fn less(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The larger number.
fn more(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
