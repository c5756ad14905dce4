//! Other programs as operators: samples through their stdin and stdout.
//!
//! | module | contents |
//! |---|---|
//! | `command` | the command: its checks and its start |
//! | `program` | the running program: its pipes, its patience, its end |
//! | `last_lines` | the end of what it writes to stderr |
//! | `positions` | stamps of the output, by the number of a sample |
//! | `between`, `ends` | the operators |
//!
//! A step never blocks. The pipes are in non-blocking mode on this side, and one epoll set of the program's
//! pipes and of its end is the descriptor that the operator waits for.

mod between;
mod command;
mod ends;
mod last_lines;
mod positions;
mod program;

pub use between::Exec;
pub use command::ExecCommand;
pub use ends::{ExecSink, ExecSource};

use super::patience::usual;
use crate::format::{FileSample, SampleFormat};
use num_complex::Complex;
use onbeat_runtime::{Error, Folders, Hertz, Kind, Registry, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program in the middle of a chain.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecParameters {
    /// The program and its arguments. There is no shell: for one, write `["sh", "-c", "..."]`. The program
    /// runs in the folder of the pipeline file.
    command: Vec<String>,
    /// Format of the samples on its stdin; without it, 32-bit floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// Format of the samples on its stdout; without it, the same as `format`.
    #[serde(default)]
    out_format: Option<SampleFormat>,
    /// Sample rate of its output; without it, that of the input.
    #[serde(default)]
    sample_rate: Option<Hertz>,
    /// How long the program may neither take nor send samples while it has some to take, or after its input
    /// has ended; and how long it may go on after a stop of the run.
    #[serde(default = "usual")]
    patience: Seconds,
}

/// A program that sends samples.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecSourceParameters {
    /// The program and its arguments. There is no shell: for one, write `["sh", "-c", "..."]`. The program
    /// runs in the folder of the pipeline file.
    command: Vec<String>,
    /// Format of the samples on its stdout; without it, 32-bit floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// Samples per second; without it there is no source time.
    #[serde(default)]
    sample_rate: Option<Hertz>,
    /// How long the program may go on after it has closed its stdout, or after a stop of the run.
    #[serde(default = "usual")]
    patience: Seconds,
}

/// A program that takes samples.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecSinkParameters {
    /// The program and its arguments. There is no shell: for one, write `["sh", "-c", "..."]`. The program
    /// runs in the output folder.
    command: Vec<String>,
    /// Format of the samples on its stdin; without it, 32-bit floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// How long the program may take no samples while it has some to take, or may go on after its input has
    /// ended.
    #[serde(default = "usual")]
    patience: Seconds,
}

fn between<T: FileSample>(p: &ExecParameters, folders: &Folders) -> Result<Exec<T>, Error> {
    let command = ExecCommand::new(p.command.clone())?.folder(&folders.input);
    let exec = Exec::new(command, p.format, p.out_format.or(p.format))?;
    Ok(exec.sample_rate(super::pipe::rate(p.sample_rate)?).patience(patience(p.patience)?))
}

fn source<T: FileSample>(p: &ExecSourceParameters, folders: &Folders) -> Result<ExecSource<T>, Error> {
    let command = ExecCommand::new(p.command.clone())?.folder(&folders.input);
    let source = ExecSource::new(command, p.format, super::pipe::rate(p.sample_rate)?)?;
    Ok(source.patience(patience(p.patience)?))
}

fn sink<T: FileSample>(p: &ExecSinkParameters, folders: &Folders) -> Result<ExecSink<T>, Error> {
    let command = ExecCommand::new(p.command.clone())?.folder(&folders.output);
    Ok(ExecSink::new(command, p.format)?.patience(patience(p.patience)?))
}

fn patience(time: Seconds) -> Result<u64, Error> {
    super::address::time_ns("patience", time)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let about = include_str!("../../about/exec.md");
    let (text, example) = ("sends samples through another program", "command = [\"cat\"]");
    registry.add(Kind::new("exec", text, example, between::<f32>).about(about));
    registry.add(Kind::new("exec.complex", text, example, between::<Complex<f32>>).about(about));
    let text = "receives samples from another program";
    let example = "command = [\"head\", \"-c\", \"4000\", \"/dev/zero\"]";
    registry.add(Kind::new("exec.source", text, example, source::<f32>).about(about));
    registry.add(Kind::new("exec.source.complex", text, example, source::<Complex<f32>>).about(about));
    let (text, example) =
        ("sends samples to another program", "command = [\"sh\", \"-c\", \"cat > /dev/null\"]");
    registry.add(Kind::new("exec.sink", text, example, sink::<f32>).about(about));
    registry.add(Kind::new("exec.sink.complex", text, example, sink::<Complex<f32>>).about(about));
}
