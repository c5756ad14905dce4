//! What is done when a limit is hit, and at the end.

use super::trace;
use crate::arguments::actions::Action;
use crate::arguments::noise::SessionArguments;
use crate::failure::Failure;
use onbeat::trace::KernelEvent;
use onbeat_noise::NoiseRecord;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Does those of `--on-threshold`, if a limit was hit, and those of `--on-end`. All are tried; the first that fails is told.
pub fn act(
    session: &SessionArguments,
    usual: &str,
    is_hit: bool,
    events: &[KernelEvent],
    record: Option<&NoiseRecord>,
) -> Result<(), Failure> {
    let hit = if is_hit { at_limit(session, usual, events, record) } else { Ok(()) };
    hit.and(all(&session.on_end, session, usual, events, record))
}

/// Does those of `--on-threshold`.
pub fn at_limit(
    session: &SessionArguments,
    usual: &str,
    events: &[KernelEvent],
    record: Option<&NoiseRecord>,
) -> Result<(), Failure> {
    all(&session.on_threshold, session, usual, events, record)
}

fn all(
    actions: &[Action],
    session: &SessionArguments,
    usual: &str,
    events: &[KernelEvent],
    record: Option<&NoiseRecord>,
) -> Result<(), Failure> {
    let mut failed = None;
    for action in actions {
        let done = match action {
            Action::Trace(file) => {
                let file = file.clone().unwrap_or_else(|| PathBuf::from(format!("{usual}_trace.txt")));
                trace::write_lines(session, "trace", &file, events, record)
            }
            other => elsewhere(other),
        };
        failed = failed.or(done.err());
    }
    failed.map_or(Ok(()), Err)
}

/// An action that is about other programs: a signal, a command. Of others it does nothing.
pub fn elsewhere(action: &Action) -> Result<(), Failure> {
    match action {
        Action::Signal { number, pid } => {
            let pid = pid.unwrap_or_else(std::os::unix::process::parent_id);
            ran(
                Command::new("kill").args([format!("-{number}"), pid.to_string()]),
                &format!("signal {number} to {pid}"),
            )
        }
        // What it has to say is talk: our data go to stdout.
        Action::Shell(command) => {
            ran(Command::new("sh").args(["-c", &format!("{{ {command}\n}} >&2")]), &format!("`{command}`"))
        }
        Action::Trace(_) | Action::Continue => Ok(()),
    }
}

fn ran(command: &mut Command, what: &str) -> Result<(), Failure> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("{what}: {status}"))),
        Err(error) => Err(Failure::new(format!("{what}: cannot be run: {error}"))),
    }
}
