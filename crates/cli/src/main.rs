//! The onbeat command.
//!
//! | folder or file | what |
//! |---|---|
//! | `arguments` | what may be typed |
//! | `commands` | one file per command |
//! | `documents` | what a command has to say: tables and lines, no layout |
//! | `views` | a document for people, as CSV, as JSON |
//! | `failure` | errors, with the line of the file |
//! | `stdout` | who writes there |
//! | `progress`, `interrupt`, `panics`, `threads` | around a run |
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod costs;
mod documents;
mod failure;
mod interrupt;
mod output;
mod panics;
mod progress;
mod stdout;
mod threads;
mod views;

use arguments::Arguments;
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    panics::install();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come here too, and are no errors. If nobody reads them there is nobody to tell.
            let _closed = error.print();
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    match commands::dispatch(&arguments.command, abort) {
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
    std::process::exit(130)
}
