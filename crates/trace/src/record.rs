//! Record of one run: all measurements, the machine's facts and the resolved configuration, as one JSON file.
//!
//! `SCHEMA.md` in this crate describes every field of the JSON. Rules for all fields:
//!
//! - the unit is in the name: `_ns` nanoseconds, `_bytes`; a field without one is a count or a word;
//! - times are nanoseconds since the start of the run, except `started_unix_ns`;
//! - an unknown or unmeasured value is `null`, never a made-up number;
//! - later versions of onbeat may add fields without a new schema version: readers skip unknown fields.

mod activity;
mod compact;
mod link;
mod plan;
mod words;

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use activity::{
    ChangeRecord, EdgeRecord, FaultRecord, InFlightLimit, LossRecord, MeasuredRecord, Miss, OperatorRecord,
    PathRecord, Sharing, SlowMessage, SlowStep, StoreRecord, ThreadRecord,
};
pub use link::LinkRecord;
pub use plan::{PlanRecord, WorkerRecord};
pub use words::{
    ChangeKind, ClockKind, FaultAction, FaultKind, MissKind, OperatorState, Outcome, Scheduler, WhenFull,
};

use crate::cause::{Cause, Explained};
use crate::{Machine, ReadError, replace};

/// Content of the field `schema` of every record.
pub const SCHEMA: &str = "onbeat.record";

/// Version of the schema that this crate writes and reads. It increases when a field is removed or changes
/// its meaning.
pub const VERSION: u32 = 1;

/// Record of one run. The [module](self) has the rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// Name of the pipeline.
    pub name: String,
    /// Version and build of onbeat.
    pub build: Build,
    /// Start of the run, in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_unix_ns: u64,
    /// The machine.
    pub machine: Machine,
    /// Resolved configuration of the run: defaults filled in, command-line settings applied.
    pub config: serde_json::Value,
    /// Workers and their operators.
    pub plan: PlanRecord,
    /// Clock of the run.
    pub clock: ClockRecord,
    /// All threads that the run started.
    pub threads: Vec<ThreadRecord>,
    /// All operators, in the plan's order.
    pub operators: Vec<OperatorRecord>,
    /// All edges, in the graph's order.
    pub edges: Vec<EdgeRecord>,
    /// All paths whose latency was measured.
    pub paths: Vec<PathRecord>,
    /// All chunk stores.
    pub stores: Vec<StoreRecord>,
    /// Misses; the first ones, if there were more than the run had room for.
    pub misses: Vec<Miss>,
    /// Number of misses, including those without room.
    pub misses_total: u64,
    /// Causes of all misses together, the most expensive first.
    #[serde(default)]
    pub causes: Vec<Cause>,
    /// How the causes were found; `None` if they were not looked for.
    #[serde(default)]
    pub explained: Option<Explained>,
    /// Changes made from outside during the run; the first ones, if there were more than the run had room
    /// for.
    #[serde(default)]
    pub changes: Vec<ChangeRecord>,
    /// Number of changes, including those without room.
    #[serde(default)]
    pub changes_total: u64,
    /// Failures; the first ones, if there were more than the run had room for.
    #[serde(default)]
    pub faults: Vec<FaultRecord>,
    /// Number of failures, including those without room.
    #[serde(default)]
    pub faults_total: u64,
    /// Requests to the machine, and their results.
    pub obtained: Vec<Obtained>,
    /// Links with other runs, on this machine or on others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkRecord>,
    /// How often `SCHED_DEADLINE` threads used up the run time of a period; `None` if there were no such
    /// threads.
    #[serde(default)]
    pub deadline_overruns: Option<u64>,
    /// Notes of the plan and of operators, such as a replaced value or clipped samples. Each begins with the
    /// name of its subject.
    pub notes: Vec<String>,
    /// Result of the run.
    pub result: RunResult,
}

/// Version and build of onbeat that wrote a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its version.
    pub version: String,
    /// Build profile: `release`, `dev`. Figures of a `dev` build mean little.
    pub profile: String,
    /// Target triple of the build, or the known part of it.
    pub target: String,
}

/// Clock of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockRecord {
    /// Real or manual.
    pub kind: ClockKind,
    /// Source of a real clock: `tsc`, `clock_gettime`.
    #[serde(default)]
    pub source: Option<String>,
    /// Cost of one read on this machine, in nanoseconds.
    pub read_ns: Option<f64>,
}

/// A setting that was asked for, and the machine's answer: a policy, a memory lock, cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obtained {
    /// The setting and its owner: `policy of worker-0`.
    pub what: String,
    /// Value that was asked for.
    pub asked: String,
    /// Value in force; equal to `asked` if the request was granted.
    pub obtained: String,
    /// Why the value differs, and how to get the right.
    pub reason: Option<String>,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// Result in a word.
    pub outcome: Outcome,
    /// Result in a sentence.
    pub reason: String,
    /// Time from the start of the first step to the end of the last, in nanoseconds of the run's clock.
    pub duration_ns: u64,
    /// Data lost unintentionally: messages left in queues, and the [`losses`](OperatorRecord::losses) of
    /// operators, each in its own unit. Messages that an edge dropped by its `when_full` do not count.
    pub lost: u64,
    /// Exit status of the process: 0 good, 1 error, 2 a limit was hit, 3 data was lost.
    pub exit_status: u8,
}

impl Record {
    /// Returns the record as JSON over several lines, with a final line end. A list of numbers is on one
    /// line.
    ///
    /// A number that is not finite, which JSON cannot express, becomes `null`; such a record cannot be read
    /// back.
    #[must_use]
    pub fn to_json_pretty(&self) -> String {
        let mut json = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut json, compact::Compact::default());
        self.serialize(&mut serializer).expect("plain data with text for keys");
        json.push(b'\n');
        String::from_utf8(json).expect("JSON is UTF-8")
    }

    /// Parses a record from its JSON.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the text is not JSON, has another schema or version, or does not fit its own.
    pub fn from_json(json: &str) -> Result<Self, ReadError> {
        // Checked before the rest: another version may have other fields.
        let value: serde_json::Value = serde_json::from_str(json).map_err(ReadError::NotJson)?;
        let schema = value.get("schema").and_then(|schema| schema.as_str());
        if schema != Some(SCHEMA) {
            return Err(ReadError::OtherSchema { found: schema.map(str::to_owned), expected: SCHEMA });
        }
        let version = value.get("version");
        if version.and_then(serde_json::Value::as_u64) != Some(u64::from(VERSION)) {
            let found = version.map_or_else(|| "missing".to_owned(), ToString::to_string);
            return Err(ReadError::OtherVersion { schema: SCHEMA, found, expected: VERSION });
        }
        // Parsed from the text, not from the value, so that an error has a line number.
        serde_json::from_str(json).map_err(|source| ReadError::Malformed {
            schema: SCHEMA,
            version: VERSION,
            source,
        })
    }

    /// Returns the data lost unintentionally by unit: `messages` left in queues, and the losses of operators.
    #[must_use]
    pub fn lost_by_unit(&self) -> Vec<(u64, &str)> {
        let mut sums: Vec<(u64, &str)> = Vec::new();
        for loss in self.operators.iter().flat_map(|operator| &operator.losses) {
            match sums.iter_mut().find(|(_, unit)| *unit == loss.unit) {
                Some((sum, _)) => *sum = sum.saturating_add(loss.count),
                None => sums.push((loss.count, &loss.unit)),
            }
        }
        let by_operators = sums.iter().map(|(count, _)| *count).fold(0, u64::saturating_add);
        let in_queues = self.result.lost.saturating_sub(by_operators);
        if in_queues > 0 {
            sums.insert(0, (in_queues, "messages"));
        }
        sums
    }

    /// Writes the record to `path` atomically: to a temporary file in the same folder, flushed to the disk,
    /// then renamed. Readers see the old file or the new one, never a part of one, even if the disk is full.
    ///
    /// A path that is not a regular file, such as `/dev/stdout`, is written to directly.
    ///
    /// # Errors
    ///
    /// What the kernel reports; the message names the path. The temporary file is removed, and the old
    /// content of `path` is kept.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        replace::replace(path.as_ref(), self.to_json_pretty().as_bytes())
    }
}
