//! `onbeat schema`

use crate::arguments::{SchemaArguments, SchemaFormat};
use crate::documents;
use crate::error::CommandError;
use crate::output;
use onbeat::Registry;

pub fn schema(arguments: &SchemaArguments, registry: &Registry) -> Result<u8, CommandError> {
    output::to_stdout(&match arguments.format {
        SchemaFormat::Json => format!("{:#}\n", documents::schema(registry)),
        SchemaFormat::Markdown => documents::keys(registry),
    })?;
    Ok(0)
}
