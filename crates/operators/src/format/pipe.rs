//! Named pipes, which end where their writer ends.

use super::open::cannot;
use onbeat_runtime::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for a writer to write a header.
const HEADER: Duration = Duration::from_secs(10);

/// Reads what has arrived: `None` if nothing has, 0 at the end. The file may be in blocking mode.
pub(crate) fn read_arrived(file: &impl AsFd, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    if !is_ready(file, PollFlags::IN, Duration::ZERO) {
        return Ok(None);
    }
    match rustix::io::read(file, bytes) {
        Ok(count) => Ok(Some(count)),
        Err(Errno::INTR | Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a read or write does not block, after this time at the latest. Also true at the end of the stream
/// or after an error, which the call itself reports; a pipe that nobody has opened for writing yet is not
/// ready.
pub(crate) fn is_ready(file: &impl AsFd, what: PollFlags, time: Duration) -> bool {
    let mut files = [PollFd::new(file, what)];
    let time = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
    // If polling fails, the call itself reports the error.
    poll(&mut files, Some(&time)).map_or(true, |ready| ready > 0)
}

/// The header of what comes through a pipe. Waits for a writer.
pub(crate) struct PipeHeader<'f> {
    file: &'f File,
    until: Instant,
}

impl<'f> PipeHeader<'f> {
    pub fn new(file: &'f File) -> Self {
        PipeHeader { file, until: Instant::now() + HEADER }
    }
}

impl Read for PipeHeader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if !is_ready(self.file, PollFlags::IN, left) && left.is_zero() {
                let text = format!("nothing came through the pipe within {} s", HEADER.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            if let Some(count) = read_arrived(self.file, bytes)? {
                return Ok(count);
            }
        }
    }
}

/// Bytes that wait in a pipe.
pub(crate) fn unread(file: &File) -> u64 {
    rustix::io::ioctl_fionread(file).unwrap_or(0)
}

/// Opens a named pipe for reading, without waiting for a writer.
pub(super) fn open(path: &Path) -> Result<File, Error> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    file.map(File::from).map_err(|error| cannot("open", path, error.into()))
}
