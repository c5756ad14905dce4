//! Settings of a noise measurement.

use crate::error::Error;
use crate::session::MeasuringLimits;
use crate::source::{Backend, RingShape};
use onbeat_os::{CoreSet, Policy};

/// What to measure. Times in nanoseconds.
#[derive(Debug, Clone)]
pub struct NoiseSettings {
    /// Which cores; all that this process may use where there are none.
    pub cpus: Option<CoreSet>,
    /// Where everything else of ours runs; where it is not said, on the cores that are not measured.
    pub house_keeping: Option<CoreSet>,
    /// What the scheduler gives to the measuring threads; what they would have anyway where it is not said.
    pub policy: Option<Policy>,
    /// From measurement to measurement.
    pub period_ns: u64,
    /// How long each takes; the thread sleeps for the rest of the period.
    pub runtime_ns: u64,
    /// What is shorter is no noise.
    pub threshold_ns: u64,
    /// Ends it with the first gap that is longer.
    pub stop_single_ns: Option<u64>,
    /// Ends it with the first period that has more noise.
    pub stop_total_ns: Option<u64>,
    /// A limit that is hit is told to whoever watches, and it goes on.
    pub goes_on: bool,
    /// Ends it; without, whoever watches does.
    pub duration_ns: Option<u64>,
    /// So much at the begin is not counted.
    pub warm_up_ns: u64,
    /// The width of a bucket of the histogram.
    pub bucket_ns: u64,
    /// How many buckets it has.
    pub entries: usize,
    /// How many of the longest gaps are told one by one.
    pub samples: usize,
    /// Where the causes are to come from.
    pub backend: Backend,
    /// The size of a core's ring.
    pub ring_bytes: usize,
    /// How many of a core's last kernel events and gaps are kept for a trace.
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

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |why: String| Err(Error::Settings(why));
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
            return wrong(
                "a threshold of 0 makes every look at the clock a gap: give at least 1 ns".to_owned(),
            );
        }
        if threshold_ns > runtime_ns {
            return wrong(format!(
                "a threshold of {} us is above the run time of {} us: nothing could be found",
                threshold_ns / 1000,
                runtime_ns / 1000
            ));
        }
        Ok(())
    }
}
