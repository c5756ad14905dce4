//! Files that a process reads or replaces, so that no run destroys its own input.

use crate::Error;
use onbeat_os::file::HeldFile;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mark that this process uses a file, until the mark is dropped.
///
/// [`reading`](FileUse::reading) notes that a file is read, [`replacing`](FileUse::replacing) that it will be
/// replaced. A file cannot be both, and cannot be replaced by two.
///
/// ```
/// use onbeat_runtime::FileUse;
/// let recording = std::env::temp_dir().join(format!("onbeat-doc-{}", std::process::id()));
/// std::fs::write(&recording, "samples")?;
/// let reading = FileUse::reading(&recording, "operator `iq`")?;
/// let error = FileUse::replacing(&recording, "operator `audio`").unwrap_err();
/// assert!(error.to_string().contains("operator `iq` reads it"), "{error}");
/// drop(reading);
/// assert!(FileUse::replacing(&recording, "operator `audio`").is_ok());
/// # std::fs::remove_file(&recording)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the file is in use until this is dropped"]
pub struct FileUse {
    number: u64,
}

/// The entry of one [`FileUse`].
struct FileEntry {
    number: u64,
    /// The file itself, if it exists. While it is held, no other file can get its inode number and be refused
    /// for it.
    file: Option<HeldFile>,
    /// The path from the root, with the links of its folder followed.
    path: PathBuf,
    replaces: bool,
    by: String,
    /// Whether another user of the file was refused.
    contested: bool,
}

struct FileTable {
    next: u64,
    entries: Vec<FileEntry>,
}

static FILES: Mutex<FileTable> = Mutex::new(FileTable { next: 0, entries: Vec::new() });

fn files() -> MutexGuard<'static, FileTable> {
    // No code that holds the lock leaves it half changed.
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileUse {
    /// Marks that `by` will read `path`. `by` is for error texts, such as "operator `iq`".
    ///
    /// # Errors
    /// If another part of this process will replace the file.
    pub fn reading(path: &Path, by: impl Into<String>) -> Result<Self, Error> {
        Self::new(path, false, by.into())
    }

    /// `by` will replace the file at `path`, or create it.
    ///
    /// # Errors
    /// If another part of this process reads the file, or will replace it too.
    pub fn replacing(path: &Path, by: impl Into<String>) -> Result<Self, Error> {
        Self::new(path, true, by.into())
    }

    /// Whether a second use of the file was refused. A user that has not replaced the file yet should leave
    /// it as it is.
    pub fn is_contested(&self) -> bool {
        files().entries.iter().any(|entry| entry.number == self.number && entry.contested)
    }

    fn new(path: &Path, replaces: bool, by: String) -> Result<Self, Error> {
        let file = HeldFile::open(path).ok();
        // Devices and pipes are not replaced, and any number may use them.
        if file.as_ref().is_some_and(|file| !file.is_regular()) {
            return Ok(FileUse { number: u64::MAX });
        }
        let identity = file.as_ref().map(HeldFile::identity);
        let absolute = absolute(path);
        let mut files = files();
        let conflicts = |entry: &&FileEntry| {
            let is_same = entry.path == absolute
                || identity.is_some() && entry.file.as_ref().map(HeldFile::identity) == identity;
            is_same && (replaces || entry.replaces)
        };
        if let Some(other) = files.entries.iter_mut().find(|entry| conflicts(&&**entry)) {
            other.contested = true;
            let does = |replaces| if replaces { "writes it" } else { "reads it" };
            return Err(Error::new(format!(
                "{}: {} {} and {by} {}, in one run; give them different files",
                path.display(),
                other.by,
                does(other.replaces),
                does(replaces),
            )));
        }
        let number = files.next;
        files.next += 1;
        files.entries.push(FileEntry { number, file, path: absolute, replaces, by, contested: false });
        Ok(FileUse { number })
    }
}

impl Drop for FileUse {
    fn drop(&mut self) {
        files().entries.retain(|entry| entry.number != self.number);
    }
}

/// Returns the path from the root, with the links of its folder followed.
fn absolute(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name))
}
