//! A pipeline, shared out by what its operators have cost before.

use crate::arguments::PipelineArguments;
use crate::failure::Failure;
use onbeat::{Pipeline, Record, Registry};
use std::path::Path;

/// Reads the pipeline, and plans it again by `--costs` where that is given.
pub fn read(arguments: &PipelineArguments, registry: &Registry) -> Result<Pipeline, Failure> {
    let pipeline = Pipeline::read(&arguments.file, registry, &arguments.overrides())?;
    let Some(path) = &arguments.costs else { return Ok(pipeline) };
    let record = record(path)?;
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

fn record(path: &Path) -> Result<Record, Failure> {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(format!("record `{}`: cannot be read: {error}", path.display()))
    };
    let json = std::fs::read_to_string(path).map_err(|error| cannot(&error))?;
    Record::from_json(&json).map_err(|error| cannot(&error))
}
