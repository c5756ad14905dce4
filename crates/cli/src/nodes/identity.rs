//! `onbeat identity NAME...`

use crate::arguments::nodes::IdentityArguments;
use crate::error::CommandError;
use crate::output;
use onbeat::link::Authority;
use onbeat::link::deployment::is_node_name;

pub fn identity(arguments: &IdentityArguments) -> Result<u8, CommandError> {
    let cannot = |error: onbeat::Error| CommandError::new(error.to_string());
    for name in &arguments.names {
        if !is_node_name(name) || name == "authority" {
            let text = format!("{name:?} cannot name a node: use 1 to 50 letters, digits, `-` and `_`");
            return Err(CommandError::new(text).help("`authority` is taken, too"));
        }
        let folder = arguments.folder.join(name);
        if folder.exists() {
            let text = format!("identity `{}`: it exists already", folder.display());
            return Err(CommandError::new(text).help("to renew it, move the old folder away first"));
        }
    }
    let authority = Authority::open(&arguments.folder.join("authority")).map_err(cannot)?;
    for name in &arguments.names {
        let folder = arguments.folder.join(name);
        authority.sign(name, arguments.days, &folder).map_err(cannot)?;
        output::to_stdout(&format!("{}\n", folder.display()))?;
    }
    Ok(0)
}
