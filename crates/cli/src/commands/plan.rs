//! `onbeat plan FILE`

use super::{measured, show};
use crate::arguments::PlanArguments;
use crate::documents;
use crate::failure::Failure;
use crate::{costs, output};
use onbeat::operators;

pub fn plan(arguments: &PlanArguments, abort: fn() -> !) -> Result<u8, Failure> {
    if arguments.measure {
        return measured::measured(arguments, abort);
    }
    let pipeline = costs::read(&arguments.pipeline, &operators::registry())?;
    if arguments.dot {
        output::to_stdout(&pipeline.plan.dot())?;
        return Ok(0);
    }
    show(&documents::plan(&pipeline.plan), arguments.format)?;
    Ok(0)
}
