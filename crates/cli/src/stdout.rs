//! Who writes data to stdout.

use crate::failure::Failure;
use crate::output::RecordTo;
use onbeat::{Pipeline, operators};

/// Whether an operator of the pipeline writes its data to stdout: what else is said then goes to stderr.
pub fn is_taken(pipeline: &Pipeline) -> Result<bool, Failure> {
    let writes = |operator: &&serde_json::Value| {
        operators::writes_stdout(operator["kind"].as_str().unwrap_or(""), operator)
    };
    let names: Vec<&str> =
        pipeline.operators().iter().filter(writes).filter_map(|operator| operator["name"].as_str()).collect();
    match names[..] {
        [] => Ok(false),
        [_] => Ok(true),
        [first, second, ..] => Err(Failure::new(format!(
            "the operators `{first}` and `{second}` both write to stdout: one of them can"
        ))
        .help("give the others a file: `path`")),
    }
}

/// The record cannot go where the data go.
pub fn check_record(is_taken: bool, record: &RecordTo) -> Result<(), Failure> {
    if is_taken && matches!(record, RecordTo::Stdout) {
        let message = "--record -: an operator of this pipeline writes its data to stdout";
        return Err(Failure::new(message).help("give the record a file: --record PATH"));
    }
    Ok(())
}
