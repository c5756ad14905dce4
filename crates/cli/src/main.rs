//! The onbeat command.
//!
//! | folder or file | what |
//! |---|---|
//! | `arguments` | what may be typed |
//! | `commands` | one file per command |
//! | `control` | the other end of a run's control socket |
//! | `documents` | what a command has to say: tables and lines, no layout |
//! | `views` | a document for people, as CSV, as JSON |
//! | `costs`, `maker` | a pipeline that is shared out by a record; one that is run again and again |
//! | `failure` | errors, with the line of the file |
//! | `screen` | a whole terminal that is drawn again and again, and its keys |
//! | `metrics`, `top`, `tracing` | a run as it goes on: by HTTP, on the terminal, in a file |
//! | `systemd` | what a service manager wants to know |
//! | `stdout` | who writes there |
//! | `progress`, `interrupt`, `panics`, `threads` | around a run |
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod control;
mod costs;
mod documents;
mod failure;
mod interrupt;
mod maker;
mod metrics;
mod output;
mod panics;
mod progress;
mod screen;
mod stdout;
mod systemd;
mod threads;
mod top;
mod tracing;
mod views;

use arguments::{Arguments, numbers};
use clap::Parser;
use failure::Failure;
use onbeat_os::allocations::CountingAllocator;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// So that records say what workers have allocated.
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

/// Help and version, which are no errors, and what was typed wrong.
fn unparsed(answer: &clap::Error) -> Result<u8, Failure> {
    let text = |is_terminal| {
        let styled = answer.render();
        let text =
            if output::may_colour(is_terminal) { styled.ansi().to_string() } else { styled.to_string() };
        numbers::in_words(answer, &text)
    };
    if answer.use_stderr() {
        output::to_stderr(&text(io::stderr().is_terminal()));
        return Ok(1);
    }
    output::to_stdout(&text(io::stdout().is_terminal()))?;
    Ok(0)
}

fn ended(result: Result<u8, Failure>) -> ExitCode {
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            failure.show();
            ExitCode::from(1)
        }
    }
}

/// For a second Ctrl-C: at once, with what the shell would say of a process that Ctrl-C ended.
#[expect(clippy::disallowed_methods, reason = "this is the one place that ends the process early")]
fn abort() -> ! {
    screen::give_back();
    std::process::exit(130)
}
