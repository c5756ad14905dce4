//! Filters of second order one after the other, computed side by side.
//!
//! A filter needs the output of the one before it, and its own last outputs: a chain without an end. But
//! while one filter works on sample `n`, the next can work on sample `n − 1`, as in a pipeline. So in each
//! step, all filters of one or two channels compute at once, each in a lane of its own, and then the outputs
//! move to the lanes of the next filter:
//!
//! ```text
//! step    filter 0    filter 1    filter 2
//!  0      x[0]                                   sample by sample
//!  1      x[1]        y0[0]
//!  2      x[2]        y0[1]       y1[0] → out    all lanes at once
//!  3      x[3]        y0[2]       y1[1] → out
//! ```
//!
//! Begin and end of a slice are computed sample by sample, so each call gives as many samples as it gets.

use super::band::BiquadWeights;
use pulp::{Simd, WithSimd};

/// Outputs below this magnitude count as 0. Otherwise silence would decay to denormal numbers, which take
/// a hundred times as long.
const SILENCE: f64 = 1e-30;

/// A cascade of filters for one or two channels. Filter `k` of channel `c` has lane `k · channels + c`.
#[derive(Debug, Clone)]
pub(super) struct Cascade {
    channels: usize,
    /// Weights of the inputs and of the outputs, for each lane.
    b: [Vec<f64>; 3],
    a: [Vec<f64>; 2],
    /// What the past adds to the next output and to the one after it.
    state: [Vec<f64>; 2],
}

/// A step of a filter, in transposed direct form II.
#[inline(always)]
fn filter(x: f64, [b0, b1, b2]: [f64; 3], [a1, a2]: [f64; 2], [next, later]: [&mut f64; 2]) -> f64 {
    let y = b0 * x + *next;
    let y = if y.abs() < SILENCE { 0.0 } else { y };
    *next = (b1 * x + *later) - a1 * y;
    *later = b2 * x - a2 * y;
    y
}

impl Cascade {
    /// Creates the filters of one or two channels. Filters that change nothing fill up the vectors.
    pub fn new(filters: &[BiquadWeights], channels: usize) -> Self {
        let lanes = (filters.len() * channels).next_power_of_two().max(8);
        let empty = || vec![0.0; lanes];
        let mut cascade = Cascade {
            channels,
            b: std::array::from_fn(|_| empty()),
            a: std::array::from_fn(|_| empty()),
            state: std::array::from_fn(|_| empty()),
        };
        cascade.set(filters);
        cascade
    }

    /// Changes the filters and keeps their memory.
    pub fn set(&mut self, filters: &[BiquadWeights]) {
        for lane in 0..self.b[0].len() {
            let weights = filters.get(lane / self.channels).unwrap_or(&BiquadWeights::IDENTITY);
            self.b.iter_mut().zip(weights.b).for_each(|(lanes, weight)| lanes[lane] = weight);
            self.a.iter_mut().zip(weights.a).for_each(|(lanes, weight)| lanes[lane] = weight);
        }
    }

    /// Passes a sample of a channel through some of the filters.
    #[inline(always)]
    fn pass(&mut self, channel: usize, filters: std::ops::Range<usize>, x: f64) -> f64 {
        filters.fold(x, |x, number| {
            let lane = number * self.channels + channel;
            let [next, later] = &mut self.state;
            let (b, a) = (self.b.each_ref().map(|b| b[lane]), self.a.each_ref().map(|a| a[lane]));
            filter(x, b, a, [&mut next[lane], &mut later[lane]])
        })
    }

    /// Passes one sample of a channel through all filters.
    pub fn one(&mut self, channel: usize, sample: &mut f32) {
        let filters = 0..self.b[0].len() / self.channels;
        *sample = self.pass(channel, filters, f64::from(*sample)) as f32;
    }
}

/// Filters some channels of whole frames; compiled for the processor's vectors.
pub(super) struct CascadeLoop<'c> {
    pub cascade: &'c mut Cascade,
    /// Samples from the first one of these channels on.
    pub samples: &'c mut [f32],
    /// Samples from one frame to the next.
    pub stride: usize,
}

impl WithSimd for CascadeLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        match (self.cascade.channels, self.cascade.b[0].len()) {
            (1, 8) => self.filter::<1, 8>(),
            (1, 16) => self.filter::<1, 16>(),
            (1, _) => self.filter::<1, 32>(),
            (_, 8) => self.filter::<2, 8>(),
            (_, 16) => self.filter::<2, 16>(),
            (_, 32) => self.filter::<2, 32>(),
            _ => self.filter::<2, 64>(),
        }
    }
}

impl CascadeLoop<'_> {
    /// Filters `CHANNELS` channels in `LANES` lanes.
    #[inline(always)]
    fn filter<const CHANNELS: usize, const LANES: usize>(self) {
        let CascadeLoop { cascade, samples, stride } = self;
        let (filters, frames) = (LANES / CHANNELS, samples.len().div_ceil(stride));
        let sample = |frame: usize, channel: usize| frame * stride + channel;
        if frames < filters {
            for frame in 0..frames {
                (0..CHANNELS).for_each(|channel| cascade.one(channel, &mut samples[sample(frame, channel)]));
            }
            return;
        }
        // Outputs of the last step, by lane.
        let mut y = [0.0; LANES];
        for (frame, channel) in (0..filters - 1).flat_map(|frame| (0..CHANNELS).map(move |c| (frame, c))) {
            let done = filters - 1 - frame;
            let x = f64::from(samples[sample(frame, channel)]);
            y[(done - 1) * CHANNELS + channel] = cascade.pass(channel, 0..done, x);
        }
        cascade.steps::<CHANNELS, LANES>(&mut y, samples, stride);
        // The older a sample, the more filters it has passed, and the sooner it meets the others.
        for (back, channel) in (1..filters).rev().flat_map(|back| (0..CHANNELS).map(move |c| (back, c))) {
            let x = y[(back - 1) * CHANNELS + channel];
            samples[sample(frames - back, channel)] = cascade.pass(channel, back..filters, x) as f32;
        }
    }
}

impl Cascade {
    /// Computes all lanes at once, for the frames that come to the first filter while the last one is busy.
    #[inline(always)]
    fn steps<const CHANNELS: usize, const LANES: usize>(
        &mut self,
        y: &mut [f64; LANES],
        samples: &mut [f32],
        stride: usize,
    ) {
        let lanes = |all: &Vec<f64>| all.first_chunk::<LANES>().copied().unwrap_or([0.0; LANES]);
        let ([b0, b1, b2], [a1, a2]) = (self.b.each_ref().map(lanes), self.a.each_ref().map(lanes));
        let [mut next, mut later] = self.state.each_ref().map(lanes);
        let mut last = *y;
        let delay = (LANES / CHANNELS - 1) * stride;
        for at in (0..samples.len() - delay).step_by(stride) {
            let mut x = [0.0; LANES];
            x[CHANNELS..].copy_from_slice(&last[..LANES - CHANNELS]);
            for channel in 0..CHANNELS {
                x[channel] = f64::from(samples[at + delay + channel]);
            }
            for lane in 0..LANES {
                let (b, a) = ([b0[lane], b1[lane], b2[lane]], [a1[lane], a2[lane]]);
                last[lane] = filter(x[lane], b, a, [&mut next[lane], &mut later[lane]]);
            }
            for channel in 0..CHANNELS {
                samples[at + channel] = last[LANES - CHANNELS + channel] as f32;
            }
        }
        self.state[0].copy_from_slice(&next);
        self.state[1].copy_from_slice(&later);
        *y = last;
    }
}
