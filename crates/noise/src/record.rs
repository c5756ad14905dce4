//! Record of a noise measurement: plain data, one JSON file.

use crate::attribute::{Gap, GapVerdict};
use crate::settings::NoiseSettings;
use crate::source::Chosen;
use crate::watch::LimitHit;
use onbeat_trace::{Class, KernelEvent, Machine, ReadError};
use serde::{Deserialize, Serialize};

/// Content of the field `schema`.
pub const SCHEMA: &str = "onbeat.noise";
/// Version that this crate writes and reads.
pub const VERSION: u32 = 1;

/// Noise of some cores, with everything that explains the numbers. Times are in nanoseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NoiseRecord {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// Name in comparisons: the name of the file, or what was asked for.
    pub name: String,
    /// Start, since 1970-01-01 00:00 UTC.
    pub started_unix_ns: u64,
    /// Start on `CLOCK_MONOTONIC`, the clock of all times in the record.
    pub begin_ns: u64,
    /// Time from the first clock read to the last.
    pub duration_ns: u64,
    /// The machine.
    pub machine: Machine,
    /// Settings of the measurement.
    pub settings: RecordedSettings,
    /// Source of the causes, with the reason for its choice.
    pub source: Chosen,
    /// Limit that ended the measurement, if one did.
    pub stopped: Option<LimitHit>,
    /// Number of limits that were hit while measuring went on.
    #[serde(default)]
    pub hits: u64,
    /// Requests that the machine refused, and other notes for the reader.
    pub notes: Vec<String>,
    /// Results by core.
    pub cpus: Vec<CpuNoise>,
    /// Last kernel events, if they were asked for; not written to JSON.
    #[serde(skip)]
    pub events: Vec<KernelEvent>,
    /// Last lines of the kernel's tracer with their times on its clock, if the tracer measured and they were
    /// asked for; not written to JSON.
    #[serde(skip)]
    pub lines: Vec<(u64, String)>,
}

impl NoiseRecord {
    /// Record of a measurement that has not begun.
    pub(crate) fn new(settings: &NoiseSettings, policy: String, source: Chosen) -> Self {
        NoiseRecord {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            name: String::new(),
            started_unix_ns: 0,
            begin_ns: 0,
            duration_ns: 0,
            machine: Machine::read(),
            settings: RecordedSettings {
                period_ns: settings.period_ns,
                runtime_ns: settings.runtime_ns,
                threshold_ns: settings.threshold_ns,
                policy,
                bucket_ns: settings.bucket_ns,
            },
            source,
            stopped: None,
            hits: 0,
            notes: Vec::new(),
            cpus: Vec::new(),
            events: Vec::new(),
            lines: Vec::new(),
        }
    }
}

/// Settings that a reader needs to interpret the numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSettings {
    /// Time from one measurement to the next.
    pub period_ns: u64,
    /// Duration of each measurement.
    pub runtime_ns: u64,
    /// Shortest gap that counts as noise.
    pub threshold_ns: u64,
    /// Scheduling policy of the measuring threads.
    pub policy: String,
    /// Width of a histogram bucket.
    pub bucket_ns: u64,
}

/// Noise of one core.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuNoise {
    /// The core.
    pub cpu: u32,
    /// Number of measured periods.
    pub periods: u64,
    /// Time spent reading the clock.
    pub runtime_ns: u64,
    /// Number of clock reads.
    pub looks: u64,
    /// Noise: the sum of all gaps.
    pub noise_ns: u64,
    /// Most noise in one period.
    pub max_noise_ns: u64,
    /// Longest gap.
    pub max_single_ns: u64,
    /// Noise by class. The times add up to `noise_ns`.
    pub parts: Parts,
    /// Noise by cause, the largest first.
    pub causes: Vec<CauseTotal>,
    /// Gaps by length.
    pub histogram: LinearHistogram,
    /// Lengths of gaps with their counts, within 1 %: for quantiles and resampling.
    pub lengths: Vec<(u64, u64)>,
    /// Longest gaps with their verdicts, the longest first.
    pub samples: Vec<GapVerdict>,
    /// Last gaps with the number of their interferences, if a trace was asked for; not written to JSON.
    #[serde(skip)]
    pub last_gaps: Vec<(Gap, usize)>,
    /// Gaps for which there was no room: their time is in `noise_ns`, as unexplained.
    pub gaps_dropped: u64,
    /// Number of kernel records.
    pub events: u64,
    /// Number of kernel records that had no room or could not be understood.
    pub events_lost: u64,
    /// Number of records that contradicted the known state.
    pub breaks: u64,
    /// Number of gaps in which records are missing.
    pub doubtful: u64,
    /// Time that the hypervisor reports as stolen, in steps of 10 ms. It under-reports.
    pub steal_ns: u64,
    /// The kernel's own counts of interrupts, by name.
    pub interrupts: Vec<(String, u64)>,
    /// The kernel's own counts of softirqs, by name.
    pub softirqs: Vec<(String, u64)>,
}

/// Noise by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Gaps without any event: the hypervisor, or firmware.
    pub hardware: ClassTotal,
    /// Non-maskable interrupts.
    pub nmi: ClassTotal,
    /// Interrupts.
    pub irq: ClassTotal,
    /// Deferred interrupt work.
    pub softirq: ClassTotal,
    /// Other threads.
    pub thread: ClassTotal,
    /// Time that matches no event, in gaps that have events.
    pub unexplained_ns: u64,
}

/// Count and time of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTotal {
    /// Number of events.
    pub count: u64,
    /// Their time within gaps, without the events that interrupted them.
    pub ns: u64,
}

impl Parts {
    /// Returns the total of a class; zero for classes that take no time.
    #[must_use]
    pub fn of(&self, class: Class) -> ClassTotal {
        let mut parts = *self;
        parts.of_mut(class).map(|part| *part).unwrap_or_default()
    }

    pub(crate) fn of_mut(&mut self, class: Class) -> Option<&mut ClassTotal> {
        match class {
            Class::Hardware => Some(&mut self.hardware),
            Class::Nmi => Some(&mut self.nmi),
            Class::Irq => Some(&mut self.irq),
            Class::Softirq => Some(&mut self.softirq),
            Class::Thread => Some(&mut self.thread),
            Class::Wakeup | Class::Migration | Class::PageFault => None,
        }
    }

    /// Returns the sum of all classes and of the unexplained time.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        CLASSES.iter().map(|class| self.of(*class).ns).sum::<u64>() + self.unexplained_ns
    }
}

/// All classes, in the order of rtla's columns.
pub const CLASSES: [Class; 5] = [Class::Hardware, Class::Nmi, Class::Irq, Class::Softirq, Class::Thread];

/// Total of one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseTotal {
    /// Its class.
    pub class: Class,
    /// Its name.
    pub name: String,
    /// Number of times that it interfered.
    pub count: u64,
    /// Total time.
    pub total_ns: u64,
    /// Longest time in one gap.
    pub max_ns: u64,
}

/// Histogram with buckets of one width, as in rtla.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinearHistogram {
    /// Width of a bucket.
    pub bucket_ns: u64,
    /// Count of each bucket.
    pub counts: Vec<u64>,
    /// Count beyond the last bucket.
    pub over: u64,
    /// Total count.
    pub count: u64,
    /// Minimum; 0 if empty.
    pub min_ns: u64,
    /// Sum.
    pub sum_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl LinearHistogram {
    /// Makes an empty histogram.
    #[must_use]
    pub fn new(bucket_ns: u64, entries: usize) -> Self {
        LinearHistogram {
            bucket_ns: bucket_ns.max(1),
            counts: vec![0; entries],
            ..LinearHistogram::default()
        }
    }

    /// Adds a value.
    pub fn add(&mut self, ns: u64) {
        let at = usize::try_from(ns / self.bucket_ns.max(1)).unwrap_or(usize::MAX);
        match self.counts.get_mut(at) {
            Some(count) => *count += 1,
            None => self.over += 1,
        }
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.count += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Mean; 0 if empty.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count).unwrap_or(0)
    }
}

impl CpuNoise {
    /// Fraction of the time that was not taken away, from 0 to 1.
    #[must_use]
    pub fn available(&self) -> f64 {
        if self.runtime_ns == 0 {
            return 1.0;
        }
        1.0 - self.noise_ns as f64 / self.runtime_ns as f64
    }
}

impl NoiseRecord {
    /// Returns the record as JSON, with a final line end.
    ///
    /// # Panics
    /// Never: a record is plain data.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a record is plain data") + "\n"
    }

    /// Reads the JSON that [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// The difference from the expected content, and what to do.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(ReadError::NotJson)?;
        let found = value.get("schema").and_then(|schema| schema.as_str());
        if found != Some(SCHEMA) {
            return Err(ReadError::OtherSchema { found: found.map(str::to_owned), expected: SCHEMA });
        }
        if value.get("version") != Some(&VERSION.into()) {
            let found = value.get("version").map_or("missing".to_owned(), ToString::to_string);
            return Err(ReadError::OtherVersion { schema: SCHEMA, found, expected: VERSION });
        }
        let malformed = |source| ReadError::Malformed { schema: SCHEMA, version: VERSION, source };
        serde_json::from_value(value).map_err(malformed)
    }
}
