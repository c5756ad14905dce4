//! Receivers of one signal side by side, for audio whose treble was raised or cut.

use super::block::BlockDecision;
use super::hdlc::{HdlcDeframer, HdlcFrame};
use super::tones::Tones;
use crate::symbols::{ClockSettings, Strobe, SymbolClock, TimingDetector, interpolate};
use num_complex::Complex;

/// Gains of the space tone, in decibels: the treble may be this much weaker or stronger.
pub(super) const GAINS_DB: [f64; 5] = [0.0, 3.0, -3.0, 6.0, -6.0];

/// Bandwidth of the symbol clock, as a share of the symbol rate.
const BANDWIDTH: f64 = 0.02;

/// Largest deviation of a sender's symbol rate, as a share of it.
const DEVIATION: f64 = 0.01;

/// Decides with one gain for the space tone, in two ways: each symbol alone, and in blocks.
#[derive(Debug, Clone)]
pub(super) struct ToneSlicer {
    gain: f32,
    clock: SymbolClock,
    alone: HdlcDeframer,
    block: BlockDecision,
    in_blocks: HdlcDeframer,
}

/// Correlations with both tones at the last four samples.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentTones {
    mark: [Complex<f32>; 4],
    space: [Complex<f32>; 4],
    /// Samples so far.
    taken: i64,
}

impl RecentTones {
    pub fn push(&mut self, mark: Complex<f32>, space: Complex<f32>) {
        for (recent, new) in [(&mut self.mark, mark), (&mut self.space, space)] {
            recent.copy_within(1.., 0);
            recent[3] = new;
        }
        self.taken += 1;
    }
}

impl ToneSlicer {
    /// Creates a slicer for correlations at this rate.
    pub fn new(tones: Tones, gain_db: f64, rate_hz: f64, is_scrambled: bool) -> Self {
        let gain = 10f64.powf(gain_db / 20.0) as f32;
        let clock = ClockSettings {
            detector: TimingDetector::ZeroCrossing,
            period: rate_hz / tones.symbol_hz,
            bandwidth: BANDWIDTH,
            deviation: DEVIATION,
        };
        ToneSlicer {
            gain,
            clock: SymbolClock::new(clock),
            alone: HdlcDeframer::new(is_scrambled),
            block: BlockDecision::new(tones.mark_hz, tones.space_hz, gain),
            in_blocks: HdlcDeframer::new(is_scrambled),
        }
    }

    /// Takes the newest correlations. Calls `found` with each frame that they complete and the time of its
    /// end, in samples at this rate.
    pub fn push(&mut self, recent: &RecentTones, rate_hz: f64, mut found: impl FnMut(HdlcFrame<'_>, f64)) {
        let difference = recent.mark[3].norm() - self.gain * recent.space[3].norm();
        let Some(Strobe { value, fraction }) = self.clock.push(difference) else { return };
        let at = (recent.taken - 1 - Strobe::<f32>::BEHIND as i64) as f64 + fraction;
        if let Some(frame) = self.alone.push(value > 0.0) {
            found(frame, at);
        }
        let [mark, space] = [&recent.mark, &recent.space].map(|tone| interpolate(tone, fraction));
        let is_mark = self.block.push(at / rate_hz, mark, space);
        if let Some(frame) = self.in_blocks.push(is_mark) {
            found(frame, at - BlockDecision::BEHIND as f64 * self.clock.period());
        }
    }
}
