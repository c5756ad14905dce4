//! `onbeat schema`

use crate::documents;
use crate::error::CommandError;
use crate::output;
use onbeat::Registry;

pub fn schema(registry: &Registry) -> Result<u8, CommandError> {
    output::to_stdout(&format!("{:#}\n", documents::schema(registry)))?;
    Ok(0)
}
