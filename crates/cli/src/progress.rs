//! One line on the terminal, drawn again while a run is under way.

use crate::output::to_stderr;
use onbeat::{Position, RunHandle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const THREAD_NAME: &str = "onbeat-progress";

/// Between two drawings.
const EVERY: Duration = Duration::from_millis(200);

/// Draws until it is told to end. Nothing where stderr is no terminal.
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    pub fn start(name: &str, handle: RunHandle, quiet: bool) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Progress(None);
        }
        let (end, ended) = mpsc::channel();
        let name: String = name.chars().take(30).collect();
        let begin = Instant::now();
        let draw = move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                to_stderr(&format!("\r\x1b[K{}", line(&name, handle.progress(), begin.elapsed())));
            }
            to_stderr("\r\x1b[K");
        };
        // A run without its progress line is still a run.
        Progress(onbeat_os::thread::spawn(THREAD_NAME, draw).ok().map(|thread| (end, thread)))
    }

    /// Takes the line away.
    pub fn end(self) {
        if let Some((end, thread)) = self.0 {
            drop(end);
            let _panicked = thread.join();
        }
    }
}

/// A line that whoever works draws again from time to time. Nothing where stderr is no terminal.
pub struct StatusLine {
    name: &'static str,
    is_drawn: bool,
}

impl StatusLine {
    pub fn new(name: &'static str) -> Self {
        StatusLine { name, is_drawn: io::stderr().is_terminal() }
    }

    pub fn draw(&self, text: &str) {
        if self.is_drawn {
            to_stderr(&format!("\r\x1b[K{}  {text}", self.name));
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.is_drawn {
            to_stderr("\r\x1b[K");
        }
    }
}

fn line(name: &str, at: Position, elapsed: Duration) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let elapsed_s = elapsed.as_secs_f64();
    let mut line = format!("{name}  ");
    match at.length_ns {
        Some(length_ns) => {
            let share = at.position_ns as f64 / length_ns.max(1) as f64;
            line += &format!("{:.1} s of {:.1} s, ", seconds(at.position_ns), seconds(length_ns));
            line += &format!("{:.0} %, ", (100.0 * share).min(100.0));
        }
        None if at.position_ns > 0 => line += &format!("{:.1} s, ", seconds(at.position_ns)),
        None => {}
    }
    line += &format!("elapsed {elapsed_s:.1} s");
    if at.position_ns > 0 && elapsed_s > 0.0 {
        line += &format!(", {:.2} x real time", seconds(at.position_ns) / elapsed_s);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_known() {
        let at = |position_ns, length_ns| Position { elapsed_ns: 0, position_ns, length_ns };
        let elapsed = Duration::from_secs(2);
        assert_eq!(
            line("fm", at(1_500_000_000, Some(6_000_000_000)), elapsed),
            "fm  1.5 s of 6.0 s, 25 %, elapsed 2.0 s, 0.75 x real time"
        );
        assert_eq!(
            line("fm", at(4_000_000_000, None), elapsed),
            "fm  4.0 s, elapsed 2.0 s, 2.00 x real time"
        );
        assert_eq!(line("fm", at(0, None), elapsed), "fm  elapsed 2.0 s");
    }
}
