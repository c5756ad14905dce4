//! Another runtime in its own process: a script that answers each line of JSON with one.

use onbeat_os::thread;
use serde::Deserialize;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a process runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PythonScript {
    /// Name in notes and figures.
    pub name: &'static str,
    /// The script, which reads requests with the argument `--serve`.
    pub text: &'static str,
    /// Installation instructions.
    pub how: &'static str,
}

impl PythonScript {
    /// A script that runs Holoscan.
    pub const fn holoscan(text: &'static str) -> PythonScript {
        let how = "to install it: python3 -m venv holoscan; holoscan/bin/pip install --no-deps \
                   holoscan-cu12==4.6.0 wheel-axle-runtime; holoscan/bin/pip install numpy \
                   'cloudpickle<4,>=3' nvidia-cuda-runtime-cu12 nvidia-nvtx-cu12 filelock pillow; then \
                   --python holoscan/bin/python";
        PythonScript { name: "holoscan", text, how }
    }
}

/// Time limit for the start; importing takes seconds.
pub(crate) const START: Duration = Duration::from_secs(120);

/// A running process that waits for requests.
pub(crate) struct PythonProcess {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<String>,
    talk: Arc<Mutex<String>>,
    /// Versions of the package and its Python.
    pub versions: (String, String),
}

#[derive(Deserialize)]
struct PythonVersions {
    #[serde(alias = "holoscan")]
    version: String,
    python: String,
}

impl PythonProcess {
    /// Starts this script with `--serve` under that Python. On failure the error says why, and how to install
    /// what it needs.
    pub fn start(program: &Path, script: PythonScript) -> Result<PythonProcess, String> {
        let (python, name, how) = (program.display(), script.name, script.how);
        let missing = |why: &str| format!("{name}: not available: {why}; {how}");
        let mut child = Command::new(program)
            .args(["-c", script.text, "--serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| missing(&format!("{python}: {error}")))?;
        let talk = Arc::new(Mutex::new(String::new()));
        let (lines, from) = mpsc::channel();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let to = child.stdin.take();
        let kept = Arc::clone(&talk);
        // From here on, dropping it ends the child.
        let mut process = PythonProcess { child, to, from, talk, versions: (String::new(), String::new()) };
        let readers = thread::spawn("onbeat-peer", move || {
            for line in stdout.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
                if line.map_or(true, |line| lines.send(line).is_err()) {
                    break;
                }
            }
        })
        .and_then(|_| thread::spawn("onbeat-peer-err", move || stderr.map(|stderr| keep(stderr, &kept))));
        if let Err(error) = readers {
            return Err(format!("{name}: not available: cannot start a thread: {error}"));
        }
        let line = process.line(START).map_err(|why| missing(&format!("{python}: {why}")))?;
        let ready: PythonVersions = serde_json::from_str(&line)
            .map_err(|_| missing(&format!("{python}: unexpected answer `{line}`")))?;
        process.versions = (ready.version, ready.python);
        Ok(process)
    }

    /// CPU time of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request and returns the answer. After a timeout no more requests are sent.
    pub fn ask(&mut self, wanted: &Value, limit: Duration) -> Result<String, String> {
        let to = self.to.as_mut().ok_or("the process has ended")?;
        writeln!(to, "{wanted}").and_then(|()| to.flush()).map_err(|error| error.to_string())?;
        self.line(limit).inspect_err(|_| self.to = None)
    }

    /// Returns the next line of its output.
    fn line(&self, limit: Duration) -> Result<String, String> {
        match self.from.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer within {} s", limit.as_secs())),
            Err(RecvTimeoutError::Disconnected) => {
                let talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
                let last = talk.lines().rev().find(|line| !line.trim().is_empty());
                Err(last.unwrap_or("the process ended without output").trim().to_owned())
            }
        }
    }
}

impl Drop for PythonProcess {
    fn drop(&mut self) {
        // The process exits when its input closes; one that hangs does not.
        self.to = None;
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Reads until the end and keeps the last part.
fn keep(mut from: impl Read, kept: &Mutex<String>) {
    const MOST: usize = 4096;
    let mut part = [0; 1024];
    while let Ok(length @ 1..) = from.read(&mut part) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_str(&String::from_utf8_lossy(&part[..length]));
        let mut surplus = kept.len().saturating_sub(MOST);
        while !kept.is_char_boundary(surplus) {
            surplus += 1;
        }
        kept.drain(..surplus);
    }
}
