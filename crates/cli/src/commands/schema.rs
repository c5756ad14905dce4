//! `onbeat schema`

use crate::documents;
use crate::failure::Failure;
use crate::output;
use onbeat::operators::registry;

pub fn schema() -> Result<u8, Failure> {
    output::to_stdout(&format!("{:#}\n", documents::schema(&registry())))?;
    Ok(0)
}
