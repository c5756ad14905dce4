//! Finds frames in magnitude samples.

use super::Frame;
use super::frame::remainder;
use super::known::Known;
use super::preambles::{BLOCK, PREAMBLE, PreambleBlock, PreambleLoop};
use super::slicer::{FRAME, PHASES};
use super::starts::{FrameCandidate, FrameStart, GROUP, StartLoop};
use crate::vectors::Vectors;

/// Sample rate of the search: each pulse is as long as a sample.
pub const RATE_HZ: f64 = 2e6;

/// Samples that one attempt may need: the preamble, 112 bits of two samples, and one for positions after the
/// sample.
pub(super) const WINDOW: usize = FRAME + 1;

/// Samples kept in addition to those that an attempt may need.
const ROOM: usize = 16 << 10;

// The limits here and in `preambles.rs` were tuned on a real recording of 0.18 s with one aircraft. Without
// any of them, the search finds 150 distinct DF 17 frames there instead of 141, and takes seventeen times as
// long.

/// The search for frames in a stream of magnitudes at 2 MS/s. Plain state: samples in, frames out.
///
/// A frame (ICAO Annex 10, volume IV, 3.1.2.2) starts with a preamble of four pulses of half a microsecond,
/// at 0, 1, 3.5 and 4.5 µs. Its 56 or 112 bits follow after 8 µs, one microsecond each: a pulse in the first
/// half is a 1, in the second a 0. At this rate a pulse is one sample long. Transmitter and receiver share no
/// clock, so a pulse is spread over two samples. The search therefore tries four positions from one sample to
/// the next. The bits of each are those that explain the samples best, all together.
///
/// A candidate is accepted if its parity is right; bits are never corrected. DF 17 and 18 need remainder 0.
/// DF 11 needs remainder 0 too, or an interrogator's code from an aircraft that was heard before. DF 0, 4, 5,
/// 16, 20 and 21, whose remainder is the address, are accepted from such aircraft only. (Among 24 bits of
/// noise, an interrogator's code appears every 131,072nd time: that would be a false aircraft every few
/// minutes.)
///
/// The frames found at a sample depend on the samples around it and on earlier frames, never on how the
/// samples were divided into calls.
#[derive(Debug, Clone)]
pub struct FrameSearch {
    vectors: Vectors,
    /// Samples from number `first` on, after one that only serves for comparison.
    samples: Vec<f32>,
    first: u64,
    /// Next index of `samples` to examine; at least 1.
    at: usize,
    /// The last block of preambles, and the number of the first one that no start was searched for at.
    preambles: PreambleBlock,
    ahead: u64,
    /// Starts that were found ahead, the next one last.
    starts: Vec<FrameStart>,
    known: Known,
}

impl FrameSearch {
    /// Creates a search in which an aircraft counts as known for `age` samples after its last frame.
    pub fn new(age: u64) -> Self {
        let mut samples = Vec::with_capacity(ROOM + WINDOW);
        samples.push(0.0);
        FrameSearch {
            vectors: Vectors::new(),
            samples,
            first: 0,
            at: 1,
            preambles: PreambleBlock::default(),
            ahead: 0,
            starts: Vec::with_capacity(GROUP + 1),
            known: Known::new(age),
        }
    }

    /// Takes as many samples as there is room for, and returns their number. Call [`next`](FrameSearch::next)
    /// until it returns `None`; then there is room again.
    pub fn take<T: Copy>(&mut self, samples: &[T], mut magnitude: impl FnMut(T) -> f32) -> usize {
        if self.samples.capacity() - self.samples.len() < samples.len() {
            let done = self.at - 1;
            self.samples.copy_within(done.., 0);
            self.samples.truncate(self.samples.len() - done);
            self.first += done as u64;
            self.at = 1;
            self.starts.iter_mut().for_each(|start| start.at = start.at.saturating_sub(done));
        }
        let count = samples.len().min(self.samples.capacity() - self.samples.len());
        self.samples.extend(samples[..count].iter().map(|x| magnitude(*x)));
        count
    }

    /// Marks the end of the stream, so that frames that end with it are found too.
    pub fn finish(&mut self) {
        self.take(&[0.0; WINDOW], |x| x);
    }

    /// Returns the next frame in the samples taken.
    #[allow(clippy::should_implement_trait, reason = "there may be another one after none")]
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some(start) = self.starts.pop() {
                if start.at >= self.at
                    && let Some(frame) = self.attempt(&start)
                {
                    return Some(frame);
                }
            }
            if !self.look_ahead() && !self.next_block() {
                return None;
            }
        }
    }

    /// Searches for starts at the next preambles of the block. Returns whether there are any preambles.
    fn look_ahead(&mut self) -> bool {
        self.ahead = self.ahead.max(self.first + self.at as u64);
        let mut places = [0; GROUP];
        let mut count = 0;
        while count < GROUP
            && let Some(place) = self.preambles.next(self.ahead)
        {
            places[count] = (place - self.first) as usize;
            count += 1;
            self.ahead = place + 1;
        }
        self.find_starts(&places[..count]);
        self.starts.reverse();
        count > 0
    }

    fn find_starts(&mut self, places: &[usize]) {
        self.vectors.run(StartLoop { samples: &self.samples, places, starts: &mut self.starts });
    }

    /// Searches for preambles in the next block. Returns whether there are enough samples.
    fn next_block(&mut self) -> bool {
        self.at = self.at.max(self.preambles.end().saturating_sub(self.first) as usize);
        let places = self.samples.len().saturating_sub(self.at + WINDOW).min(BLOCK);
        if places > 0 {
            let (samples, begin) = (&self.samples[self.at - 1..], self.first + self.at as u64);
            self.preambles = self.vectors.run(PreambleLoop { samples, begin, places });
        }
        places > 0
    }

    /// Searches for a frame that begins at this index or less than a sample later.
    fn attempt(&mut self, start: &FrameStart) -> Option<Frame> {
        self.at = start.at + 1;
        let (mut phase, mut best) = self.best(start)?;
        let mut begin = start.at;
        // Close to the next sample, the attempt there finds the frame too, and perhaps better.
        if let Some((next, found)) = self.start_at(begin + 1).and_then(|start| self.best(&start))
            && found.bytes == best.bytes
            && found.distance < best.distance
        {
            (begin, phase, best) = (begin + 1, next, found);
        }
        let end = begin + PREAMBLE + 16 * best.len;
        let now = self.first + begin as u64 - 1;
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

    /// Returns the start at this index, whether or not there is a preamble.
    fn start_at(&mut self, at: usize) -> Option<FrameStart> {
        if let Some(start) = self.starts.last()
            && start.at == at
        {
            return Some(*start);
        }
        let count = self.starts.len();
        self.find_starts(&[at]);
        if self.starts.len() > count { self.starts.pop() } else { None }
    }

    /// Returns the best frame of a start, and its position.
    fn best(&self, start: &FrameStart) -> Option<(usize, FrameCandidate)> {
        let mut best: Option<(usize, FrameCandidate)> = None;
        for (phase, found) in start.candidates.into_iter().enumerate().filter(|(_, found)| found.len > 0) {
            if best.is_none_or(|(_, best)| found.distance < best.distance)
                && self.accepts(&found.bytes[..found.len], self.first + start.at as u64)
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

#[cfg(test)]
mod tests {
    use super::super::plain::plain_search;
    use super::*;
    use proptest::prelude::*;

    /// A frame to add to the noise.
    #[derive(Debug, Clone)]
    struct SentFrame {
        bytes: Vec<u8>,
        /// Begin of the preamble, in samples.
        begin: f32,
        level: f32,
    }

    /// Whether the sender is on, half a microsecond at a time.
    fn pulses(bytes: &[u8]) -> Vec<bool> {
        let mut pulses: Vec<bool> = (0..PREAMBLE).map(|n| [0, 2, 7, 9].contains(&n)).collect();
        for bit in bytes.iter().flat_map(|byte| (0..8).rev().map(move |n| byte >> n & 1 == 1)) {
            pulses.extend([bit, !bit]);
        }
        pulses
    }

    fn add(samples: &mut [f32], frame: &SentFrame) {
        for (n, _) in pulses(&frame.bytes).into_iter().enumerate().filter(|(_, is_on)| *is_on) {
            let begin = frame.begin + n as f32;
            let (at, late) = (begin as usize, begin.fract());
            for (at, share) in [(at, 1.0 - late), (at + 1, late)] {
                if let Some(x) = samples.get_mut(at) {
                    *x += share * frame.level;
                }
            }
        }
    }

    /// A frame of any format whose parity is right, or that of an interrogator or of an aircraft.
    fn sent(length: usize) -> impl Strategy<Value = SentFrame> {
        let format = prop::sample::select(vec![0u8, 4, 5, 11, 11, 16, 17, 17, 17, 18, 20, 21, 24]);
        let overlaid = prop::sample::select(vec![0u32, 0, 0x4d_2023, 5]);
        (format, any::<[u8; 14]>(), overlaid, 0.0..length as f32, 0.05..1.0f32).prop_map(
            |(format, mut bytes, overlaid, begin, level)| {
                bytes[0] = format << 3 | bytes[0] & 7;
                bytes[1..4].copy_from_slice(&[0x4d, 0x20, 0x23]);
                let len = if format < 16 { 7 } else { 14 };
                bytes[len - 3..len].fill(0);
                let rest = (remainder(&bytes[..len]) ^ overlaid).to_be_bytes();
                bytes[len - 3..len].copy_from_slice(&rest[1..]);
                SentFrame { bytes: bytes[..len].to_vec(), begin, level }
            },
        )
    }

    /// Frames that the search finds when it gets slices of this length.
    fn fast_search(samples: &[f32], age: u64, length: usize) -> Vec<Frame> {
        let mut search = FrameSearch::new(age);
        let mut frames = Vec::new();
        for mut slice in samples.chunks(length) {
            while !slice.is_empty() {
                slice = &slice[search.take(slice, |x| x)..];
                frames.extend(std::iter::from_fn(|| search.next()));
            }
        }
        search.finish();
        frames.extend(std::iter::from_fn(|| search.next()));
        frames
    }

    /// Samples of noise with frames in it.
    fn samples() -> impl Strategy<Value = (Vec<f32>, usize)> {
        (300..20_000usize).prop_flat_map(|length| {
            let noise = (any::<u64>(), 0.0..0.3f32);
            (noise, prop::collection::vec(sent(length), 0..30)).prop_map(move |((seed, noise), frames)| {
                let mut state = seed;
                let mut samples: Vec<f32> = (0..length)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (state >> 40) as f32 / (1u32 << 24) as f32 * noise
                    })
                    .collect();
                frames.iter().for_each(|frame| add(&mut samples, frame));
                (samples, frames.len())
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_fast_search_finds_what_the_plain_one_finds(
            (samples, _) in samples(),
            length in prop::sample::select(vec![1usize, 7, 241, 512, 1000, 4096, 16_384, 20_000]),
            age in prop::sample::select(vec![0u64, 1000, 1_000_000]),
        ) {
            let expected = plain_search(&samples, age);
            Vectors::each(|vectors| {
                assert!(fast_search(&samples, age, length) == expected, "{vectors}, {length}");
            });
        }
    }

    #[test]
    fn frames_at_the_borders_of_blocks_are_found() {
        let mut frame =
            SentFrame { bytes: vec![0x5d, 0x4d, 0x20, 0x23, 0x7a, 0x55, 0xa6], begin: 0.0, level: 0.5 };
        for begin in (0..40).chain(BLOCK - 140..BLOCK + 20).chain(ROOM - 20..ROOM + 20) {
            for late in [0.0, 0.3, 0.5] {
                frame.begin = begin as f32 + late;
                let mut samples = vec![0.0; begin + 400];
                add(&mut samples, &frame);
                let expected = plain_search(&samples, 0);
                assert_eq!(expected.len(), 1, "at {}", frame.begin);
                assert_eq!(fast_search(&samples, 0, 1000), expected, "at {}", frame.begin);
            }
        }
    }
}
