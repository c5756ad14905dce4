//! Which files are readable without blocking, and waiting for that (`epoll(7)`).

use crate::clock;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Token of the bell; no file has it.
const BELL: u64 = u64::MAX;

/// Most events that one [`look`](Poll::look) takes with one system call.
const EVENTS: usize = 16;

/// Waits from this length on have two parts.
const LONG_NS: u64 = 10_000_000;

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

/// Event that a descriptor is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data, the end of the file, or an error.
    Read,
    /// Room for data, or an error.
    Write,
}

/// Descriptors that one thread at a time waits for. Each [`arm`](Poll::arm) waits for one event of one
/// descriptor. Any thread can [`ring`](Poll::ring) to end the wait.
///
/// ```
/// use onbeat_os::poll::{Interest, Poll};
/// use std::io::Write;
/// use std::os::fd::AsFd;
///
/// let (reader, mut writer) = std::io::pipe()?;
/// let poll = Poll::new()?;
/// assert!(poll.arm(reader.as_fd(), Interest::Read, 7)?);
/// writer.write_all(b"x")?;
/// assert!(poll.wait(None)?);
/// let mut ready = Vec::new();
/// assert!(!poll.look(|token| ready.push(token))?);
/// assert_eq!(ready, [7]);
/// poll.ring();
/// assert!(poll.wait(None)?);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    bell: OwnedFd,
}

impl Poll {
    /// Makes an empty set of descriptors.
    ///
    /// # Errors
    /// If the process cannot open more files.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Poll { epoll, bell })
    }

    /// Lets [`look`](Poll::look) report `token` once when the descriptor is or becomes ready. From any
    /// thread. Replaces what was armed for this descriptor before. Returns false if the descriptor cannot be
    /// waited for because it is always ready, as regular files are.
    ///
    /// # Errors
    /// What `epoll_ctl(2)` reports.
    pub fn arm(&self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> io::Result<bool> {
        let wanted = match interest {
            Interest::Read => EventFlags::IN | EventFlags::RDHUP,
            Interest::Write => EventFlags::OUT,
        };
        let (data, flags) = (EventData::new_u64(token), wanted | EventFlags::ONESHOT);
        // A descriptor that was closed has left the set; a new one may have its number.
        let armed = match epoll::modify(&self.epoll, fd, data, flags) {
            Err(Errno::NOENT) => epoll::add(&self.epoll, fd, data, flags),
            other => other,
        };
        let armed = match armed {
            // Another thread has added it meanwhile.
            Err(Errno::EXIST) => epoll::modify(&self.epoll, fd, data, flags),
            other => other,
        };
        match armed {
            Ok(()) => Ok(true),
            Err(Errno::PERM) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the present or the next [`wait`](Poll::wait) return. From any thread.
    pub fn ring(&self) {
        // The only failure is a count at its limit, and then the bell rings already.
        let _ = rustix::io::write(self.bell.as_fd(), &1u64.to_ne_bytes());
    }

    /// Takes back what [`ring`](Poll::ring) did. Only the thread that waits calls this.
    pub fn silence(&self) {
        // The only failure is a bell that does not ring.
        let _ = rustix::io::read(self.bell.as_fd(), &mut [0u8; 8]);
    }

    /// Waits until a descriptor is ready, the bell rings, or `CLOCK_MONOTONIC` reads `deadline_ns`. Returns
    /// false after the deadline. A signal ends the wait too.
    ///
    /// # Errors
    /// What `ppoll(2)` reports.
    pub fn wait(&self, deadline_ns: Option<u64>) -> io::Result<bool> {
        loop {
            let left_ns = deadline_ns.map(|deadline_ns| deadline_ns.saturating_sub(clock::monotonic_ns()));
            // The kernel may end a wait of a normal thread late by a thousandth (0.5 % if it is nice): a long
            // wait ends early by more than that, and is followed by a short one.
            let is_last = left_ns.is_none_or(|left_ns| left_ns < LONG_NS);
            let timeout = left_ns.map(|left_ns| if is_last { left_ns } else { left_ns - left_ns / 128 });
            let timeout = timeout.map(clock::timespec);
            let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(0) if !is_last => {}
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Calls `ready` with the tokens of all descriptors that are ready, without waiting. Returns whether the
    /// bell rings. Any thread may look, so the bell is not silenced: it may ring for another one.
    ///
    /// # Errors
    /// What `epoll_wait(2)` reports.
    pub fn look(&self, mut ready: impl FnMut(u64)) -> io::Result<bool> {
        let mut rings = false;
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        loop {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            match epoll::wait(&self.epoll, &mut events, Some(&now)) {
                Ok((events, _)) => {
                    let count = events.len();
                    for event in events {
                        match event.data.u64() {
                            BELL => rings = true,
                            token => ready(token),
                        }
                    }
                    if count < EVENTS {
                        return Ok(rings);
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The set as a descriptor of another one: readable while a descriptor of it is ready, or the bell rings.
impl AsFd for Poll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
