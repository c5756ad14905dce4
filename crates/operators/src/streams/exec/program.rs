//! A running program: its pipes, its patience and its end.

use super::super::patience::{on_clock_ns, over_at_ns, real_ns};
use super::command::ExecCommand;
use super::last_lines::LastLines;
use crate::format::is_ready;
use onbeat_runtime::{Context, Ending, Error, Step};
use rustix::event::{PollFlags, epoll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

/// Time for a program to end after a signal if the run has failed.
const HURRY_NS: u64 = 1_000_000_000;
/// Reads of stderr per step, so that a step ends.
const READS: usize = 16;
/// Time from one look at the end of the program to the next, on kernels without `pidfd_open`.
const LOOK_NS: u64 = 5_000_000;

/// Result of reading from a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramRead {
    Bytes(usize),
    Nothing,
    End,
}

/// A program with pipes in non-blocking mode. It is killed when this is dropped.
pub(super) struct Program {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    said: LastLines,
    /// Readable once the program has ended.
    end: Option<OwnedFd>,
    /// Epoll set of the descriptors above.
    watched: OwnedFd,
    watches_stdin: bool,
    status: Option<ExitStatus>,
    patience_ns: u64,
    /// Real time since which the program has neither taken nor sent anything although it was waited for.
    quiet_ns: Option<u64>,
    /// Bytes for its stdin, and how many of them are written.
    pub bytes: Vec<u8>,
    written: usize,
    /// Whether it closed its stdin, and bytes that it did not take then.
    has_refused: bool,
    refused: usize,
}

impl Program {
    /// Starts a program with pipes for the given streams.
    pub fn start(
        command: &ExecCommand,
        (stdin, stdout): (bool, bool),
        patience_ns: u64,
        cx: &Context,
    ) -> Result<Self, Error> {
        let cannot = |error| Error::with_source(format!("cannot watch {}", command.name()), error);
        let watched = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| cannot(error.into()))?;
        let mut child = command.start(stdin, stdout, cx)?;
        let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let mut program = Program {
            name: command.name(),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            said: LastLines::default(),
            end,
            watched,
            watches_stdin: false,
            status: None,
            patience_ns,
            quiet_ns: None,
            bytes: Vec::new(),
            written: 0,
            has_refused: false,
            refused: 0,
        };
        // From here on, an error drops the program, which kills it.
        program.prepare().map_err(cannot)?;
        Ok(program)
    }

    fn prepare(&mut self) -> io::Result<()> {
        if let Some(stdin) = &self.stdin {
            unblock(stdin)?;
        }
        if let Some(stdout) = &self.stdout {
            unblock(stdout)?;
            self.watch(stdout)?;
        }
        if let Some(stderr) = &self.stderr {
            unblock(stderr)?;
            self.watch(stderr)?;
        }
        self.end.as_ref().map_or(Ok(()), |end| self.watch(end))
    }

    fn watch(&self, file: &impl AsFd) -> io::Result<()> {
        Ok(epoll::add(&self.watched, file, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?)
    }

    /// The program's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it takes input.
    pub fn takes(&self) -> bool {
        self.stdin.is_some()
    }

    /// Bytes that wait until it takes them.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Ends its input. All bytes must be written.
    pub fn end_input(&mut self) {
        (self.stdin, self.watches_stdin) = (None, false);
    }

    /// Writes waiting bytes, as many as it takes. Returns whether it took any, or closed its stdin.
    pub fn write(&mut self) -> Result<bool, Error> {
        let before = self.written;
        while self.written < self.bytes.len() {
            let Some(stdin) = &mut self.stdin else { break };
            match stdin.write(&self.bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => break,
                    ErrorKind::BrokenPipe => {
                        (self.has_refused, self.refused) = (true, self.pending());
                        self.drop_pending();
                        self.end_input();
                        return Ok(true);
                    }
                    _ => return Err(Error::with_source(format!("cannot write to {}", self.name), error)),
                },
            }
        }
        let moved = self.written > before;
        if self.written == self.bytes.len() {
            self.drop_pending();
        }
        if moved {
            self.quiet_ns = None;
        }
        Ok(moved)
    }

    /// Forgets waiting bytes. Returns their number.
    pub fn drop_pending(&mut self) -> usize {
        let pending = self.pending();
        self.bytes.clear();
        self.written = 0;
        pending
    }

    /// Reads what has come from its stdout.
    pub fn read(&mut self, room: &mut [u8]) -> Result<ProgramRead, Error> {
        let Some(stdout) = &mut self.stdout else { return Ok(ProgramRead::End) };
        loop {
            match stdout.read(room) {
                Ok(0) => {
                    self.stdout = None;
                    return Ok(ProgramRead::End);
                }
                Ok(count) => {
                    self.quiet_ns = None;
                    return Ok(ProgramRead::Bytes(count));
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return Ok(ProgramRead::Nothing),
                    _ => return Err(Error::with_source(format!("cannot read from {}", self.name), error)),
                },
            }
        }
    }

    /// Reads what it said on stderr.
    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        for _ in 0..READS {
            let Some(stderr) = &mut self.stderr else { return };
            match stderr.read(&mut bytes) {
                Ok(0) => self.stderr = None,
                Ok(count) => self.said.add(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Its words are for messages only.
                Err(_) => self.stderr = None,
            }
        }
    }

    /// Whether it has ended, and all of its output is read. Asked when there is nothing else to do.
    pub fn has_ended(&mut self) -> Result<bool, Error> {
        self.listen();
        if self.status.is_none() {
            self.status = self.child.try_wait().map_err(|error| {
                Error::with_source(format!("cannot wait for the end of {}", self.name), error)
            })?;
            if self.status.is_some() {
                self.end = None;
            }
        }
        Ok(self.status.is_some() && self.stdout.is_none())
    }

    /// Waits until it takes or sends something, or ends. `None` if the patience is used up. For a source,
    /// `may_be_quiet`: it may send nothing for any time.
    pub fn wait(&mut self, may_be_quiet: bool, cx: &mut Context) -> Result<Option<Step>, Error> {
        let wants_room = self.pending() > 0 && self.stdin.is_some();
        if wants_room != self.watches_stdin
            && let Some(stdin) = &self.stdin
        {
            let (set, data) = (&self.watched, epoll::EventData::new_u64(0));
            let changed = match wants_room {
                true => epoll::add(set, stdin, data, epoll::EventFlags::OUT),
                false => epoll::delete(set, stdin),
            };
            changed.map_err(|error| Error::with_source(format!("cannot watch {}", self.name), error))?;
            self.watches_stdin = wants_room;
        }
        let is_ending = self.stdout.is_none() || self.status.is_some();
        let is_waited_for = wants_room || if may_be_quiet { is_ending } else { self.stdin.is_none() };
        let mut until_ns = over_at_ns(cx, self.patience_ns);
        if is_waited_for || self.status.is_some() {
            let end_ns = self.quiet_ns.get_or_insert_with(real_ns).saturating_add(self.patience_ns);
            if real_ns() >= end_ns {
                return Ok(None);
            }
            until_ns = until_ns.min(on_clock_ns(cx, end_ns));
        } else {
            self.quiet_ns = None;
        }
        if self.end.is_none() && self.status.is_none() {
            until_ns = until_ns.min(cx.in_real_ns(LOOK_NS));
        }
        cx.readable_until(&self.watched, until_ns).map(Some)
    }

    /// The error of a program whose patience is used up. It is killed.
    pub fn too_quiet(&mut self) -> Error {
        let (seconds, has_ended) = (self.patience_ns as f64 / 1e9, self.status.is_some());
        self.kill();
        let text = match (has_ended, self.stdin.is_none()) {
            (true, _) => "has ended, but a program that it started keeps its stdout open",
            (false, true) => "did not end, and sent nothing, after its input had ended",
            (false, false) => "neither took nor sent samples",
        };
        self.error(&format!("{text} for {seconds} s: it was killed; raise `patience` if it needs longer"))
    }

    /// How it ended: an error if its exit status is not 0. Notes what it said otherwise.
    pub fn conclude(&mut self, cx: &mut Context) -> Result<(), Error> {
        let Some(status) = self.status else { return Ok(()) };
        if !status.success() {
            return Err(self.error(&ending(status)));
        }
        if let Some(text) = self.said.text() {
            cx.note(format!("{} wrote to stderr, at last: {text}", self.name));
        }
        if self.has_refused || self.stdin.is_some() {
            let rest = if self.refused > 0 { format!(" {} bytes and", self.refused) } else { String::new() };
            cx.note(format!(
                "{} ended before its input did:{rest} the rest of the input was not written",
                self.name
            ));
        }
        Ok(())
    }

    /// An error that tells the last lines of its stderr.
    fn error(&mut self, text: &str) -> Error {
        self.listen();
        let said = self.said.text().map_or(String::new(), |text| format!("; it said: {text}"));
        Error::new(format!("{} {text}{said}", self.name))
    }

    /// Closes its pipes, so that it can find out that nobody waits for it.
    pub fn hang_up(&mut self) {
        self.drop_pending();
        self.end_input();
        self.stdout = None;
    }

    /// Bytes that wait in its stdout.
    pub fn unread(&self) -> u64 {
        self.stdout.as_ref().map_or(0, |stdout| rustix::io::ioctl_fionread(stdout).unwrap_or(0))
    }

    /// Ends it: SIGTERM, and SIGKILL after the patience.
    pub fn stop(mut self, ending: Ending) {
        self.hang_up();
        let most_ns = if ending == Ending::Failed { HURRY_NS } else { u64::MAX };
        if self.status.is_none() && matches!(self.child.try_wait(), Ok(None)) {
            // It is not reaped yet, so that no other process has its number.
            let _ended = kill_process(Pid::from_child(&self.child), Signal::TERM);
            self.await_end(self.patience_ns.min(most_ns));
        }
        // Dropping kills it if it is still there.
    }

    /// Waits for its end. What it still says is not kept.
    fn await_end(&mut self, time_ns: u64) {
        let begin = Instant::now();
        let time = Duration::from_nanos(time_ns);
        while matches!(self.child.try_wait(), Ok(None)) {
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return;
            }
            self.listen();
            match &self.end {
                // In pieces, so that a full stderr does not keep it from ending.
                Some(end) => drop(is_ready(end, PollFlags::IN, left.min(Duration::from_millis(20)))),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Kills it, unless it has ended, and reaps it.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            // Killing fails if it has just ended. After a kill it ends at once, unless the kernel is stuck in
            // a system call of it.
            let _ended = self.child.kill();
            self.await_end(HURRY_NS);
            self.status = self.child.try_wait().ok().flatten();
            self.end = None;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Switches a pipe's end on this side to non-blocking mode; the program's end is not affected.
fn unblock(file: &impl AsFd) -> io::Result<()> {
    fcntl_setfl(file, fcntl_getfl(file)? | OFlags::NONBLOCK)?;
    Ok(())
}

/// How a program ended, in words.
fn ending(status: ExitStatus) -> String {
    const SIGNALS: [(i32, &str); 8] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (6, "SIGABRT"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
    ];
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with exit status {code}"),
        (None, Some(signal)) => {
            let known = SIGNALS.iter().find(|(number, _)| *number == signal);
            let name = known.map_or(String::new(), |(_, name)| format!(" ({name})"));
            format!("was ended by signal {signal}{name}")
        }
        (None, None) => format!("ended in an unknown way ({status})"),
    }
}
