//! Pipelines planned with the measured costs of a record, and the response times that follow from them.

use crate::arguments::PipelineArguments;
use crate::error::CommandError;
use onbeat::response::{self, Host, Responses};
use onbeat::{Pipeline, Plan, Record, Registry};
use onbeat_noise::NoiseRecord;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads a pipeline. With `--costs`, plans it again with the costs of that record.
pub fn read(arguments: &PipelineArguments, registry: &Registry) -> Result<Pipeline, CommandError> {
    let pipeline = Pipeline::read(&arguments.file, registry, &arguments.overrides())?;
    let Some(path) = &arguments.costs else { return Ok(pipeline) };
    let record = read_record(path)?;
    let busy = |name: &str| record.operators.iter().find(|operator| operator.name == name);
    let missing: Vec<&str> = pipeline.graph.operators().filter(|name| busy(name).is_none()).collect();
    if let Some(first) = missing.first() {
        return Err(CommandError::new(format!(
            "record `{}`: no operator `{first}`: it is the record of another pipeline (`{}`)",
            path.display(),
            record.name
        ))
        .help("use the record of a run of this pipeline"));
    }
    let costs = record.operators.iter().map(|operator| (operator.name.clone(), operator.busy_ns as f64));
    pipeline.with_costs(costs.collect()).map_err(|error| CommandError::new(error.to_string()))
}

/// Returns response times and utilisation by the record of `--costs`, with the noise of the machine.
/// `None` without `--costs`.
///
/// # Errors
/// If a file cannot be read or is not a record.
pub fn responses(
    arguments: &PipelineArguments,
    noise: Option<&Path>,
    plan: &Plan,
) -> Result<Option<Responses>, CommandError> {
    let Some(path) = &arguments.costs else { return Ok(None) };
    let host = noise.map(host).transpose()?.unwrap_or_default();
    Ok(Some(response::responses(plan, &read_record(path)?, &host)))
}

/// Reads a noise record: the longest gap and the largest share of noise over all CPUs.
fn host(path: &Path) -> Result<Host, CommandError> {
    let cannot = |error: &dyn std::fmt::Display| {
        CommandError::new(format!("--noise {}: cannot be read: {error}", path.display()))
            .help("use a file written by `onbeat noise hist --record FILE` or `--format json`")
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
/// If it cannot be read, or is not a record.
pub fn read_record(path: &Path) -> Result<Record, CommandError> {
    /// Larger than any record. Reading stops there, since a device can be endless.
    const MOST_BYTES: u64 = 1 << 30;
    let cannot = |error: &dyn std::fmt::Display| {
        CommandError::new(format!("record `{}`: cannot be read: {error}", path.display()))
    };
    let mut json = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut json));
    read.map_err(|error| {
        cannot(&error)
            .help("use a file written by `onbeat run`: NAME.record.json, or the file named with --record")
    })?;
    if json.len() as u64 > MOST_BYTES {
        return Err(cannot(&format!("it is larger than {} MiB, the limit for a record", MOST_BYTES >> 20)));
    }
    // The message of this error contains the fix.
    Record::from_json(&json).map_err(|error| cannot(&error))
}
