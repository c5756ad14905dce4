//! Local maxima of a stream.

/// A local maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Maximum {
    /// Number of its sample from the first one on; of a plateau, the one in the middle, rounded down.
    pub at: u64,
    pub height: f32,
}

/// Finds samples, or runs of equal samples, whose neighbours on both sides are lower.
#[derive(Debug)]
pub(super) struct Maxima {
    last: f32,
    /// Number of the first sample of a run that began with a rise and has not ended.
    rise: Option<u64>,
    /// Number of samples so far.
    pub taken: u64,
    pub nan: u64,
}

impl Default for Maxima {
    fn default() -> Self {
        Maxima { last: f32::NAN, rise: None, taken: 0, nan: 0 }
    }
}

impl Maxima {
    #[inline]
    pub fn take(&mut self, x: f32) -> Option<Maximum> {
        let mut found = None;
        if x > self.last {
            self.rise = Some(self.taken);
        } else if x < self.last {
            let height = self.last;
            found = self.rise.take().map(|left| Maximum { at: (left + self.taken - 1) / 2, height });
        } else if x != self.last {
            // One of both is NaN.
            self.rise = None;
            self.nan += u64::from(x.is_nan());
        }
        self.last = x;
        self.taken += 1;
        found
    }

    /// Number of samples before which all maxima are known.
    pub fn known(&self) -> u64 {
        self.rise.unwrap_or(self.taken)
    }

    /// Ends the stream: a run that has not ended is not a maximum.
    pub fn finish(&mut self) {
        self.rise = None;
    }
}
