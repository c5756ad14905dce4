//! `onbeat operators [NAME]`

use super::show;
use crate::arguments::OperatorsArguments;
use crate::documents;
use crate::error::CommandError;
use crate::{output, views};
use onbeat::Registry;

/// Where all kinds are.
const ALL: &str = "`onbeat operators` lists all kinds, with `--find WORD` those about it";

pub fn operators(arguments: &OperatorsArguments, registry: &Registry) -> Result<u8, CommandError> {
    let kind = arguments.name.as_ref().map(|name| {
        registry.get(name).ok_or_else(|| {
            let message = format!("there is no operator kind `{name}`{}", registry.nearest(name));
            CommandError::new(message).help(ALL)
        })
    });
    let kind = kind.transpose()?;
    let is_found = |kind: &onbeat::Kind| documents::has_words(kind, &arguments.find);
    if !registry.kinds().any(is_found) {
        let message = format!("no operator kind has the words {}", arguments.find.join(" "));
        return Err(CommandError::new(message).help("`onbeat operators` lists all kinds"));
    }
    match (arguments.format.tables(), kind) {
        (Some(format), None) => show(&documents::kinds(registry, &arguments.find), format)?,
        (Some(format), Some(kind)) => show(&documents::kind(kind, views::text_width()), format)?,
        (None, None) => output::to_stdout(&documents::page(registry))?,
        (None, Some(kind)) => output::to_stdout(&documents::page_of(registry, kind))?,
    }
    Ok(0)
}
