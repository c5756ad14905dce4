//! Non-blocking access to stdin and stdout.
//!
//! Both are polled before each use. They are not set to non-blocking mode, because they may share a terminal
//! with the shell.

use super::patience::{is_over, over_at_ns};
use crate::format::{is_ready, read_arrived};
use onbeat_runtime::{Context, Ending, Error, Input, Message, Step};
use rustix::event::PollFlags;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes that a writable pipe takes without blocking: `PIPE_BUF`.
const PIPE_BYTES: usize = 4096;

/// Whether stdin and stdout are in use. A second operator would read or write half of the stream.
static TAKEN: Mutex<[bool; 2]> = Mutex::new([false; 2]);

struct StreamLease(usize);

impl StreamLease {
    fn take(which: usize, name: &str) -> Result<Self, Error> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut taken[which], true) {
            return Err(Error::new(format!(
                "{name} is used by another operator of this run: give one of them a file"
            )));
        }
        Ok(StreamLease(which))
    }
}

impl Drop for StreamLease {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner)[self.0] = false;
    }
}

/// Result of polling stdin.
pub(crate) enum Read {
    Bytes(usize),
    Nothing,
    End,
}

/// Stdin, reserved for one operator.
pub(crate) struct Stdin {
    _place: StreamLease,
}

impl Stdin {
    pub fn open() -> Result<Self, Error> {
        Ok(Stdin { _place: StreamLease::take(0, "stdin")? })
    }

    /// Number of bytes that wait in a pipe or socket, and are gone when the run ends. A file keeps them.
    fn unread(&self) -> u64 {
        let stdin = io::stdin();
        let kind = rustix::fs::fstat(stdin.as_fd()).map(|found| FileType::from_raw_mode(found.st_mode));
        match kind {
            Ok(FileType::Fifo | FileType::Socket) => rustix::io::ioctl_fionread(stdin.as_fd()).unwrap_or(0),
            _ => 0,
        }
    }

    /// Counts the bytes that wait when a run is stopped or fails, and those that were read but not sent.
    pub fn lose_unread(self, read: usize, ending: Ending, cx: &mut Context) {
        if ending != Ending::Ended {
            cx.lose(self.unread() + read as u64, "bytes", "waited in stdin when the run ended");
        }
    }

    /// Reads what has arrived, at most as much as fits `bytes`.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<Read, Error> {
        let stdin = io::stdin();
        match read_arrived(&stdin, bytes) {
            Ok(None) => Ok(Read::Nothing),
            Ok(Some(0)) => Ok(Read::End),
            Ok(Some(count)) => Ok(Read::Bytes(count)),
            Err(error) => Err(Error::with_source("cannot read stdin", error)),
        }
    }
}

/// Result of writing bytes to stdout.
#[derive(Debug, PartialEq, Eq)]
enum WriteOutcome {
    All,
    /// This many bytes were written; there is no room for more at the moment.
    Part(usize),
    /// The reader has closed the stream.
    Closed,
}

/// Stdout, reserved for one operator.
struct Stdout {
    _place: StreamLease,
    /// Whether it is a regular file, which always has room for any amount.
    is_file: bool,
}

impl Stdout {
    pub fn open() -> Result<Self, Error> {
        let found = rustix::fs::fstat(io::stdout().as_fd());
        let is_file = found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file());
        Ok(Stdout { _place: StreamLease::take(1, "stdout")?, is_file })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<WriteOutcome, Error> {
        let stdout = io::stdout();
        let mut done = 0;
        while done < bytes.len() {
            let most = if self.is_file { usize::MAX } else { PIPE_BYTES };
            if !self.is_file && !is_ready(&stdout, PollFlags::OUT, Duration::ZERO) {
                return Ok(WriteOutcome::Part(done));
            }
            match rustix::io::write(stdout.as_fd(), &bytes[done..bytes.len().min(done.saturating_add(most))])
            {
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(WriteOutcome::Part(done)),
                Err(Errno::PIPE) => return Ok(WriteOutcome::Closed),
                Err(error) => return Err(Error::with_source("cannot write to stdout", error)),
            }
        }
        Ok(WriteOutcome::All)
    }
}

/// Bytes waiting to be written to stdout.
pub(crate) struct Outgoing {
    stdout: Stdout,
    pub bytes: Vec<u8>,
    done: usize,
    /// Time for the reader to take the rest, after a stop of the run.
    patience_ns: u64,
    /// Whether the rest is not written.
    has_given_up: bool,
}

impl Outgoing {
    pub fn open(patience_ns: u64) -> Result<Self, Error> {
        Ok(Outgoing { stdout: Stdout::open()?, bytes: Vec::new(), done: 0, patience_ns, has_given_up: false })
    }

    /// Writes pending bytes. Returns the result of the step of an operator whose bytes come from `input`.
    pub fn step<M: Message>(&mut self, input: &Input<M>, cx: &mut Context) -> Result<Step, Error> {
        if self.has_given_up {
            return Ok(self.discard(input, cx));
        }
        match self.send()? {
            WriteOutcome::Part(_) if is_over(cx, self.patience_ns) => {
                self.has_given_up = true;
                Ok(self.discard(input, cx))
            }
            WriteOutcome::Part(_) => {
                let until_ns = over_at_ns(cx, self.patience_ns);
                cx.writable_until(&io::stdout(), until_ns)
            }
            WriteOutcome::All => {
                // Messages that arrived while stdout was full are not notified again.
                Ok(if input.is_empty(cx) { Step::Wait } else { Step::Again })
            }
            WriteOutcome::Closed => {
                cx.note("the reader of stdout has closed it: the rest is not written");
                Ok(Step::Done)
            }
        }
    }

    /// Counts pending bytes as lost.
    fn discard<M: Message>(&mut self, input: &Input<M>, cx: &mut Context) -> Step {
        let lost = (self.bytes.len() - self.done) as u64;
        cx.lose(lost, "bytes", "the reader of stdout did not take them within `patience`");
        self.bytes.clear();
        self.done = 0;
        if input.is_empty(cx) { Step::Wait } else { Step::Again }
    }

    /// Writes pending bytes. [`WriteOutcome::Part`] only says that some are left.
    fn send(&mut self) -> Result<WriteOutcome, Error> {
        let written = self.stdout.write(&self.bytes[self.done..])?;
        match written {
            WriteOutcome::Part(count) => self.done += count,
            WriteOutcome::All | WriteOutcome::Closed => {
                self.bytes.clear();
                self.done = 0;
            }
        }
        Ok(written)
    }
}
