//! `onbeat plan FILE`

use super::show;
use crate::arguments::PlanArguments;
use crate::documents;
use crate::failure::Failure;
use onbeat::{Pipeline, operators};

pub fn plan(arguments: &PlanArguments) -> Result<u8, Failure> {
    let overrides = arguments.pipeline.overrides();
    let pipeline = Pipeline::read(&arguments.pipeline.file, &operators::registry(), &overrides)?;
    show(&documents::plan(&pipeline.plan), arguments.format)?;
    Ok(0)
}
