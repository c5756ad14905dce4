//! `onbeat operators [NAME]`

use super::show;
use crate::arguments::OperatorsArguments;
use crate::documents;
use crate::failure::Failure;
use onbeat::operators::registry;

pub fn operators(arguments: &OperatorsArguments) -> Result<u8, Failure> {
    let registry = registry();
    let document = match &arguments.name {
        None => documents::kinds(&registry),
        Some(name) => match registry.get(name) {
            Some(kind) => documents::kind(kind),
            None => {
                let message = format!("there is no operator kind `{name}`{}", registry.nearest(name));
                return Err(Failure::new(message).help("`onbeat operators` lists them"));
            }
        },
    };
    show(&document, arguments.format)?;
    Ok(0)
}
