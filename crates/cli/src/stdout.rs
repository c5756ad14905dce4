//! Checks which operator writes data to stdout.

use crate::error::CommandError;
use crate::output::RecordTo;
use onbeat::{Pipeline, operators};

/// Whether an operator of the pipeline writes its data to stdout. Other output then goes to stderr.
pub fn is_taken(pipeline: &Pipeline) -> Result<bool, CommandError> {
    let writes = |operator: &&serde_json::Value| {
        operators::writes_stdout(operator["kind"].as_str().unwrap_or(""), operator)
    };
    let names: Vec<&str> =
        pipeline.operators().iter().filter(writes).filter_map(|operator| operator["name"].as_str()).collect();
    match names[..] {
        [] => Ok(false),
        [_] => Ok(true),
        [first, second, ..] => Err(CommandError::new(format!(
            "operators `{first}` and `{second}` both write to stdout: only one can"
        ))
        .help("set `path` of the others to a file")),
    }
}

/// Refuses a record on stdout if an operator writes its data there.
pub fn check_record(is_taken: bool, record: &RecordTo) -> Result<(), CommandError> {
    if is_taken && matches!(record, RecordTo::Stdout) {
        let message = "--record -: an operator of this pipeline writes its data to stdout";
        return Err(CommandError::new(message).help("write the record to a file: --record PATH"));
    }
    Ok(())
}
