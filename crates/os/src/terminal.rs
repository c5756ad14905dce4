//! Key mode of a terminal: it returns every key at once and echoes none, until it is restored.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcsetattr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Control characters that stop the process (`termios(3)`): a stopped process would leave the terminal in key
/// mode.
const STOPPING: [SpecialCodeIndex; 2] = [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT];

/// Keeps the terminal in key mode; dropping it restores the terminal.
///
/// Ctrl-C still sends `SIGINT`, see [`signal`](crate::signal). Ctrl-Z and Ctrl-\ become ordinary keys. After
/// `SIGKILL` the terminal stays in key mode until the command `reset`.
#[derive(Debug)]
pub struct KeyMode {
    /// The terminal, if it is not stdin.
    own: Option<OwnedFd>,
    before: Termios,
}

impl KeyMode {
    /// Uses stdin if it is a terminal, otherwise the controlling terminal of the process.
    ///
    /// # Errors
    /// If there is no terminal, or it refuses.
    pub fn take() -> io::Result<Self> {
        if isatty(stdin()) {
            return Self::of(None);
        }
        Self::of(Some(open("/dev/tty", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Uses this terminal; stdin for `None`.
    ///
    /// # Errors
    /// If it is not a terminal, or refuses.
    pub fn of(own: Option<OwnedFd>) -> io::Result<Self> {
        let before = tcgetattr(terminal(own.as_ref()))?;
        let mut keys = before.clone();
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        for code in STOPPING {
            // 0 disables the character (_POSIX_VDISABLE).
            keys.special_codes[code] = 0;
        }
        // A read returns what is there, from one byte on.
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal(own.as_ref()), OptionalActions::Now, &keys)?;
        Ok(KeyMode { own, before })
    }
}

impl KeyMode {
    /// Returns a handle to wait for keys, without the terminal's modes.
    ///
    /// # Errors
    /// What the kernel reports for another descriptor.
    pub fn keys(&self) -> io::Result<Keys> {
        Ok(Keys(terminal(self.own.as_ref()).try_clone_to_owned()?))
    }
}

/// Source of keys.
#[derive(Debug)]
pub struct Keys(OwnedFd);

/// Result of waiting for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// At least one key.
    Keys,
    /// No key.
    Nothing,
    /// The terminal was closed: no more keys will come, and every read returns nothing.
    Gone,
}

impl Keys {
    /// Waits for a key, at most for this time; a signal ends the wait early.
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
        // A closed terminal needs no restoring.
        let _gone = tcsetattr(terminal(self.own.as_ref()), OptionalActions::Now, &self.before);
    }
}
