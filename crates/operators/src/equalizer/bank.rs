//! The cascades of all channels of a stream.

use super::band::BiquadWeights;
use super::cascade::{Cascade, CascadeLoop};
use crate::vectors::Vectors;

/// The same filters for each of several interleaved channels.
#[derive(Debug, Clone)]
pub(crate) struct CascadeBank {
    vectors: Vectors,
    channels: usize,
    /// The filters of channels 0 and 1, 2 and 3, and so on.
    cascades: Vec<Cascade>,
    /// Channel of the next sample.
    channel: usize,
}

impl CascadeBank {
    /// Creates the filters of 1 or more channels.
    pub fn new(filters: &[BiquadWeights], channels: usize) -> Self {
        let group = |first: usize| Cascade::new(filters, (channels - first).min(2));
        let cascades = (0..channels).step_by(2).map(group).collect();
        CascadeBank { vectors: Vectors::new(), channels, cascades, channel: 0 }
    }

    /// Changes the filters, as many as there were, and keeps their memory.
    pub fn set(&mut self, filters: &[BiquadWeights]) {
        self.cascades.iter_mut().for_each(|cascade| cascade.set(filters));
    }

    /// Channel of the next sample.
    pub fn channel(&self) -> usize {
        self.channel
    }

    /// Filters the next sample.
    pub fn one(&mut self, sample: &mut f32) {
        self.cascades[self.channel / 2].one(self.channel % 2, sample);
        self.channel = (self.channel + 1) % self.channels;
    }

    /// Filters the next samples, all of which must be finite.
    pub fn run(&mut self, samples: &mut [f32]) {
        let into_frame = ((self.channels - self.channel) % self.channels).min(samples.len());
        let (first, samples) = samples.split_at_mut(into_frame);
        first.iter_mut().for_each(|sample| self.one(sample));
        let (frames, last) = samples.split_at_mut(samples.len() / self.channels * self.channels);
        if !frames.is_empty() {
            for (group, cascade) in self.cascades.iter_mut().enumerate() {
                let samples = &mut frames[2 * group..];
                self.vectors.run(CascadeLoop { cascade, samples, stride: self.channels });
            }
        }
        last.iter_mut().for_each(|sample| self.one(sample));
    }
}
