//! A pipeline, shared out by what its operators have cost before, and how late they make its messages.

use crate::arguments::PipelineArguments;
use crate::failure::Failure;
use onbeat::response::{self, Host, Responses};
use onbeat::{Pipeline, Plan, Record, Registry};
use onbeat_noise::NoiseRecord;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads the pipeline, and plans it again by `--costs` where that is given.
pub fn read(arguments: &PipelineArguments, registry: &Registry) -> Result<Pipeline, Failure> {
    let pipeline = Pipeline::read(&arguments.file, registry, &arguments.overrides())?;
    let Some(path) = &arguments.costs else { return Ok(pipeline) };
    let record = read_record(path)?;
    let busy = |name: &str| record.operators.iter().find(|operator| operator.name == name);
    let missing: Vec<&str> = pipeline.graph.operators().filter(|name| busy(name).is_none()).collect();
    if let Some(first) = missing.first() {
        return Err(Failure::new(format!(
            "record `{}`: it has no operator `{first}`: it is of another pipeline (`{}`)",
            path.display(),
            record.name
        ))
        .help("give the record of a run of this pipeline"));
    }
    let costs = record.operators.iter().map(|operator| (operator.name.clone(), operator.busy_ns as f64));
    pipeline.with_costs(costs.collect()).map_err(|error| Failure::new(error.to_string()))
}

/// Who has the time that they need, and how late messages may be, by the record of `--costs`; `noise` is what the machine takes.
/// `None` without a record.
///
/// # Errors
/// When a file cannot be read or is of another kind.
pub fn responses(
    arguments: &PipelineArguments,
    noise: Option<&Path>,
    plan: &Plan,
) -> Result<Option<Responses>, Failure> {
    let Some(path) = &arguments.costs else { return Ok(None) };
    let host = noise.map(host).transpose()?.unwrap_or_default();
    Ok(Some(response::responses(plan, &read_record(path)?, &host)))
}

/// The worst of all CPUs that were measured.
fn host(path: &Path) -> Result<Host, Failure> {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(format!("--noise {}: cannot be read: {error}", path.display()))
            .help("give what `onbeat noise hist --record FILE` or `--format json` wrote")
    };
    let json = std::fs::read_to_string(path).map_err(|error| cannot(&error))?;
    let record = NoiseRecord::from_json(&json).map_err(|error| cannot(&error))?;
    let share = record.cpus.iter().map(|cpu| cpu.noise_ns as f64 / cpu.runtime_ns.max(1) as f64);
    Ok(Host {
        longest_ns: record.cpus.iter().map(|cpu| cpu.max_single_ns).max().unwrap_or(0),
        share: share.fold(0.0, f64::max),
    })
}

/// Reads a record.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn read_record(path: &Path) -> Result<Record, Failure> {
    /// More than the record of any run has; a device may have no end.
    const MOST_BYTES: u64 = 1 << 30;
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(format!("record `{}`: cannot be read: {error}", path.display()))
    };
    let mut json = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut json));
    read.map_err(|error| {
        cannot(&error)
            .help("give the file that `onbeat run` has written: NAME.record.json, or that of --record")
    })?;
    if json.len() as u64 > MOST_BYTES {
        return Err(cannot(&format!("it has more than {} MiB, and no record has", MOST_BYTES >> 20)));
    }
    // This has its own words for what to give instead.
    Record::from_json(&json).map_err(|error| cannot(&error))
}
