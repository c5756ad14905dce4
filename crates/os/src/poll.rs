//! Which files are readable without blocking, and waiting for that (`epoll(7)`).

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Token that ends the wait; no file has it.
const END: u64 = u64::MAX;

/// Whether a read would return at once, with data, the end of the file, or an error.
///
/// # Errors
/// What `poll(2)` reports.
pub fn is_readable(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    loop {
        match rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until a file is readable, or writable where the flag is `true`, or until the time is over; `None`
/// waits without limit. Returns whether each file is ready. A broken file is ready too: its next operation
/// returns the error.
///
/// # Errors
/// What `poll(2)` reports.
pub fn wait_any(files: &[(BorrowedFd<'_>, bool)], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let flags = |writes| if writes { PollFlags::OUT } else { PollFlags::IN };
    let mut fds: Vec<PollFd<'_>> =
        files.iter().map(|(fd, writes)| PollFd::from_borrowed_fd(*fd, flags(*writes))).collect();
    // A time that does not fit is too long to matter.
    let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        // After a signal, the caller checks again.
        Ok(_) | Err(Errno::INTR) => Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(error) => Err(error.into()),
    }
}

/// Opens a file for reading, without waiting for the writer of a named pipe.
///
/// # Errors
/// What `open(2)` reports.
pub fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
}

/// Files that a thread waits for. Each [`arm`](Poll::arm) waits for one event of a file.
///
/// ```
/// use onbeat_os::poll::Poll;
/// use std::io::Write;
/// use std::os::fd::AsFd;
///
/// let (reader, mut writer) = std::io::pipe()?;
/// let poll = Poll::new()?;
/// poll.arm(reader.as_fd(), 7)?;
/// writer.write_all(b"x")?;
/// let mut ready = Vec::with_capacity(1);
/// assert!(poll.wait(&mut ready)?);
/// assert_eq!(ready, [7]);
/// poll.end()?;
/// assert!(!poll.wait(&mut ready)?);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    end: OwnedFd,
}

impl Poll {
    /// Makes an empty set of files.
    ///
    /// # Errors
    /// If the process cannot open more files.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &end, EventData::new_u64(END), EventFlags::IN)?;
        Ok(Poll { epoll, end })
    }

    /// Lets [`wait`](Poll::wait) return `token` once when the file is or becomes readable. From any thread.
    ///
    /// # Errors
    /// What `epoll_ctl(2)` reports. Regular files cannot be waited for: they are always readable.
    pub fn arm(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let (data, flags) = (EventData::new_u64(token), EventFlags::IN | EventFlags::ONESHOT);
        match epoll::modify(&self.epoll, fd, data, flags) {
            Err(Errno::NOENT) => Ok(epoll::add(&self.epoll, fd, data, flags)?),
            other => Ok(other?),
        }
    }

    /// Makes [`wait`](Poll::wait) return `false` from now on. From any thread.
    ///
    /// # Errors
    /// What `write(2)` reports.
    pub fn end(&self) -> io::Result<()> {
        rustix::io::write(self.end.as_fd(), &1u64.to_ne_bytes())?;
        Ok(())
    }

    /// Waits for files, and replaces the content of `ready` with the tokens of readable ones. Returns `false`
    /// after [`end`](Poll::end).
    ///
    /// # Errors
    /// What `epoll_wait(2)` reports.
    pub fn wait(&self, ready: &mut Vec<u64>) -> io::Result<bool> {
        let mut events = Vec::with_capacity(16);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        ready.clear();
        ready.extend(events.iter().map(|event| event.data.u64()));
        Ok(!ready.contains(&END))
    }
}
