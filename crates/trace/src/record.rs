//! Everything that one run measured, with the machine's facts and the resolved configuration: one
//! JSON file.
//!
//! `SCHEMA.md` in this crate has every field of the JSON. Rules that hold for all of them:
//!
//! - the unit is in the name: `_ns` nanoseconds, `_bytes`; what has none is a count or a word;
//! - moments are nanoseconds since the start of the run, except `started_unix_ns`;
//! - what is not known or not measured is `null`, never a made-up number;
//! - later onbeats may add fields without a new version: readers skip what they do not know.

mod activity;
mod compact;
mod plan;
mod words;

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use activity::{
    ChangeRecord, EdgeRecord, FaultRecord, InFlightLimit, Miss, OperatorRecord, PathRecord, Sharing,
    SlowMessage, SlowStep, StoreRecord, ThreadRecord,
};
pub use plan::{PlanRecord, WorkerRecord};
pub use words::{
    ChangeKind, ClockKind, FaultAction, FaultKind, MissKind, OperatorState, Outcome, Scheduler, WhenFull,
};

use crate::cause::{Cause, Explained};
use crate::{Machine, ReadError, replace};

/// What the field `schema` of every record says.
pub const SCHEMA: &str = "onbeat.record";

/// The version of the schema that this crate writes and reads. It rises when a field goes away or
/// changes its meaning.
pub const VERSION: u32 = 1;

/// Everything that one run measured. See the [module](self) for the rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// The name of the pipeline.
    pub name: String,
    /// Which onbeat this was.
    pub build: Build,
    /// When the run began, in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_unix_ns: u64,
    /// The machine.
    pub machine: Machine,
    /// The configuration of the run, resolved: defaults filled in, settings of the command line applied.
    pub config: serde_json::Value,
    /// Who ran where.
    pub plan: PlanRecord,
    /// Which clock the run went by.
    pub clock: ClockRecord,
    /// Every thread that the run started.
    pub threads: Vec<ThreadRecord>,
    /// Every operator, in the plan's order.
    pub operators: Vec<OperatorRecord>,
    /// Every edge, in the graph's order.
    pub edges: Vec<EdgeRecord>,
    /// Every path whose latency was measured.
    pub paths: Vec<PathRecord>,
    /// Every chunk store.
    pub stores: Vec<StoreRecord>,
    /// The misses, the first of them if there were more than the run had room for.
    pub misses: Vec<Miss>,
    /// How many misses there were, those without room included.
    pub misses_total: u64,
    /// What made them late, over all of them, what cost most first.
    #[serde(default)]
    pub causes: Vec<Cause>,
    /// How that was found; `None` where it was not looked for.
    #[serde(default)]
    pub explained: Option<Explained>,
    /// What was changed from outside while it ran, the first changes if there were more than the run had room for.
    #[serde(default)]
    pub changes: Vec<ChangeRecord>,
    /// How many changes there were, those without room included.
    #[serde(default)]
    pub changes_total: u64,
    /// What failed, the first failures if there were more than the run had room for.
    #[serde(default)]
    pub faults: Vec<FaultRecord>,
    /// How many failures there were, those without room included.
    #[serde(default)]
    pub faults_total: u64,
    /// What was asked of the machine, and what it gave.
    pub obtained: Vec<Obtained>,
    /// How often `SCHED_DEADLINE` threads used up the run time of a period; `None` where there were none.
    #[serde(default)]
    pub deadline_overruns: Option<u64>,
    /// What the plan pointed out, and what operators had to say: a value that was replaced, samples that were clipped. Each
    /// begins with whom it is about.
    pub notes: Vec<String>,
    /// How the run ended.
    pub result: RunResult,
}

/// Which onbeat wrote a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its version.
    pub version: String,
    /// The profile that it was built with: `release`, `dev`. Figures of a `dev` build are worth little.
    pub profile: String,
    /// The target triple that it was built for, or the part of it that is known.
    pub target: String,
}

/// Which clock a run went by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockRecord {
    /// Real or manual.
    pub kind: ClockKind,
    /// What a real one is read from: `tsc`, `clock_gettime`.
    #[serde(default)]
    pub source: Option<String>,
    /// What one read of it cost on this machine, in nanoseconds.
    pub read_ns: Option<f64>,
}

/// One setting that was asked for, and what the machine gave: a policy, a memory lock, cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obtained {
    /// Which setting, and of what: `policy of worker-0`.
    pub what: String,
    /// What was asked for.
    pub asked: String,
    /// What there is. Equal to `asked` where the wish was granted.
    pub obtained: String,
    /// Why there is something else, and what would grant it.
    pub reason: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// In a word.
    pub outcome: Outcome,
    /// In a sentence.
    pub reason: String,
    /// From the first step to the end of the last, in nanoseconds of the run's clock.
    pub duration_ns: u64,
    /// Messages lost that nobody chose to lose. Those that an edge dropped by its `when_full` are not
    /// among them.
    pub lost: u64,
    /// The exit status of the process: 0 good, 1 error, 2 a limit was hit, 3 data was lost.
    pub exit_status: u8,
}

impl Record {
    /// The record as JSON over several lines, the last one ended. A list of numbers is on one line.
    ///
    /// A number that is not finite, which JSON has no word for, becomes `null`; such a record cannot
    /// be read again.
    #[must_use]
    pub fn to_json_pretty(&self) -> String {
        let mut json = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut json, compact::Compact::default());
        self.serialize(&mut serializer).expect("plain data with text for keys");
        json.push(b'\n');
        String::from_utf8(json).expect("JSON is UTF-8")
    }

    /// Reads a record from its JSON.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the text is no JSON, is of another schema or version, or does not fit its own.
    pub fn from_json(json: &str) -> Result<Self, ReadError> {
        // Before the rest is looked at: another version need not have the same fields.
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
        // From the text and not from the value, so that an error tells the line.
        serde_json::from_str(json).map_err(|source| ReadError::Malformed {
            schema: SCHEMA,
            version: VERSION,
            source,
        })
    }

    /// Writes the record to `path` in one piece: into a temporary file in the same folder, flushed to
    /// the disk, then renamed. Whoever looks sees the old file or the new one, and never half of one,
    /// on a full disk neither.
    ///
    /// What is no regular file, such as `/dev/stdout`, is written to directly.
    ///
    /// # Errors
    ///
    /// What the kernel says; the message names the path. The temporary file is gone then and what was
    /// at `path` is still there.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        replace::replace(path.as_ref(), self.to_json_pretty().as_bytes())
    }
}
