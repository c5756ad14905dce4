//! What was measured of timers: plain data, one JSON file.

use super::LatencySettings;
use crate::analysis::Analysis;
use crate::record::LinearHistogram;
use crate::source::Chosen;
use crate::watch::LimitHit;
use onbeat_trace::{Histogram, KernelEvent, Machine, Summary};
use serde::{Deserialize, Serialize};

/// What the field `schema` says.
const SCHEMA: &str = "onbeat.timerlat";
/// The version that is written.
const VERSION: u32 = 1;

/// The timer latency of some cores, with everything that explains the numbers. Times are in nanoseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LatencyRecord {
    /// `onbeat.timerlat`.
    pub schema: String,
    /// 1.
    pub version: u32,
    /// What it is called where it is compared.
    pub name: String,
    /// Since 1970-01-01 00:00 UTC.
    pub started_unix_ns: u64,
    /// When it began, on `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// The machine.
    pub machine: Machine,
    /// From wake-up to wake-up.
    pub period_ns: u64,
    /// What the scheduler was to give to the measuring threads.
    pub policy: String,
    /// Where the causes come from, and why from there.
    pub source: Chosen,
    /// Which limit ended it, if one did.
    pub stopped: Option<LimitHit>,
    /// How often a limit was hit and it went on.
    #[serde(default)]
    pub hits: u64,
    /// Who had the measured cores when a limit ended it, as far as that is known.
    #[serde(default)]
    pub tasks: Vec<Task>,
    /// What was asked of the machine and not given, and what a reader has to know.
    pub notes: Vec<String>,
    /// Core by core.
    pub cpus: Vec<CpuLatency>,
    /// The last kernel events, where they were asked for; they are not written.
    #[serde(skip)]
    pub events: Vec<KernelEvent>,
    /// The last lines of the kernel's tracer and their moments on its clock, where it measured and they were asked for; they are not
    /// written.
    #[serde(skip)]
    pub lines: Vec<(u64, String)>,
}

impl LatencyRecord {
    /// Of a measurement that has not begun.
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

/// The thread that had a core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Which core.
    pub cpu: u32,
    /// Its name.
    pub name: String,
    /// Its id.
    pub pid: i32,
}

/// The latencies of one core.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CpuLatency {
    /// Which one.
    pub cpu: u32,
    /// Wake-ups.
    pub count: u64,
    /// From the due moment to the timer's interrupt; empty where nobody sees it.
    pub irq: Series,
    /// To the core; empty where nobody sees it.
    pub thread: Series,
    /// To the thread's own code.
    pub user: Series,
    /// The latest wake-ups, the latest first.
    pub samples: Vec<Analysis>,
    /// The wake-up that ended it.
    pub stopped_by: Option<Analysis>,
    /// Wake-ups for which there was no room.
    pub dropped: u64,
    /// Records of the kernel.
    pub events: u64,
    /// Records that the kernel had no room for, or that could not be understood.
    pub events_lost: u64,
    /// How often a record did not fit what was known.
    pub breaks: u64,
    /// What the hypervisor admits to have taken, in steps of 10 ms.
    pub steal_ns: u64,
}

/// One kind of latency.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Series {
    /// The last one.
    pub last_ns: u64,
    /// In buckets of one width.
    pub histogram: LinearHistogram,
    /// In a few numbers.
    pub summary: Summary,
}

/// One core's, added up.
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

    /// Which core's.
    pub fn cpu(&self) -> u32 {
        self.latency.cpu
    }

    /// `has_user` says whether anybody saw the thread's own code.
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

    /// What there is so far.
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
    /// As JSON, with an end of line.
    ///
    /// # Panics
    /// Never: it is plain data.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a record is plain data") + "\n"
    }
}
