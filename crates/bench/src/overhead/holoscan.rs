//! The same cases in Holoscan, by a Python that runs `peers/holoscan/overhead.py` and answers one line per run.

use super::case::Case;
use super::recipe::{Kind, Recipe};
use super::settings::Peer;
use onbeat_os::thread;
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Carried along, so that it need not be found.
const SCRIPT: &str = include_str!("../../../../peers/holoscan/overhead.py");

/// How to get it.
const HOW: &str = "to get it: python3 -m venv holoscan; holoscan/bin/pip install --no-deps holoscan-cu12==4.6.0 \
                   wheel-axle-runtime; holoscan/bin/pip install numpy 'cloudpickle<4,>=3' nvidia-cuda-runtime-cu12 \
                   nvidia-nvtx-cu12 filelock pillow; then --python holoscan/bin/python";

/// Importing it takes seconds.
const START: Duration = Duration::from_secs(120);

/// A Holoscan that waits for work.
pub(super) struct Holoscan {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<String>,
    talk: Arc<Mutex<String>>,
    pub iterations: u64,
    /// Of Holoscan and of its Python.
    pub versions: (String, String),
}

/// What one run took there, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerTaken {
    /// Around constructing, composing and running, per iteration.
    pub process_ns: f64,
    /// After the warm-up, per iteration.
    pub steady_ns: f64,
}

#[derive(Deserialize)]
struct Ready {
    holoscan: String,
    python: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Taken { wall_ns: u64, begin_ns: u64, end_ns: u64 },
    Refused { error: String },
}

impl Holoscan {
    /// Starts it, or says why not and how to get it.
    pub fn start(peer: &Peer) -> Result<Holoscan, String> {
        let python = peer.python.display();
        let missing = |why: &str| format!("holoscan: not available: {why}; {HOW}");
        let mut child = Command::new(&peer.python)
            .args(["-c", SCRIPT, "--serve"])
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
        // From here on dropping it ends the child.
        let holoscan =
            |child, versions| Holoscan { child, to, from, talk, iterations: peer.iterations, versions };
        let mut holoscan = holoscan(child, (String::new(), String::new()));
        let readers = thread::spawn("onbeat-peer", move || {
            for line in stdout.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
                if line.map_or(true, |line| lines.send(line).is_err()) {
                    break;
                }
            }
        })
        .and_then(|_| thread::spawn("onbeat-peer-err", move || stderr.map(|stderr| keep(stderr, &kept))));
        if let Err(error) = readers {
            return Err(format!("holoscan: not available: cannot start a thread: {error}"));
        }
        let line = holoscan.line(START).map_err(|why| missing(&format!("{python}: {why}")))?;
        let ready: Ready =
            serde_json::from_str(&line).map_err(|_| missing(&format!("{python}: it says `{line}`")))?;
        holoscan.versions = (ready.holoscan, ready.python);
        Ok(holoscan)
    }

    /// Of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has a scheduler like this.
    pub fn has(&self, recipe: Recipe) -> bool {
        matches!(recipe.kind, Kind::Greedy | Kind::Event)
    }

    /// Iterations before those that its steady figures are made of.
    pub fn warm_up(&self, wanted: u64) -> u64 {
        wanted.min(self.iterations / 10).max(1)
    }

    /// One run there.
    pub fn run(&mut self, case: Case, recipe: Recipe, warm_up: u64) -> Result<PeerTaken, String> {
        let (iterations, warm_up) = (self.iterations, self.warm_up(warm_up));
        let scheduler = recipe.kind.name();
        let failed = |why: &str| format!("holoscan: {} under {}: {why}", case.name(), recipe.name());
        let wanted = json!({
            "case": case.name(),
            "scheduler": scheduler,
            "workers": recipe.workers,
            "iterations": iterations,
            "warm_up": warm_up,
        });
        let to = self.to.as_mut().ok_or_else(|| failed("it has ended"))?;
        writeln!(to, "{wanted}").and_then(|()| to.flush()).map_err(|error| failed(&error.to_string()))?;
        // Slower by far than anybody has seen it.
        let limit = START + Duration::from_micros(iterations.saturating_mul(5_000));
        let line = self.line(limit).inspect_err(|_| self.to = None).map_err(|why| failed(&why))?;
        match serde_json::from_str(&line) {
            Ok(Answer::Taken { wall_ns, begin_ns, end_ns }) => Ok(PeerTaken {
                process_ns: wall_ns as f64 / iterations as f64,
                steady_ns: end_ns.saturating_sub(begin_ns) as f64 / (iterations - warm_up).max(1) as f64,
            }),
            Ok(Answer::Refused { error }) => Err(failed(&error)),
            Err(_) => Err(failed(&format!("it says `{line}`"))),
        }
    }

    /// The next line that it writes.
    fn line(&self, limit: Duration) -> Result<String, String> {
        match self.from.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer within {} s", limit.as_secs())),
            Err(RecvTimeoutError::Disconnected) => {
                let talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
                let last = talk.lines().rev().find(|line| !line.trim().is_empty());
                Err(last.unwrap_or("it ended without a word").trim().to_owned())
            }
        }
    }
}

impl Drop for Holoscan {
    fn drop(&mut self) {
        // It ends by itself when nobody can ask any more; one that hangs does not.
        self.to = None;
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Reads until the end and keeps the last of it.
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
