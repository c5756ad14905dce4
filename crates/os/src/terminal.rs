//! A terminal that gives every key at once and shows none of them, until it is given back.

use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcsetattr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

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

fn terminal(own: Option<&OwnedFd>) -> BorrowedFd<'_> {
    own.map_or(stdin(), AsFd::as_fd)
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _gone = tcsetattr(terminal(self.own.as_ref()), OptionalActions::Now, &self.before);
    }
}
