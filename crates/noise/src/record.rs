//! What was measured of a machine's noise: plain data, one JSON file.

use crate::attribute::{Gap, GapVerdict};
use crate::settings::NoiseSettings;
use crate::source::Chosen;
use crate::watch::LimitHit;
use onbeat_trace::{Class, KernelEvent, Machine, ReadError};
use serde::{Deserialize, Serialize};

/// What the field `schema` says.
pub const SCHEMA: &str = "onbeat.noise";
/// The version that is written and read.
pub const VERSION: u32 = 1;

/// The noise of some cores, with everything that explains the numbers. Times are in nanoseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NoiseRecord {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// What it is called where it is compared: the name of its file, or what was asked for.
    pub name: String,
    /// Since 1970-01-01 00:00 UTC.
    pub started_unix_ns: u64,
    /// When it began, on `CLOCK_MONOTONIC`, on which all its moments are.
    pub begin_ns: u64,
    /// From the first look at the clock to the last.
    pub duration_ns: u64,
    /// The machine.
    pub machine: Machine,
    /// What was asked for.
    pub settings: RecordedSettings,
    /// Where the causes come from, and why from there.
    pub source: Chosen,
    /// Which limit ended it, if one did.
    pub stopped: Option<LimitHit>,
    /// How often a limit was hit and it went on.
    #[serde(default)]
    pub hits: u64,
    /// What was asked of the machine and not given, and what a reader has to know.
    pub notes: Vec<String>,
    /// Core by core.
    pub cpus: Vec<CpuNoise>,
    /// The last kernel events, where they were asked for; they are not written.
    #[serde(skip)]
    pub events: Vec<KernelEvent>,
    /// The last lines of the kernel's tracer and their moments on its clock, where it measured and they were asked for; they are not
    /// written.
    #[serde(skip)]
    pub lines: Vec<(u64, String)>,
}

impl NoiseRecord {
    /// Of a measurement that has not begun.
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

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSettings {
    /// From measurement to measurement.
    pub period_ns: u64,
    /// How long each looks at the clock.
    pub runtime_ns: u64,
    /// What is shorter is no noise.
    pub threshold_ns: u64,
    /// What the kernel's scheduler gave to the measuring threads.
    pub policy: String,
    /// The width of a bucket of the histogram.
    pub bucket_ns: u64,
}

/// The noise of one core.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuNoise {
    /// Which one.
    pub cpu: u32,
    /// Periods that were measured.
    pub periods: u64,
    /// Time in which the clock was looked at.
    pub runtime_ns: u64,
    /// How often.
    pub looks: u64,
    /// What was taken of it: the sum of all gaps.
    pub noise_ns: u64,
    /// The most in one period.
    pub max_noise_ns: u64,
    /// The longest gap.
    pub max_single_ns: u64,
    /// What it was made of. Its times sum to `noise_ns`.
    pub parts: Parts,
    /// By name, the largest first.
    pub causes: Vec<CauseTotal>,
    /// The gaps by their length.
    pub histogram: LinearHistogram,
    /// Lengths of gaps and how many there were, within 1 %: for quantiles and for resampling.
    pub lengths: Vec<(u64, u64)>,
    /// The longest gaps and what took them, the longest first.
    pub samples: Vec<GapVerdict>,
    /// The last gaps and how many interfered in each, where a trace was asked for; they are not written.
    #[serde(skip)]
    pub last_gaps: Vec<(Gap, usize)>,
    /// Gaps for which there was no room: their time is in `noise_ns`, and unexplained.
    pub gaps_dropped: u64,
    /// Records of the kernel.
    pub events: u64,
    /// Records that the kernel had no room for, or that could not be understood.
    pub events_lost: u64,
    /// How often a record did not fit what was known.
    pub breaks: u64,
    /// Gaps in which something is missing.
    pub doubtful: u64,
    /// What the hypervisor admits to have taken, in steps of 10 ms. It under-reports.
    pub steal_ns: u64,
    /// Interrupts that the kernel has counted, by name.
    pub interrupts: Vec<(String, u64)>,
    /// Softirqs that the kernel has counted, by name.
    pub softirqs: Vec<(String, u64)>,
}

/// What noise is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Gaps without any event: the hypervisor, or firmware.
    pub hardware: ClassTotal,
    /// Interrupts that cannot be masked.
    pub nmi: ClassTotal,
    /// Interrupts.
    pub irq: ClassTotal,
    /// Deferred interrupt work.
    pub softirq: ClassTotal,
    /// Other threads.
    pub thread: ClassTotal,
    /// What is left beside the events.
    pub unexplained_ns: u64,
}

/// One class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTotal {
    /// How many.
    pub count: u64,
    /// Their time within gaps, without what interrupted them.
    pub ns: u64,
}

impl Parts {
    /// Of this class; nothing for those that take no time.
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

    /// All classes and what is unexplained.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        CLASSES.iter().map(|class| self.of(*class).ns).sum::<u64>() + self.unexplained_ns
    }
}

/// All classes, in the order of rtla's columns.
pub const CLASSES: [Class; 5] = [Class::Hardware, Class::Nmi, Class::Irq, Class::Softirq, Class::Thread];

/// One cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseTotal {
    /// What kind.
    pub class: Class,
    /// Its name.
    pub name: String,
    /// How often it interfered.
    pub count: u64,
    /// What it took in all.
    pub total_ns: u64,
    /// The most at once.
    pub max_ns: u64,
}

/// A histogram as rtla has it: buckets of one width, and what is longer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinearHistogram {
    /// The width of a bucket.
    pub bucket_ns: u64,
    /// How many in each.
    pub counts: Vec<u64>,
    /// How many are beyond the last.
    pub over: u64,
    /// How many in all.
    pub count: u64,
    /// The least; 0 where there is none.
    pub min_ns: u64,
    /// The sum of all.
    pub sum_ns: u64,
    /// The most.
    pub max_ns: u64,
}

impl LinearHistogram {
    /// Empty ones.
    #[must_use]
    pub fn new(bucket_ns: u64, entries: usize) -> Self {
        LinearHistogram {
            bucket_ns: bucket_ns.max(1),
            counts: vec![0; entries],
            ..LinearHistogram::default()
        }
    }

    /// Counts one.
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

    /// The mean; 0 where there is none.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count).unwrap_or(0)
    }
}

impl CpuNoise {
    /// The part of the time that was not taken, from 0 to 1.
    #[must_use]
    pub fn available(&self) -> f64 {
        if self.runtime_ns == 0 {
            return 1.0;
        }
        1.0 - self.noise_ns as f64 / self.runtime_ns as f64
    }
}

impl NoiseRecord {
    /// As JSON, with an end of line.
    ///
    /// # Panics
    /// Never: it is plain data.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a record is plain data") + "\n"
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// What it is instead, and what to give.
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
