//! A terminal that gives every key at once and shows none of them, until it is given back.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcsetattr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// What turns a key into a stop of the process (`termios(3)`): a stopped one would keep the terminal as it is.
const STOPPING: [SpecialCodeIndex; 2] = [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT];

/// Holds the terminal so; dropping it gives the terminal back as it was.
///
/// Ctrl-C stays what it is: `SIGINT`, see [`signal`](crate::signal). Ctrl-Z and Ctrl-\ become keys like others.
/// After `SIGKILL` nobody gives it back: the command `reset` does.
#[derive(Debug)]
pub struct KeyMode {
    /// Where it is not stdin.
    own: Option<OwnedFd>,
    before: Termios,
}

impl KeyMode {
    /// Of the terminal that stdin is, or else of the one that the process was started from.
    ///
    /// # Errors
    /// There is no terminal, or it refuses.
    pub fn take() -> io::Result<Self> {
        if isatty(stdin()) {
            return Self::of(None);
        }
        Self::of(Some(open("/dev/tty", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Of this terminal; stdin where there is none.
    ///
    /// # Errors
    /// It is no terminal, or it refuses.
    pub fn of(own: Option<OwnedFd>) -> io::Result<Self> {
        let before = tcgetattr(terminal(own.as_ref()))?;
        let mut keys = before.clone();
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        for code in STOPPING {
            // 0 is no key (_POSIX_VDISABLE).
            keys.special_codes[code] = 0;
        }
        // A read gives what is there, from one byte on.
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal(own.as_ref()), OptionalActions::Now, &keys)?;
        Ok(KeyMode { own, before })
    }
}

impl KeyMode {
    /// Its end to wait at, without the terminal's modes.
    ///
    /// # Errors
    /// What the kernel says to another descriptor.
    pub fn keys(&self) -> io::Result<Keys> {
        Ok(Keys(terminal(self.own.as_ref()).try_clone_to_owned()?))
    }
}

/// Where keys come from.
#[derive(Debug)]
pub struct Keys(OwnedFd);

/// What has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// A key, or more.
    Keys,
    /// None.
    Nothing,
    /// The terminal was closed: no key will come any more, and a read gives nothing without end.
    Gone,
}

impl Keys {
    /// Waits for a key, for so long at most; a signal ends it early.
    #[must_use]
    pub fn wait(&self, within: Duration) -> Waited {
        let mut files = [PollFd::new(&self.0, PollFlags::IN)];
        let timeout = Timespec::try_from(within).ok();
        match poll(&mut files, timeout.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Waited::Nothing,
            Ok(_) if files[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => {
                Waited::Gone
            }
            Ok(_) => Waited::Keys,
            Err(_) => Waited::Gone,
        }
    }
}

fn terminal(own: Option<&OwnedFd>) -> BorrowedFd<'_> {
    own.map_or(stdin(), AsFd::as_fd)
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _gone = tcsetattr(terminal(self.own.as_ref()), OptionalActions::Now, &self.before);
    }
}
