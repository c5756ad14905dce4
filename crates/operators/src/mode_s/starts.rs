//! Examines the samples at which a frame may begin, several side by side.

use super::slicer::{BYTES, FRAME, Lanes, MOST, PHASES, Slicer, lanes};
use pulp::{Simd, WithSimd};

/// Highest share of the first byte's power that its pulses do not explain.
const UNEXPLAINED: f32 = 0.25;

/// Positions are examined further if they explain the first byte as well as the best one, within this share.
const NEARLY: f32 = 0.06;

/// Bytes of a short frame.
const SHORT: usize = 7;

/// Most samples examined at once.
pub(super) const GROUP: usize = 8;

/// A frame candidate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FrameCandidate {
    /// The bytes, then zeros.
    pub bytes: [u8; BYTES],
    /// Number of bytes; 0 if there is no candidate.
    pub len: usize,
    /// Distance between the samples and the pulses of these bits at this position.
    pub distance: f32,
}

/// The frames that may begin between a sample and the next one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FrameStart {
    /// Index of the sample.
    pub at: usize,
    /// A candidate for each position.
    pub candidates: [FrameCandidate; PHASES],
}

/// Finds frame starts, compiled for the processor's vectors.
pub(super) struct StartLoop<'s> {
    pub samples: &'s [f32],
    /// Indices to examine, at most [`GROUP`]. After each there must be a whole frame.
    pub places: &'s [usize],
    /// Gets the starts that have candidates, in the order of the places.
    pub starts: &'s mut Vec<FrameStart>,
}

impl WithSimd for StartLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let StartLoop { samples, places, starts } = self;
        let begin = starts.len();
        for places in places.chunks(Slicer::<S>::FRAMES) {
            first_bytes(simd, frames(samples, |n| places.get(n).copied()), places, starts);
        }
        for starts in starts[begin..].chunks_mut(Slicer::<S>::FRAMES) {
            let frames = frames(samples, |n| starts.get(n).map(|start| start.at));
            all_bytes(simd, frames, starts);
        }
    }
}

/// The frames at these indices. Where there are no more, the first one is repeated.
#[inline(always)]
fn frames(samples: &[f32], place: impl Fn(usize) -> Option<usize>) -> [&[f32; FRAME]; MOST] {
    let frame = |at: usize| samples[at..].first_chunk().expect("a whole frame");
    let first = frame(place(0).expect("one frame at least"));
    std::array::from_fn(|n| if n == 0 { first } else { place(n).map_or(first, frame) })
}

/// Slices the first bytes, and adds the starts that these explain.
#[inline(always)]
fn first_bytes<S: Simd>(
    simd: S,
    frames: [&[f32; FRAME]; MOST],
    places: &[usize],
    starts: &mut Vec<FrameStart>,
) {
    let (mut slicer, power) = Slicer::new(simd, frames);
    let paths = slicer.slice(0);
    let (is_1, distances) = slicer.better();
    let bytes = lanes::<S, u32, _>(simd.select_u32s(is_1, paths[1], paths[0]));
    let (power, distances) = (lanes::<S, f32, _>(power), lanes::<S, f32, _>(distances));
    let (bytes, distances) = (bytes.as_chunks::<PHASES>().0, distances.as_chunks::<PHASES>().0);
    for (n, place) in places.iter().enumerate() {
        let (bytes, distances, power) = (bytes[n], distances[n], power[n * PHASES]);
        let least = distances.into_iter().fold(f32::MAX, less);
        let limit = less(least + NEARLY * power, (UNEXPLAINED - 1.0) * power);
        if least > limit {
            continue;
        }
        let mut start = FrameStart { at: *place, ..FrameStart::default() };
        for (phase, candidate) in start.candidates.iter_mut().enumerate() {
            if distances[phase] <= limit {
                candidate.len = length(bytes[phase] as u8);
            }
        }
        if start.candidates.iter().any(|candidate| candidate.len > 0) {
            starts.push(start);
        }
    }
}

/// Slices all bytes of the candidates.
#[inline(always)]
fn all_bytes<S: Simd>(simd: S, frames: [&[f32; FRAME]; MOST], starts: &mut [FrameStart]) {
    let most = starts.iter().flat_map(|start| start.candidates).map(|candidate| candidate.len).max();
    let (mut slicer, _) = Slicer::new(simd, frames);
    let mut paths = [[[0; MOST * PHASES]; 2]; BYTES];
    for byte in 0..most.unwrap_or(0) {
        paths[byte] = slicer.slice(byte).map(lanes::<S, u32, _>);
        let len = byte + 1;
        if len != SHORT && len != BYTES {
            continue;
        }
        let (is_1, distances) = slicer.better();
        let is_1 = lanes::<S, u32, _>(simd.select_u32s(is_1, simd.splat_u32s(1), simd.splat_u32s(0)));
        let distances = lanes::<S, f32, _>(distances);
        let candidates = starts.iter_mut().flat_map(|start| &mut start.candidates).enumerate();
        for (lane, candidate) in candidates.filter(|(_, candidate)| candidate.len == len) {
            candidate.bytes = backwards(&paths[..len], lane, is_1[lane]);
            candidate.distance = distances[lane];
        }
    }
}

/// Follows the best sequence of bits from its last one, `last`.
#[inline(always)]
fn backwards(paths: &[[Lanes<u32>; 2]], lane: usize, mut last: u32) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (byte, paths) in bytes[..paths.len()].iter_mut().zip(paths).rev() {
        let path = paths[usize::from(last == 1)][lane];
        *byte = path as u8;
        last = path >> 8 & 1;
    }
    bytes
}

/// Number of bytes of a frame that begins with this one; 0 if no such frame is searched for.
#[inline(always)]
fn length(first: u8) -> usize {
    match first >> 3 {
        0 | 4 | 5 | 11 => SHORT,
        16 | 17 | 18 | 20 | 21 => BYTES,
        _ => 0,
    }
}

/// The smaller number, in one instruction: there is no NaN here.
#[inline(always)]
fn less(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}
