//! Runs a job as an ordinary pipeline, and as bare kernels.

use super::kind::{BareJob, JobInput, JobKind, RESULT};
use crate::BenchError;
use crate::pinned;
use onbeat_operators::registry;
use onbeat_runtime::{Graph, Options, Overrides, Pace, Pipeline, Scheduler};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The pipeline of a job, with the results in the folder `output`.
fn make(
    kind: &JobKind,
    input: &JobInput,
    output: &Path,
    scheduler: Scheduler,
    on: &[usize],
) -> Result<(Graph, Options), String> {
    let mut overrides = Overrides::default();
    overrides.text("output", "output", output.display().to_string());
    let pipeline = Pipeline::parse(kind.pipeline, "job.toml", &input.folder, &registry(), &overrides)
        .map_err(|error| error.to_string())?;
    let options = Options { scheduler, cores: on.to_vec(), pace: Some(Pace::Fast), ..pipeline.options };
    Ok((pipeline.graph, options))
}

/// Checks whether the pipeline can run under this scheduler.
pub(super) fn plan(
    kind: &JobKind,
    input: &JobInput,
    scheduler: Scheduler,
    on: &[usize],
) -> Result<(), String> {
    let (graph, options) = make(kind, input, &input.folder, scheduler, on)?;
    graph.plan(&options).map_err(|error| error.to_string())?;
    Ok(())
}

/// Runs the pipeline. Returns the result's path and the seconds from its start to its end.
pub(super) fn run(
    kind: &JobKind,
    input: &JobInput,
    output: &Path,
    scheduler: Scheduler,
    on: &[usize],
) -> Result<(PathBuf, f64), String> {
    fs::create_dir_all(output).map_err(super::folder::at(output))?;
    let result = output.join(RESULT);
    remove(&result)?;
    let (graph, options) = make(kind, input, output, scheduler, on)?;
    let begin = Instant::now();
    graph.run(&options).map_err(|error| error.to_string())?;
    Ok((result, begin.elapsed().as_secs_f64()))
}

/// Runs the bare kernels on one core. Returns the result's path and the seconds.
pub(super) fn bare(
    of: BareJob,
    input: &JobInput,
    on: usize,
) -> Result<Result<(PathBuf, f64), String>, BenchError> {
    let (input, result) = (input.clone(), input.folder.join("bare"));
    if let Err(reason) = remove(&result) {
        return Ok(Err(reason));
    }
    let thread = pinned::spawn(Some(on), move || {
        let begin = Instant::now();
        of(&input, &result)?;
        Ok((result, begin.elapsed().as_secs_f64()))
    })?;
    Ok(pinned::join(thread))
}

/// Removes the result of the round before, so that it cannot be taken for a new one.
pub(super) fn remove(result: &Path) -> Result<(), String> {
    match fs::remove_file(result) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", result.display()))
        }
        _ => Ok(()),
    }
}
