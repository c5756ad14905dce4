//! Settings of a noise measurement.

use crate::error::NoiseError;
use crate::session::MeasuringLimits;
use crate::source::{Backend, RingShape};
use onbeat_os::{CoreSet, Policy};

/// Settings of a noise measurement. Times in nanoseconds.
#[derive(Debug, Clone)]
pub struct NoiseSettings {
    /// Cores to measure; `None` for all that this process may use.
    pub cpus: Option<CoreSet>,
    /// Cores for all other threads of this process; `None` for the cores that are not measured.
    pub house_keeping: Option<CoreSet>,
    /// Scheduling policy of the measuring threads; `None` for the inherited one.
    pub policy: Option<Policy>,
    /// Time from one measurement to the next.
    pub period_ns: u64,
    /// Duration of each measurement; the thread sleeps for the rest of the period.
    pub runtime_ns: u64,
    /// Shortest gap that counts as noise.
    pub threshold_ns: u64,
    /// Stops at the first gap longer than this.
    pub stop_single_ns: Option<u64>,
    /// Stops at the first period with more noise than this.
    pub stop_total_ns: Option<u64>,
    /// Whether a limit that is hit is only reported to the watcher, and measuring goes on.
    pub goes_on: bool,
    /// Duration of the whole measurement; without it, the watcher ends it.
    pub duration_ns: Option<u64>,
    /// Warm-up to discard.
    pub warm_up_ns: u64,
    /// Width of a histogram bucket.
    pub bucket_ns: u64,
    /// Number of histogram buckets.
    pub entries: usize,
    /// Number of the longest gaps that are reported one by one.
    pub samples: usize,
    /// Source of the causes.
    pub backend: Backend,
    /// Size of each core's ring.
    pub ring_bytes: usize,
    /// Number of each core's last kernel events and gaps that are kept for a trace.
    pub keep_events: usize,
}

impl Default for NoiseSettings {
    fn default() -> Self {
        NoiseSettings {
            cpus: None,
            house_keeping: None,
            policy: None,
            period_ns: 1_000_000_000,
            runtime_ns: 1_000_000_000,
            threshold_ns: 5_000,
            stop_single_ns: None,
            stop_total_ns: None,
            goes_on: false,
            duration_ns: None,
            warm_up_ns: 0,
            bucket_ns: 1_000,
            entries: 256,
            samples: 20,
            backend: Backend::Auto,
            ring_bytes: RingShape::default().ring_bytes,
            keep_events: 0,
        }
    }
}

impl NoiseSettings {
    pub(crate) fn shape(&self) -> RingShape {
        RingShape { ring_bytes: self.ring_bytes, keep: self.keep_events, ..RingShape::default() }
    }

    pub(crate) fn limits(&self) -> MeasuringLimits {
        MeasuringLimits {
            duration_ns: self.duration_ns,
            warm_up_ns: self.warm_up_ns,
            goes_on: self.goes_on,
            keep_events: self.keep_events,
        }
    }

    pub(crate) fn check(&self) -> Result<(), NoiseError> {
        let wrong = |why: String| Err(NoiseError::Settings(why));
        let NoiseSettings { period_ns, runtime_ns, threshold_ns, .. } = *self;
        if period_ns == 0 || runtime_ns == 0 {
            return wrong("a period and a run time of 0 measure nothing: give both at least 1 ms".to_owned());
        }
        if runtime_ns > period_ns {
            return wrong(format!(
                "a run time of {} us does not fit in a period of {} us: lower -r, or raise -p",
                runtime_ns / 1000,
                period_ns / 1000
            ));
        }
        if threshold_ns == 0 {
            return wrong("a threshold of 0 makes every clock read a gap: give at least 1 ns".to_owned());
        }
        if threshold_ns > runtime_ns {
            return wrong(format!(
                "a threshold of {} us is above the run time of {} us: no gap could be found",
                threshold_ns / 1000,
                runtime_ns / 1000
            ));
        }
        Ok(())
    }
}
