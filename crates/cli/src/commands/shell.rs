//! `onbeat completions SHELL` and `onbeat man`: made of what may be typed.

use crate::arguments::{Arguments, CompletionsArguments};
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory;
use std::io;

pub fn completions(arguments: &CompletionsArguments) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "onbeat", &mut script);
    write(&script)
}

/// One page for all commands, one after the other.
pub fn man() -> Result<u8, Failure> {
    let mut page = Vec::new();
    let mut command = Arguments::command();
    command.build();
    let made = pages(&command, &mut page);
    made.map_err(|error| Failure::new(format!("the man page cannot be made: {error}")))?;
    write(&page)
}

fn pages(command: &clap::Command, page: &mut Vec<u8>) -> io::Result<()> {
    let whole = clap_mangen::Man::new(command.clone());
    whole.render(page)?;
    for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
        let man = clap_mangen::Man::new(command.clone());
        page.extend_from_slice(
            format!(".SH \"COMMAND: {}\"\n", command.get_name().to_uppercase()).as_bytes(),
        );
        man.render_description_section(page)?;
        man.render_synopsis_section(page)?;
        man.render_options_section(page)?;
    }
    Ok(())
}

fn write(bytes: &[u8]) -> Result<u8, Failure> {
    output::to_stdout(&String::from_utf8_lossy(bytes))?;
    Ok(0)
}
