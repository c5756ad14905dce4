//! Programs of `peers/`: their output, and their CPU time.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time limit, longer than any peer takes to start and stop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the standard output of a command. The error contains the last of its error output.
pub(crate) fn ask(command: &mut Command, patience: Duration) -> Result<String, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    // A pipe holds 64 KiB, and a peer writes a few lines: it cannot block on unread output.
    let status = wait(&mut child, patience)?;
    let (mut said, mut talk) = (String::new(), String::new());
    let read = child.stdout.take().map_or(Ok(0), |mut out| out.read_to_string(&mut said));
    read.map_err(|error| error.to_string())?;
    // Its error output need not be text.
    let _lost = child.stderr.take().map(|mut err| err.read_to_string(&mut talk));
    if status.success() {
        return Ok(said);
    }
    let last = talk.lines().rev().find(|line| !line.trim().is_empty());
    Err(last.map_or_else(|| format!("it ended with {status}"), |line| line.trim().to_owned()))
}

/// Waits until it has ended, and kills it after a time limit.
fn wait(child: &mut Child, patience: Duration) -> Result<ExitStatus, String> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if begin.elapsed() < patience => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => {
                let _gone = child.kill();
                let _reaped = child.wait();
                return Err(format!("not finished after {:.0} s", patience.as_secs_f64()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// CPU time of all child processes that have ended; 0 if the kernel does not tell.
pub(crate) fn children_cpu_ns() -> u64 {
    /// The kernel shows times in hundredths of a second (`USER_HZ`).
    const TICK_NS: u64 = 10_000_000;
    let ticks = || -> Option<u64> {
        let text = fs::read_to_string("/proc/self/stat").ok()?;
        // After the name, which can contain any character: fields 16 and 17, counted from 1.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        Some(fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?)
    };
    ticks().unwrap_or(0) * TICK_NS
}
