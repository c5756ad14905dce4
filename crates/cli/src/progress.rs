//! Progress lines on the terminal.

use crate::interrupt::CtrlC;
use crate::stderr::{CLEAR, to_stderr};
use onbeat::{Position, RunHandle};
use onbeat_bench::BenchWatch;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const THREAD_NAME: &str = "onbeat-progress";

/// Interval between two updates.
const EVERY: Duration = Duration::from_millis(200);

/// Progress line of a run, drawn by a thread. Does nothing unless stderr is a terminal.
pub struct ProgressLine(Option<(Sender<()>, JoinHandle<()>)>);

impl ProgressLine {
    pub fn start(name: &str, handle: RunHandle, quiet: bool) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return ProgressLine(None);
        }
        let (end, ended) = mpsc::channel();
        let name: String = name.chars().take(30).collect();
        let begin = Instant::now();
        let draw = move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                to_stderr(&format!("{CLEAR}{}", line(&name, handle.progress(), begin.elapsed())));
            }
            to_stderr(CLEAR);
        };
        // Without a thread the run goes on, without a progress line.
        ProgressLine(onbeat_os::thread::spawn(THREAD_NAME, draw).ok().map(|thread| (end, thread)))
    }

    /// Ends the thread and clears the line.
    pub fn end(self) {
        if let Some((end, thread)) = self.0 {
            drop(end);
            let _panicked = thread.join();
        }
    }
}

/// Progress line that its owner updates. Does nothing unless stderr is a terminal.
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
            to_stderr(&format!("{CLEAR}{}  {text}", self.name));
        }
    }

    /// Clears the line.
    pub fn clear(&self) {
        if self.is_drawn {
            to_stderr(CLEAR);
        }
    }
}

/// Progress line and Ctrl-C handler of a benchmark.
pub struct BenchProgress {
    line: StatusLine,
    ctrl_c: CtrlC,
}

impl BenchProgress {
    pub fn new(name: &'static str, abort: fn() -> !) -> Self {
        BenchProgress { line: StatusLine::new(name), ctrl_c: CtrlC::listen(abort) }
    }

    /// Clears the line.
    pub fn clear(&self) {
        self.line.clear();
    }
}

impl BenchWatch for BenchProgress {
    fn at(&mut self, done: usize, all: usize, next: &str) {
        let percent = 100 * done / all.max(1);
        self.line.draw(&format!("{percent:3} %, {next}"));
    }

    fn is_stopped(&self) -> bool {
        self.ctrl_c.is_asked()
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
