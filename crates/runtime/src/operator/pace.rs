//! How sources with a sample rate keep time.

use crate::base::options::Pace;
use crate::{Context, Step};

/// Keeps the time of a source with a sample rate, and stamps its messages.
///
/// A run of samples is due when its last sample is: a radio would not have it earlier. Under [`Pace::Real`]
/// the source waits until then. Under [`Pace::Fast`] it does not wait, and its messages have a source time
/// but no due time.
///
/// ```
/// use onbeat_runtime::{Context, Pace, Pacer, Step};
/// # fn send(cx: &mut Context, pacer: &Pacer, sent: u64) -> Step {
/// if let Some(wait) = pacer.wait(cx, sent, sent + 256) {
///     return wait;
/// }
/// // ... push 256 samples ...
/// # Step::Again }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Pacer {
    rate_hz: f64,
    pace: Pace,
}

impl Pacer {
    /// Makes a pacer for `rate_hz` samples per second. At 0 everything is due at once.
    pub fn new(rate_hz: f64, pace: Pace) -> Self {
        Pacer { rate_hz, pace }
    }

    /// Returns the samples per second if the source keeps time. `pace` is the pace that the run asks for.
    pub fn kept_hz(&self, pace: Option<Pace>) -> Option<f64> {
        (self.rate_hz > 0.0 && pace.unwrap_or(self.pace) == Pace::Real).then_some(self.rate_hz)
    }

    /// Returns the time from the first sample to sample number `sample`, in nanoseconds.
    pub fn time_ns(&self, sample: u64) -> u64 {
        if self.rate_hz > 0.0 { (sample as f64 * 1e9 / self.rate_hz).round() as u64 } else { 0 }
    }

    /// Returns the result for the source's step if the samples `begin..end` are not due yet. If they are,
    /// stamps the messages that are pushed next, and returns `None`.
    #[inline]
    pub fn wait(&self, cx: &mut Context, begin: u64, end: u64) -> Option<Step> {
        if self.rate_hz > 0.0 {
            return self.wait_until(cx, begin, end);
        }
        cx.set_time(0, None);
        None
    }

    fn wait_until(&self, cx: &mut Context, begin: u64, end: u64) -> Option<Step> {
        let timed = cx.pace(self.pace) == Pace::Real;
        let due_ns = cx.start_ns().saturating_add(self.time_ns(end));
        if timed && cx.now_ns() < due_ns {
            return Some(cx.until(due_ns));
        }
        cx.set_time(self.time_ns(begin), timed.then_some(due_ns));
        None
    }
}

/// Rate at which an operator that keeps time sends, if it is known before a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Nanoseconds from one message to the next.
    Period(u64),
    /// Chunks of a stream of samples.
    Samples {
        /// Samples per second.
        rate_hz: f64,
        /// Samples per chunk; `None` for chunks as large as the edges allow.
        chunk: Option<u64>,
        /// Bytes of a sample.
        bytes: usize,
    },
}

impl Rate {
    /// Returns the bytes of the samples within a time, at least one sample, if chunks are as large as the
    /// edges allow.
    pub(crate) fn bytes_within(self, time_ns: u64) -> Option<usize> {
        match self {
            Rate::Samples { rate_hz, chunk: None, bytes } if rate_hz > 0.0 => {
                Some(((rate_hz * time_ns as f64 / 1e9) as usize).max(1).saturating_mul(bytes))
            }
            _ => None,
        }
    }

    /// Returns the nanoseconds from one message to the next if a chunk has room for `quantum_bytes` bytes.
    /// `None` if the period is not known.
    pub(crate) fn period_ns(self, quantum_bytes: Option<u32>) -> Option<u64> {
        match self {
            Rate::Period(period_ns) => Some(period_ns),
            Rate::Samples { rate_hz, chunk, bytes } => {
                let samples = chunk.or_else(|| Some((quantum_bytes? as usize / bytes.max(1)) as u64))?;
                (rate_hz > 0.0).then(|| (samples as f64 * 1e9 / rate_hz) as u64)
            }
        }
    }
}
