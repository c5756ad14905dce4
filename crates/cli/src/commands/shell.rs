//! `onbeat completions SHELL` and `onbeat man`: made from the command-line definition.

use crate::arguments::{Arguments, CompletionsArguments, EXAMPLES, EXIT_STATUS};
use crate::error::CommandError;
use crate::output;
use clap::CommandFactory;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;

pub fn completions(arguments: &CompletionsArguments) -> Result<u8, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "onbeat", &mut script);
    write(&script)
}

/// Prints one manual page with all commands.
pub fn man() -> Result<u8, CommandError> {
    let mut page = Vec::new();
    let mut command = Arguments::command();
    command.build();
    let made = pages(&command, &mut page);
    made.map_err(|error| CommandError::new(format!("cannot make the manual page: {error}")))?;
    write(&page)
}

fn pages(command: &clap::Command, page: &mut Vec<u8>) -> io::Result<()> {
    let commands: Vec<&clap::Command> =
        command.get_subcommands().filter(|command| command.get_name() != "help").collect();
    let whole = clap_mangen::Man::new(command.clone());
    whole.render_title(page)?;
    whole.render_name_section(page)?;
    whole.render_synopsis_section(page)?;
    section(page, "COMMANDS", |roff| {
        for command in &commands {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            roff.control("TP", []);
            roff.text([bold(command.get_name())]);
            roff.text([roman(about)]);
        }
    })?;
    whole.render_options_section(page)?;
    for command in &commands {
        of_command(command, "", page)?;
    }
    for (title, text) in [("EXAMPLES", EXAMPLES), ("EXIT STATUS", EXIT_STATUS)] {
        section(page, title, |roff| {
            roff.control("nf", []);
            // The first line is the section title.
            for line in text.lines().skip(1) {
                roff.text([roman(line)]);
            }
            roff.control("fi", []);
        })?;
    }
    Ok(())
}

/// Writes the section of a command, or those of its subcommands.
fn of_command(command: &clap::Command, above: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let name = format!("{above}{}", command.get_name().to_uppercase());
    if command.has_subcommands() {
        let mut below = command.get_subcommands().filter(|command| command.get_name() != "help");
        return below.try_for_each(|command| of_command(command, &format!("{name} "), page));
    }
    let man = clap_mangen::Man::new(command.clone());
    section(page, &format!("COMMAND: {name}"), |_| {})?;
    man.render_description_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_options_section(page)
}

fn section(page: &mut Vec<u8>, title: &str, fill: impl FnOnce(&mut Roff)) -> io::Result<()> {
    let mut roff = Roff::default();
    roff.control("SH", [title]);
    fill(&mut roff);
    roff.to_writer(page)
}

fn write(bytes: &[u8]) -> Result<u8, CommandError> {
    output::to_stdout(&String::from_utf8_lossy(bytes))?;
    Ok(0)
}
