//! The files of a machine: its `/proc` and `/sys`, or a copy of them, or made-up ones.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// More of a file is not read: the largest honest one is `/proc/interrupts` of a machine with many cores.
pub const MOST_BYTES: u64 = 4 << 20;
/// More entries of a folder are not looked at.
pub const MOST_ENTRIES: usize = 1 << 16;

/// Files by their path without the slash in front: `proc/cmdline`.
///
/// Everything that is known of a machine comes through here, so a test can be any machine, also one that lies.
pub trait Tree {
    /// The content of a file, [`MOST_BYTES`] at most.
    ///
    /// # Errors
    /// What the kernel says.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The names in a folder, sorted, [`MOST_ENTRIES`] at most.
    ///
    /// # Errors
    /// What the kernel says.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
}

/// The files below a folder: `/` for this machine.
#[derive(Debug, Clone)]
pub struct Root {
    folder: PathBuf,
}

impl Root {
    /// With the `proc`, `sys`, `etc` and `boot` in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Root { folder: folder.into() }
    }

    /// Whether it is the machine that this runs on.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.folder == Path::new("/")
    }

    /// Where a file is.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }
}

impl Tree for Root {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // A pipe in the place of a file gives nothing at once, and not for ever.
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        let flags = i32::try_from(flags).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.path(path))?;
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.path(path))?.take(MOST_ENTRIES);
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        Ok(names)
    }
}
