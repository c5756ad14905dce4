//! Answers to clients: one JSON object per line.

use super::request::{COMMANDS, VERSION};
use crate::run::RunStatus;
use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use serde::Serialize;

#[derive(Serialize)]
struct Answer<T> {
    version: u64,
    ok: bool,
    #[serde(flatten)]
    more: T,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Wrong<'a> {
    error: &'a str,
}

#[derive(Serialize)]
struct Hello<'a> {
    onbeat: &'static str,
    pid: u32,
    run: &'a str,
    commands: [&'static str; 9],
}

#[derive(Serialize)]
struct Picture<'a> {
    status: &'a RunStatus,
}

#[derive(Serialize)]
struct Data<'a> {
    media_type: &'a str,
    base64: String,
}

/// It was done.
pub(super) fn done() -> Vec<u8> {
    line(true, Nothing {})
}

/// It was not.
pub(super) fn wrong(error: &str) -> Vec<u8> {
    line(false, Wrong { error })
}

/// Greeting of a connection: version, process id, name of the run and commands.
pub(super) fn hello(run: &str) -> Vec<u8> {
    let onbeat = env!("CARGO_PKG_VERSION");
    line(true, Hello { onbeat, pid: std::process::id(), run, commands: COMMANDS })
}

pub(super) fn status(status: &RunStatus) -> Vec<u8> {
    line(true, Picture { status })
}

/// What an operator has handed out.
pub(super) fn data(media_type: &str, bytes: &[u8]) -> Vec<u8> {
    line(true, Data { media_type, base64: STANDARD.encode(bytes) })
}

fn line(ok: bool, more: impl Serialize) -> Vec<u8> {
    let mut line =
        serde_json::to_vec(&Answer { version: VERSION, ok, more }).expect("an answer is plain data");
    line.push(b'\n');
    line
}
