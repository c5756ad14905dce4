//! One file per command.

mod bench;
mod check;
mod ctl;
mod cyclictest;
mod doctor;
mod host;
mod measured;
mod new;
mod noise;
mod operators;
mod plan;
mod report;
pub mod run;
mod schema;
mod shell;
mod timerlat;
mod tune;

use crate::arguments::{Command, OutputFormat};
use crate::documents::Document;
use crate::error::CommandError;
use crate::{nodes, output, stderr, views};
use onbeat::Registry;
use std::io::{self, IsTerminal};

/// Runs a command and returns the exit status.
pub fn dispatch(command: &Command, registry: &Registry, abort: fn() -> !) -> Result<u8, CommandError> {
    match command {
        Command::Run(arguments) => run::run(arguments, registry, abort),
        Command::Plan(arguments) => plan::plan(arguments, registry, abort),
        Command::Operators(arguments) => operators::operators(arguments, registry),
        Command::Check(arguments) => check::check(arguments, registry),
        Command::Bench(command) => bench::bench(command, registry, abort),
        Command::Noise(command) => noise::noise(command, abort),
        Command::Timerlat(command) => timerlat::timerlat(command, abort),
        Command::Cyclictest(arguments) => cyclictest::cyclictest(arguments, abort),
        Command::Doctor(arguments) => doctor::doctor(arguments, registry, abort),
        Command::Tune(arguments) => tune::tune(arguments, registry),
        Command::Report(arguments) => report::report(arguments),
        Command::Ctl(arguments) => ctl::ctl(arguments),
        Command::Node(arguments) => nodes::node(arguments, registry, abort),
        Command::Deploy(arguments) => nodes::deploy(arguments, registry, abort),
        Command::Identity(arguments) => nodes::identity(arguments),
        Command::New(arguments) => new::new(arguments),
        Command::Schema(arguments) => schema::schema(arguments, registry),
        Command::Completions(arguments) => shell::completions(arguments),
        Command::Man(arguments) => shell::man(arguments),
    }
}

/// Prints a document on stdout.
fn show(document: &Document, format: OutputFormat) -> Result<(), CommandError> {
    let colour = stderr::may_colour(io::stdout().is_terminal());
    output::to_stdout(&views::view(format, colour).text(document))
}
