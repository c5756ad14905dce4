//! Stamps of a program's output, by the number of a sample.

use onbeat_runtime::Stamp;
use std::collections::VecDeque;

/// Chunks that the queue has room for at first.
const ROOM: usize = 256;

/// Samples that went in, with their stamp.
struct StampedSamples {
    begin: u64,
    end: u64,
    stamp: Stamp,
}

/// Stamps of the samples that are inside a program. Sample number `m` of the output has the stamp of sample
/// `m · rate in / rate out` of the input.
pub(super) struct PositionStamps {
    inside: VecDeque<StampedSamples>,
    received: u64,
    /// Numbers of the samples, in and out, from which on the relation holds.
    origin: (u64, u64),
    /// Rates in hertz; 0 if there are none.
    in_hz: f64,
    out_hz: f64,
}

impl PositionStamps {
    pub fn new() -> Self {
        let inside = VecDeque::with_capacity(ROOM);
        PositionStamps { inside, received: 0, origin: (0, 0), in_hz: 0.0, out_hz: 0.0 }
    }

    /// Sets the rates in hertz.
    pub fn rates(&mut self, in_hz: f64, out_hz: f64) {
        (self.in_hz, self.out_hz) = (in_hz, out_hz);
    }

    /// A new program goes on after `sent` samples of output.
    pub fn restart(&mut self, sent: u64) {
        self.inside.clear();
        self.origin = (self.received, sent);
    }

    /// The next samples go in.
    pub fn add(&mut self, samples: usize, stamp: Stamp) {
        let end = self.received + samples as u64;
        self.inside.push_back(StampedSamples { begin: self.received, end, stamp });
        self.received = end;
    }

    /// The input sample whose place an output sample has.
    fn input_of(&self, sample: u64) -> u64 {
        let since = sample - self.origin.1;
        let has_ratio = self.in_hz > 0.0 && self.out_hz > 0.0 && self.in_hz != self.out_hz;
        let since = if has_ratio { (since as f64 * self.in_hz / self.out_hz) as u64 } else { since };
        self.origin.0.saturating_add(since)
    }

    /// Samples that went in, and for which none has come out before this one.
    pub fn held(&self, sample: u64) -> u64 {
        self.received.saturating_sub(self.input_of(sample))
    }

    /// The stamp of an output sample. Samples for which none went in have no due time.
    pub fn stamp(&mut self, sample: u64) -> Stamp {
        let at = self.input_of(sample);
        // The last one stays, for what comes after it.
        while self.inside.len() > 1 && self.inside[0].end <= at {
            self.inside.pop_front();
        }
        let Some(StampedSamples { begin, end, stamp }) = self.inside.front() else { return Stamp::default() };
        let mut stamp = if at < *end { *stamp } else { stamp.without_due() };
        let after_ns = if self.in_hz > 0.0 { (at - begin.min(&at)) as f64 * 1e9 / self.in_hz } else { 0.0 };
        stamp.time_ns = stamp.time_ns.saturating_add(after_ns.round() as u64);
        stamp
    }
}
