//! The onbeat command.
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

use arguments::{Arguments, numbers};
use clap::Parser;
use error::CommandError;
use onbeat_os::allocations::CountingAllocator;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Counts allocations, for the records of runs.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::system();

fn main() -> ExitCode {
    panics::install();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return ended(unparsed(&answer)),
    };
    ended(commands::dispatch(&arguments.command, abort))
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

fn ended(result: Result<u8, CommandError>) -> ExitCode {
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            failure.show();
            ExitCode::from(1)
        }
    }
}

/// Ends the process at a second Ctrl-C, with the shell's status for an interrupted process.
#[expect(clippy::disallowed_methods, reason = "the only place that ends the process early")]
fn abort() -> ! {
    screen::restore();
    std::process::exit(130)
}
