//! `onbeat completions SHELL` and `onbeat man`: made from the command-line definition.

use crate::arguments::shell::ManArguments;
use crate::arguments::{Arguments, CompletionsArguments};
use crate::error::CommandError;
use crate::output;
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::roff::{Roff, bold, roman};
use onbeat::trace::replace::replace;
use std::path::{Path, PathBuf};
use std::{fs, io, iter};

pub fn completions(arguments: &CompletionsArguments) -> Result<u8, CommandError> {
    write(&script(arguments.shell))
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "onbeat", &mut script);
    script
}

/// Prints one manual page with all commands, or writes the files of an installation.
pub fn man(arguments: &ManArguments) -> Result<u8, CommandError> {
    let mut command = Arguments::command();
    command.build();
    let Some(prefix) = &arguments.prefix else { return write(&page(&command)?) };
    let mut written = String::new();
    for (place, content) in installation(&command)? {
        let path = prefix.join(place);
        let folder = path.parent().unwrap_or(prefix);
        fs::create_dir_all(folder)
            .map_err(|error| format!("{}: cannot be created: {error}", folder.display()))
            .and_then(|()| replace(&path, &content).map_err(|error| error.to_string()))
            .map_err(|error| CommandError::new(error).help("choose another folder: --prefix ~/.local"))?;
        written += &format!("{}\n", path.display());
    }
    output::to_stdout(&written)?;
    Ok(0)
}

/// Returns the manual pages and the completions, with their places below a prefix such as `/usr/local`.
fn installation(command: &clap::Command) -> Result<Vec<(PathBuf, Vec<u8>)>, CommandError> {
    let mut files = Vec::new();
    for page_of in iter::once(command).chain(parts(command)) {
        let name = page_of.get_display_name().unwrap_or(page_of.get_name());
        files.push((Path::new("share/man/man1").join(format!("{name}.1")), page(page_of)?));
    }
    for (shell, place) in [
        (Shell::Bash, "share/bash-completion/completions/onbeat"),
        (Shell::Zsh, "share/zsh/site-functions/_onbeat"),
        (Shell::Fish, "share/fish/vendor_completions.d/onbeat.fish"),
    ] {
        files.push((place.into(), script(shell)));
    }
    Ok(files)
}

/// Returns the subcommands, without `help`.
fn parts(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help")
}

/// Returns a manual page with a command and everything below it.
fn page(command: &clap::Command) -> Result<Vec<u8>, CommandError> {
    let mut page = Vec::new();
    let made = render(command, &mut page);
    made.map_err(|error| CommandError::new(format!("cannot make the manual page: {error}")))?;
    Ok(page)
}

fn render(command: &clap::Command, page: &mut Vec<u8>) -> io::Result<()> {
    let man = clap_mangen::Man::new(command.clone());
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    if command.has_subcommands() {
        section(page, "COMMANDS", |roff| {
            for command in parts(command) {
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                roff.control("TP", []);
                roff.text([bold(command.get_name())]);
                roff.text([roman(about)]);
            }
        })?;
    } else {
        man.render_description_section(page)?;
    }
    man.render_options_section(page)?;
    help_texts(command, page)?;
    parts(command).try_for_each(|command| of_command(command, "", page))
}

/// Writes the section of a command, or those of its subcommands.
fn of_command(command: &clap::Command, above: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let name = format!("{above}{}", command.get_name().to_uppercase());
    if command.has_subcommands() {
        return parts(command).try_for_each(|command| of_command(command, &format!("{name} "), page));
    }
    let man = clap_mangen::Man::new(command.clone());
    section(page, &format!("COMMAND: {name}"), |_| {})?;
    man.render_description_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_options_section(page)?;
    help_texts(command, page)
}

/// Writes the examples and the exit status, whose first lines are section titles.
fn help_texts(command: &clap::Command, page: &mut Vec<u8>) -> io::Result<()> {
    for text in [command.get_before_help(), command.get_after_help()].into_iter().flatten() {
        let text = text.to_string();
        let (title, lines) = text.split_once('\n').unwrap_or((&text, ""));
        section(page, title, |roff| {
            roff.control("nf", []);
            for line in lines.lines() {
                roff.text([roman(line)]);
            }
            roff.control("fi", []);
        })?;
    }
    Ok(())
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
