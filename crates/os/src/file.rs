//! A file as bytes in memory, read-only.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// A regular file, mapped read-only (`mmap(2)`); dereferences to its bytes.
///
/// Opening costs the same for any size: pages are read on first touch, which is a page fault. Touch
/// them before the run where that matters.
///
/// # The file must stay as it is
///
/// Its length is the length at opening. While it is mapped no process, this one included, may write
/// to the file or shorten it:
///
/// - after a **truncation** a read past the new end raises **SIGBUS**, which ends the process;
/// - after a write the slice shows the new bytes although Rust takes them for unchanging.
///
/// The kernel offers no lock that would prevent either. So map recordings, which are written once,
/// and *read* files that others may be changing. Replacing a file by renaming a new one over it is
/// fine: the mapping keeps the old one.
///
/// # Example
///
/// ```
/// let path = std::env::current_exe()?;
/// let program = onbeat_os::MappedFile::open(&path)?;
/// assert_eq!(&program[1..4], b"ELF");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
}

impl MappedFile {
    /// Opens and maps the file at `path`. An empty file gives an empty slice.
    ///
    /// # Errors
    ///
    /// What opening or mapping gives, and `InvalidInput` for what is no regular file (a folder, a
    /// pipe, a device; files of `/proc` count as regular and map as empty). The message names the path.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        // Before opening, because opening a pipe waits for its writer.
        if !path.metadata().map_err(named)?.is_file() {
            let message = format!("{}: not a regular file, so it cannot be mapped", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let file = File::open(path).map_err(named)?;
        // SAFETY: the mapping is private to this value and read-only, so nothing in this program
        // writes through it. That nobody changes the file underneath cannot be enforced on Linux; it
        // is the condition in the type's documentation, and breaking it is a fault of the user's
        // set-up (SIGBUS, or bytes that change), not of the calling code.
        let map = unsafe { Mmap::map(&file) }.map_err(named)?;
        Ok(Self { map })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_bytes_are_those_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        for length in [0, 1, 4096, 10_001] {
            let path = folder.path().join(format!("{length}.bin"));
            let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
            fs::write(&path, &bytes).unwrap();
            assert_eq!(&*MappedFile::open(&path).unwrap(), &bytes[..]);
        }
    }

    #[test]
    fn a_file_that_was_replaced_is_still_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&old, "old").unwrap();
        fs::write(&new, "other").unwrap();
        let map = MappedFile::open(&old).unwrap();
        fs::rename(&new, &old).unwrap();
        assert_eq!(&*map, b"old");
    }

    #[test]
    fn errors_name_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.bin");
        for (path, kind) in [
            (missing.as_path(), io::ErrorKind::NotFound),
            (folder.path(), io::ErrorKind::InvalidInput),
            (Path::new("/dev/null"), io::ErrorKind::InvalidInput),
        ] {
            let error = MappedFile::open(path).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
        }
    }
}
