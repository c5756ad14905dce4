//! Why a sound card cannot be used.

use std::fmt;
use std::io;

/// Why a device cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SoundError {
    /// The number of a system error, the function of ALSA's library that returned it, and what the library
    /// said.
    System {
        /// As in `errno(3)`.
        errno: i32,
        /// Name of the function.
        during: &'static str,
        /// Lines of the library; often empty.
        said: String,
    },
    /// A setting that the device does not have.
    Setting {
        /// Its name.
        what: &'static str,
        /// Value that was asked for.
        asked: String,
        /// Values that the device has.
        possible: String,
    },
}

impl SoundError {
    /// The number of the system's error.
    pub fn errno(&self) -> Option<i32> {
        match self {
            SoundError::System { errno, .. } => Some(*errno),
            SoundError::Setting { .. } => None,
        }
    }

    /// Whether the device stopped because its buffer was full, or empty.
    pub fn is_xrun(&self) -> bool {
        self.errno() == Some(libc::EPIPE)
    }

    /// Whether the machine slept meanwhile.
    pub fn is_suspended(&self) -> bool {
        self.errno() == Some(libc::ESTRPIPE)
    }

    /// Whether nothing can be read or written now.
    pub fn is_later(&self) -> bool {
        self.errno() == Some(libc::EAGAIN)
    }
}

impl From<alsa::Error> for SoundError {
    fn from(error: alsa::Error) -> Self {
        SoundError::System { errno: error.errno().abs(), during: error.func(), said: String::new() }
    }
}

impl fmt::Display for SoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SoundError::System { errno, during, .. } => {
                write!(f, "{} ({during})", io::Error::from_raw_os_error(*errno))
            }
            SoundError::Setting { what, asked, possible } => {
                write!(f, "{what} {asked} was asked for, and it has {possible}")
            }
        }
    }
}
