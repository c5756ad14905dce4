//! The files of a machine: its `/proc` and `/sys`, a copy of them, or made-up ones.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Limit on the bytes read of a file. The largest legitimate file is `/proc/interrupts` on a machine with
/// many cores.
pub const MOST_BYTES: u64 = 4 << 20;
/// Limit on the entries read of a folder.
pub const MOST_ENTRIES: usize = 1 << 16;

/// Files by their path without the leading slash: `proc/cmdline`.
///
/// All knowledge of a machine comes through this trait, so a test can play any machine, even one with false
/// files.
pub trait Tree {
    /// Reads a file, at most [`MOST_BYTES`].
    ///
    /// # Errors
    /// What the kernel reports.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Lists the names in a folder, sorted, at most [`MOST_ENTRIES`].
    ///
    /// # Errors
    /// What the kernel reports.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
}

/// The files below a folder: `/` for this machine.
#[derive(Debug, Clone)]
pub struct Root {
    folder: PathBuf,
}

impl Root {
    /// Uses the `proc`, `sys`, `etc` and `boot` in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Root { folder: folder.into() }
    }

    /// Whether this is the machine that the program runs on.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.folder == Path::new("/")
    }

    /// Returns the full path of a file.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }
}

impl Tree for Root {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // // A pipe instead of a file returns nothing at once, and does not block.
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
