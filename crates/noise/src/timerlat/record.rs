//! Record of a timer measurement: plain data, one JSON file.

use super::LatencySettings;
use crate::analysis::Analysis;
use crate::record::LinearHistogram;
use crate::source::Chosen;
use crate::watch::LimitHit;
use onbeat_trace::{Histogram, KernelEvent, Machine, Summary};
use serde::{Deserialize, Serialize};

/// Content of the field `schema`.
const SCHEMA: &str = "onbeat.timerlat";
/// Version that this crate writes.
const VERSION: u32 = 1;

/// Timer latency of some cores, with everything that explains the numbers. Times are in nanoseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LatencyRecord {
    /// `onbeat.timerlat`.
    pub schema: String,
    /// 1.
    pub version: u32,
    /// Name in comparisons.
    pub name: String,
    /// Start, since 1970-01-01 00:00 UTC.
    pub started_unix_ns: u64,
    /// Start on `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// Duration.
    pub duration_ns: u64,
    /// The machine.
    pub machine: Machine,
    /// Time from one wake-up to the next.
    pub period_ns: u64,
    /// Scheduling policy asked for the measuring threads.
    pub policy: String,
    /// Source of the causes, with the reason for its choice.
    pub source: Chosen,
    /// Limit that ended the measurement, if one did.
    pub stopped: Option<LimitHit>,
    /// Number of limits that were hit while measuring went on.
    #[serde(default)]
    pub hits: u64,
    /// Threads that had the measured cores when a limit ended the measurement, if known.
    #[serde(default)]
    pub tasks: Vec<Task>,
    /// Requests that the machine refused, and other notes for the reader.
    pub notes: Vec<String>,
    /// Results by core.
    pub cpus: Vec<CpuLatency>,
    /// Last kernel events, if they were asked for; not written to JSON.
    #[serde(skip)]
    pub events: Vec<KernelEvent>,
    /// Last lines of the kernel's tracer with their times on its clock, if the tracer measured and they were
    /// asked for; not written to JSON.
    #[serde(skip)]
    pub lines: Vec<(u64, String)>,
}

impl LatencyRecord {
    /// Record of a measurement that has not begun.
    pub(crate) fn new(settings: &LatencySettings, policy: String, source: Chosen) -> Self {
        LatencyRecord {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            name: String::new(),
            started_unix_ns: 0,
            begin_ns: 0,
            duration_ns: 0,
            machine: Machine::read(),
            period_ns: settings.period_ns,
            policy,
            source,
            stopped: None,
            hits: 0,
            tasks: Vec::new(),
            notes: Vec::new(),
            cpus: Vec::new(),
            events: Vec::new(),
            lines: Vec::new(),
        }
    }
}

/// Thread that had a core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The core.
    pub cpu: u32,
    /// Its name.
    pub name: String,
    /// Its id.
    pub pid: i32,
}

/// Timer latency of one core.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CpuLatency {
    /// The core.
    pub cpu: u32,
    /// Number of wake-ups.
    pub count: u64,
    /// Latency of the timer's interrupt; empty if the source does not show it.
    pub irq: Series,
    /// Latency until the thread gets the core; empty if the source does not show it.
    pub thread: Series,
    /// Latency until the thread's own code runs.
    pub user: Series,
    /// Latest wake-ups, the latest first.
    pub samples: Vec<Analysis>,
    /// Wake-up that ended the measurement.
    pub stopped_by: Option<Analysis>,
    /// Number of wake-ups for which there was no room.
    pub dropped: u64,
    /// Number of kernel records.
    pub events: u64,
    /// Number of kernel records that had no room or could not be understood.
    pub events_lost: u64,
    /// Number of records that contradicted the known state.
    pub breaks: u64,
    /// Time that the hypervisor reports as stolen, in steps of 10 ms.
    pub steal_ns: u64,
}

/// One of the three latencies.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Series {
    /// Last value.
    pub last_ns: u64,
    /// Histogram with buckets of one width.
    pub histogram: LinearHistogram,
    /// Summary in a few numbers.
    pub summary: Summary,
}

/// Sums up the wake-ups of one core.
#[derive(Debug)]
pub(crate) struct LatencyTally {
    latency: CpuLatency,
    kinds: [(u64, LinearHistogram, Histogram); 3],
    samples: usize,
}

impl LatencyTally {
    pub fn new(cpu: u32, bucket_ns: u64, entries: usize, samples: usize) -> Self {
        let kind = || (0, LinearHistogram::new(bucket_ns, entries), Histogram::new());
        let latency = CpuLatency { cpu, ..CpuLatency::default() };
        LatencyTally { latency, kinds: [kind(), kind(), kind()], samples }
    }

    /// The core.
    pub fn cpu(&self) -> u32 {
        self.latency.cpu
    }

    /// Adds a wake-up. `has_user` says whether the time of the thread's own code is known.
    pub fn wake(&mut self, analysis: Analysis, has_user: bool) {
        let wake = &analysis.wake;
        self.latency.count += 1;
        let user_ns = Some(wake.user_latency_ns()).filter(|_| has_user);
        let values = [wake.irq_latency_ns(), wake.thread_latency_ns(), user_ns];
        for ((last_ns, buckets, histogram), value_ns) in self.kinds.iter_mut().zip(values) {
            if let Some(value_ns) = value_ns {
                *last_ns = value_ns;
                buckets.add(value_ns);
                histogram.record(value_ns);
            }
        }
        let late = |analysis: &Analysis| analysis.wake.user_latency_ns();
        let at = self.latency.samples.partition_point(|kept| late(kept) >= late(&analysis));
        if at < self.samples {
            self.latency.samples.insert(at, analysis);
            self.latency.samples.truncate(self.samples);
        }
    }

    pub fn stopped(&mut self, analysis: Analysis) {
        self.latency.stopped_by.get_or_insert(analysis);
    }

    pub fn stopped_by(&self) -> Option<&Analysis> {
        self.latency.stopped_by.as_ref()
    }

    /// Returns the result so far.
    pub fn so_far(&self) -> CpuLatency {
        let series = |(last_ns, buckets, histogram): &(u64, LinearHistogram, Histogram)| Series {
            last_ns: *last_ns,
            histogram: buckets.clone(),
            summary: histogram.summary(),
        };
        let [irq, thread, user] = self.kinds.each_ref().map(series);
        CpuLatency { irq, thread, user, ..self.latency.clone() }
    }
}

impl LatencyRecord {
    /// Returns the record as JSON, with a final line end.
    ///
    /// # Panics
    /// Never: a record is plain data.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a record is plain data") + "\n"
    }
}
