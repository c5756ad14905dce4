//! Runs the built command in its own folder, with a time limit.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit, far above the time of any run even on a busy machine.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A folder with the pipelines of these tests.
pub struct Place {
    folder: tempfile::TempDir,
}

/// Result of a command.
#[derive(Debug)]
pub struct Answer {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in PIPELINES {
            fs::write(folder.path().join(name), text).expect("a file there");
        }
        Place { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a pipe without another end.
    pub fn fifo(&self, name: &str) {
        let made = Command::new("mkfifo").arg(self.path(name)).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.prepare(Command::new(env!("CARGO_BIN_EXE_onbeat")), arguments)
    }

    fn prepare(&self, mut command: Command, arguments: &[&str]) -> Command {
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env_remove("RUST_BACKTRACE");
        command
    }

    /// Runs a command with its output in files, since a full pipe would block it.
    pub fn start(&self, arguments: &[&str]) -> Child {
        self.run(self.command(arguments))
    }

    /// Runs a command in a network namespace with this name.
    pub fn start_in(&self, namespace: &str, arguments: &[&str]) -> Child {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_onbeat")]);
        self.run(self.prepare(command, arguments))
    }

    fn run(&self, mut command: Command) -> Child {
        let file = |name: &str| File::create(self.path(name)).expect("a file there");
        command.stdout(file("stdout.txt")).stderr(file("stderr.txt")).spawn().expect("the command")
    }

    pub fn end(&self, mut child: Child) -> Answer {
        let text = |name: &str| fs::read_to_string(self.path(name)).unwrap_or_default();
        let status = wait(&mut child);
        Answer { status, stdout: text("stdout.txt"), stderr: text("stderr.txt") }
    }

    pub fn onbeat(&self, arguments: &[&str]) -> Answer {
        self.onbeat_with(arguments, &[])
    }

    /// Runs a command with these environment variables.
    pub fn onbeat_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Answer {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        self.end(self.run(command))
    }
}

/// Returns the exit status; `None` after a signal.
pub fn wait(child: &mut Child) -> Option<i32> {
    wait_for(child, WATCHDOG)
}

/// Returns the exit status of a command that ends within this time; `None` after a signal.
pub fn wait_for(child: &mut Child, limit: Duration) -> Option<i32> {
    let mut status = None;
    within(limit, "the command has ended", || {
        status = child.try_wait().expect("a child of ours");
        if status.is_none() { None } else { Some(()) }
    })
    .inspect_err(|_| drop(child.kill()))
    .unwrap_or_else(|what| panic!("{what}"));
    status.and_then(|status| status.code())
}

/// Polls until `found` returns a value, within the time limit.
pub fn until(what: &str, look: impl FnMut() -> Option<()>) -> Result<(), String> {
    within(WATCHDOG, what, look)
}

fn within(limit: Duration, what: &str, mut look: impl FnMut() -> Option<()>) -> Result<(), String> {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if look().is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(format!("waited in vain until {what}"))
}

const PIPELINES: [(&str, &str); 8] = [
    (
        "count.toml",
        r#"
[[operator]]
name = "numbers"
kind = "counter"
count = 5

[[operator]]
name = "end"
kind = "count.sink"

[[edge]]
from = "numbers"
to = "end"
"#,
    ),
    // Nothing is done in a nanosecond.
    (
        "late.toml",
        r#"
name = "always-late"
[[operator]]
name = "numbers"
kind = "counter"
count = 5
rate = "1 kHz"
pace = "real"
[[operator]]
name = "end"
kind = "count.sink"
[[edge]]
from = "numbers"
to = "end"
[[path]]
from = "numbers"
to = "end"
max_latency = "1ns"
"#,
    ),
    (
        "endless.toml",
        r#"
[[operator]]
name = "silence"
kind = "null.source"
rate = "800 kHz"
pace = "real"
size = 800
[[operator]]
name = "file"
kind = "wav.sink"
path = "silence.wav"
[[edge]]
from = "silence"
to = "file"
"#,
    ),
    (
        "gate.toml",
        r#"
[[operator]]
name = "numbers"
kind = "counter"
count = 10
when = { gate = "go", open = false }
[[operator]]
name = "end"
kind = "count.sink"
[[edge]]
from = "numbers"
to = "end"
"#,
    ),
    // One step takes longer than anybody waits.
    (
        "stuck.toml",
        r#"
[[operator]]
name = "numbers"
kind = "counter"
count = 2
[[operator]]
name = "slow"
kind = "load.count"
busy = "50 s"
[[operator]]
name = "end"
kind = "count.sink"
[[edge]]
from = "numbers"
to = "slow"
[[edge]]
from = "slow"
to = "end"
"#,
    ),
    (
        "open_end.toml",
        r#"
[[operator]]
name = "tone"
kind = "tone.source"
frequency = 10
sample_rate = 1000
"#,
    ),
    (
        "python.toml",
        r#"
[[operator]]
name = "own"
kind = "python"
file = "own.py"
"#,
    ),
    (
        "no_file.toml",
        r#"
[[operator]]
name = "iq"
kind = "sigmf.source"
path = "not-there"
[[operator]]
name = "end"
kind = "null.sink.complex"
[[edge]]
from = "iq"
to = "end"
"#,
    ),
];
