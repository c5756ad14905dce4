//! Actions at a limit and at the end of a measurement.

use super::trace::Traced;
use crate::arguments::actions::Action;
use crate::error::CommandError;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs the actions of `--on-threshold`, if a limit was hit, and those of `--on-end`. Returns the first
/// error, after trying all.
pub fn act(is_hit: bool, traced: &Traced<'_>) -> Result<(), CommandError> {
    let hit = if is_hit { at_limit(traced) } else { Ok(()) };
    hit.and(all(&traced.session.on_end, traced))
}

/// Runs the actions of `--on-threshold`.
pub fn at_limit(traced: &Traced<'_>) -> Result<(), CommandError> {
    all(&traced.session.on_threshold, traced)
}

fn all(actions: &[Action], traced: &Traced<'_>) -> Result<(), CommandError> {
    let mut failed = None;
    for action in actions {
        let done = match action {
            Action::Trace(file) => {
                let file =
                    file.clone().unwrap_or_else(|| PathBuf::from(format!("{}_trace.txt", traced.usual)));
                traced.write_lines("trace", &file)
            }
            other => elsewhere(other),
        };
        failed = failed.or(done.err());
    }
    failed.map_or(Ok(()), Err)
}

/// Runs an action on other programs: a signal or a command. Ignores other actions.
pub fn elsewhere(action: &Action) -> Result<(), CommandError> {
    match action {
        Action::Signal { number, pid } => {
            let pid = pid.unwrap_or_else(std::os::unix::process::parent_id);
            ran(
                Command::new("kill").args([format!("-{number}"), pid.to_string()]),
                &format!("signal {number} to {pid}"),
            )
        }
        // Its output goes to stderr: stdout has our data.
        Action::Shell(command) => {
            ran(Command::new("sh").args(["-c", &format!("{{ {command}\n}} >&2")]), &format!("`{command}`"))
        }
        Action::Trace(_) | Action::Continue => Ok(()),
    }
}

fn ran(command: &mut Command, what: &str) -> Result<(), CommandError> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CommandError::new(format!("{what}: {status}"))),
        Err(error) => Err(CommandError::new(format!("{what}: cannot be run: {error}"))),
    }
}
