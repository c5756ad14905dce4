//! How sources with a sample rate keep time.

use crate::base::options::Pace;
use crate::{Context, Step};

/// Says when a source's samples are due, and stamps them.
///
/// A run of samples is due when its last sample is: a radio would not have it earlier. Under [`Pace::Real`]
/// the source waits for that; under [`Pace::Fast`] it does not, and its messages have a source time but no
/// due time.
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
    /// `rate_hz` is samples per second; at 0 there is no time to keep and everything is due at once.
    pub fn new(rate_hz: f64, pace: Pace) -> Self {
        Pacer { rate_hz, pace }
    }

    /// Samples per second, where it keeps time; `pace` is what the run asks for.
    pub fn kept_hz(&self, pace: Option<Pace>) -> Option<f64> {
        (self.rate_hz > 0.0 && pace.unwrap_or(self.pace) == Pace::Real).then_some(self.rate_hz)
    }

    /// From the first sample to sample number `sample`, in nanoseconds.
    pub fn time_ns(&self, sample: u64) -> u64 {
        if self.rate_hz > 0.0 { (sample as f64 * 1e9 / self.rate_hz).round() as u64 } else { 0 }
    }

    /// For the samples `begin..end`: what to return from the step when they are not due yet. When they are,
    /// stamps what is pushed next and says `None`.
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

/// How often an operator that keeps time sends, as far as it is known before a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// So many nanoseconds from one message to the next.
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
    /// From one message to the next, in nanoseconds, where a chunk has room for so many bytes. `None` where
    /// that means nothing.
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
