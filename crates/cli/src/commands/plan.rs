//! `onbeat plan FILE`

use super::{measured, show};
use crate::arguments::PlanArguments;
use crate::documents;
use crate::error::CommandError;
use crate::{costs, output};
use onbeat::Registry;
use onbeat::response::Responses;

pub fn plan(arguments: &PlanArguments, registry: &Registry, abort: fn() -> !) -> Result<u8, CommandError> {
    if arguments.measure {
        return measured::measured(arguments, registry, abort);
    }
    let pipeline = costs::read(&arguments.pipeline, registry)?;
    if arguments.dot {
        output::to_stdout(&pipeline.plan.dot())?;
        return Ok(0);
    }
    let responses = costs::responses(&arguments.pipeline, arguments.noise.as_deref(), &pipeline.plan)?;
    show(&documents::plan(&pipeline.plan, responses.as_ref()), arguments.format)?;
    let refused: Vec<String> = responses.iter().flat_map(Responses::refusals).collect();
    if pipeline.options.strict && !refused.is_empty() {
        return Err(CommandError::new(format!("strict: {}", refused.join("; "))));
    }
    Ok(0)
}
