//! The command `onbeat` as a library, for programs that have operators of their own.
//!
//! [`main`] is the whole command with the kinds of a registry. This is a complete program:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     let mut registry = onbeat::operators::registry();
//!     // registry.add(onbeat::Kind::new("mine", "what it does", "", ...));
//!     onbeat_cli::main(&registry)
//! }
//! ```
//!
//! | folder or file | contents |
//! |---|---|
//! | `arguments` | command-line arguments |
//! | `commands` | one file per command |
//! | `control` | client of a run's control socket |
//! | `documents` | results of a command as tables and lines, without layout |
//! | `views` | layouts of a document: text, CSV, JSON |
//! | `costs`, `maker` | reading a pipeline with the costs of a record; making it repeatedly for benchmarks |
//! | `error` | errors, with the line of the file |
//! | `screen` | full-screen view on the terminal, and its keys |
//! | `metrics`, `top`, `tracing` | monitoring of a run: by HTTP, on the terminal, in a trace file |
//! | `nodes` | one pipeline on several machines: `deploy`, `node` |
//! | `systemd` | notifications to systemd |
//! | `output`, `stdout`, `stderr` | output folder and record; who writes to stdout; messages |
//! | `progress`, `interrupt`, `panics`, `threads` | progress line, Ctrl-C, panics and helper threads of a run |
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod control;
mod costs;
mod documents;
mod error;
mod interrupt;
mod maker;
mod metrics;
mod nodes;
mod output;
mod panics;
mod progress;
mod screen;
mod stderr;
mod stdout;
mod systemd;
mod threads;
mod top;
mod tracing;
mod views;

use arguments::{Arguments, negations, numbers};
use clap::{CommandFactory, Parser};
use error::CommandError;
use onbeat::Registry;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Runs the command with the arguments of the process, and returns its exit status.
///
/// It sets the process's panic hook, and while it runs a pipeline, its handlers of SIGINT and SIGTERM.
pub fn main(registry: &Registry) -> ExitCode {
    ExitCode::from(run(std::env::args_os(), registry))
}

/// Does the same as [`main`] with other arguments, of which the first is the name of the program. Returns
/// the exit status.
pub fn run(arguments: impl IntoIterator<Item: Into<OsString> + Clone>, registry: &Registry) -> u8 {
    panics::install();
    let words = negations::applied(arguments.into_iter().map(Into::into).collect(), &Arguments::command());
    let result = match Arguments::try_parse_from(words) {
        Ok(mut arguments) => {
            arguments.command.settle();
            commands::dispatch(&arguments.command, registry, abort)
        }
        Err(answer) => unparsed(&answer),
    };
    result.unwrap_or_else(|failure| {
        failure.show();
        1
    })
}

/// Prints help or version, which are not errors, or the error in the command line.
fn unparsed(answer: &clap::Error) -> Result<u8, CommandError> {
    let text = |is_terminal| {
        let styled = answer.render();
        let text =
            if stderr::may_colour(is_terminal) { styled.ansi().to_string() } else { styled.to_string() };
        numbers::in_words(answer, &text)
    };
    if answer.use_stderr() {
        stderr::to_stderr(&text(io::stderr().is_terminal()));
        return Ok(1);
    }
    output::to_stdout(&text(io::stdout().is_terminal()))?;
    Ok(0)
}

/// Ends the process at a second Ctrl-C, with the shell's status for an interrupted process.
#[expect(clippy::disallowed_methods, reason = "the only place that ends the process early")]
fn abort() -> ! {
    screen::restore();
    std::process::exit(130)
}
