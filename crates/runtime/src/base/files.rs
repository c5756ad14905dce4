//! Which files a process reads and which it replaces, so that no run destroys its own input.

use crate::Error;
use onbeat_os::file::HeldFile;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that is in use by this process, until this is dropped.
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

struct Used {
    number: u64,
    /// The file itself, if it exists. While it is held, no other file can get its inode number and be refused
    /// for it.
    file: Option<HeldFile>,
    /// The path with its links followed, as far as it exists.
    path: PathBuf,
    replaces: bool,
    by: String,
    /// Somebody else wanted the file too, and was refused.
    contested: bool,
}

struct All {
    next: u64,
    used: Vec<Used>,
}

static ALL: Mutex<All> = Mutex::new(All { next: 0, used: Vec::new() });

fn all() -> MutexGuard<'static, All> {
    // No code that holds the lock leaves it half changed.
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileUse {
    /// `by` will read `path`.
    ///
    /// # Errors
    /// When somebody else in this process will replace it.
    pub fn reading(path: &Path, by: impl Into<String>) -> Result<Self, Error> {
        Self::new(path, false, by.into())
    }

    /// `by` will replace the file at `path`, or create it.
    ///
    /// # Errors
    /// When somebody else in this process reads it, or will replace it too.
    pub fn replacing(path: &Path, by: impl Into<String>) -> Result<Self, Error> {
        Self::new(path, true, by.into())
    }

    /// Whether a second use of the file was refused. A user that has not replaced the file yet should leave
    /// it as it is.
    pub fn is_contested(&self) -> bool {
        all().used.iter().any(|used| used.number == self.number && used.contested)
    }

    fn new(path: &Path, replaces: bool, by: String) -> Result<Self, Error> {
        let file = HeldFile::open(path).ok();
        // Devices and pipes are not replaced, and any number may use them.
        if file.as_ref().is_some_and(|file| !file.is_regular()) {
            return Ok(FileUse { number: u64::MAX });
        }
        let identity = file.as_ref().map(HeldFile::identity);
        let whole = whole(path);
        let mut all = all();
        let same = |used: &&Used| {
            let is_same = used.path == whole
                || identity.is_some() && used.file.as_ref().map(HeldFile::identity) == identity;
            is_same && (replaces || used.replaces)
        };
        if let Some(other) = all.used.iter_mut().find(|used| same(&&**used)) {
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
        let number = all.next;
        all.next += 1;
        all.used.push(Used { number, file, path: whole, replaces, by, contested: false });
        Ok(FileUse { number })
    }
}

impl Drop for FileUse {
    fn drop(&mut self) {
        all().used.retain(|used| used.number != self.number);
    }
}

/// The path from the root, with the links of its folder followed.
fn whole(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name))
}
