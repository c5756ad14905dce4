//! Files whose identity stays theirs: which file a name stands for, whatever happens to the name.

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A file that was found under a name, kept from the moment it was found until this is dropped.
///
/// Device and inode number tell files apart only while both exist: the file system gives the number of a
/// deleted file to the next new one. A held file keeps its number, even without a name, so two held files
/// with one identity are one file. Holding reads nothing, needs no permission for the file itself and does
/// not wait for the other end of a pipe.
///
/// ```
/// use onbeat_os::file::HeldFile;
/// let name = std::env::temp_dir().join(format!("onbeat-held-{}", std::process::id()));
/// std::fs::write(&name, "first")?;
/// let first = HeldFile::open(&name)?;
/// assert_eq!(first.identity(), HeldFile::open(&name)?.identity());
/// std::fs::remove_file(&name)?;
/// std::fs::write(&name, "second")?;
/// assert_ne!(first.identity(), HeldFile::open(&name)?.identity());
/// # std::fs::remove_file(&name)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct HeldFile {
    identity: (u64, u64),
    is_regular: bool,
    _descriptor: OwnedFd,
}

impl HeldFile {
    /// Holds the file of this name, after following links.
    ///
    /// # Errors
    /// Those of `open(2)` with `O_PATH`: there is no such file, a folder of the path may not be searched, or
    /// the process has no file descriptor left.
    pub fn open(path: &Path) -> io::Result<Self> {
        let descriptor = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let found = fstat(&descriptor)?;
        Ok(HeldFile {
            identity: (found.st_dev, found.st_ino),
            is_regular: FileType::from_raw_mode(found.st_mode) == FileType::RegularFile,
            _descriptor: descriptor,
        })
    }

    /// Device and inode number. No other file has both while this one is held.
    #[must_use]
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Whether it is a regular file: not a folder, device, pipe or socket.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }
}
