//! `onbeat check FILE`

use super::run::{check_gates, warn};
use crate::arguments::CheckArguments;
use crate::documents::counted;
use crate::error::CommandError;
use crate::output::OutputPaths;
use crate::{costs, output, stdout};
use onbeat::Registry;

/// Reads and plans the pipeline as `run` does, and asks the operators whether they could start: sources open
/// their files.
pub fn check(arguments: &CheckArguments, registry: &Registry) -> Result<u8, CommandError> {
    let pipeline = costs::read(&arguments.pipeline, registry)?;
    stdout::is_taken(&pipeline)?;
    check_gates(&pipeline)?;
    OutputPaths::look(&pipeline.output)?;
    warn(&pipeline, arguments.quiet)?;
    let mut wrong = pipeline.check();
    let last = wrong.pop();
    let failure = |(name, error): (String, onbeat::Error)| {
        CommandError::from(pipeline.written.error(&name, &format!("operator `{name}`: {error}"))).if_of_file()
    };
    // All are shown, the last one by the caller.
    wrong.into_iter().map(failure).for_each(|failure| failure.show());
    last.map(failure).map_or(Ok(()), Err)?;
    if !arguments.quiet {
        let plan = &pipeline.plan;
        let operators = counted(plan.operators.len() as u64, "operator");
        let edges = counted(plan.edges.len() as u64, "edge");
        let file = arguments.pipeline.file.display();
        output::to_stdout(&format!("{file}: ok: {operators}, {edges}\n"))?;
    }
    Ok(0)
}
