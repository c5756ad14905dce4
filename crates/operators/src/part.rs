//! A file that gets its final name only once it is complete.

use onbeat_runtime::{Context, Error, FileUse};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An output file, written as "NAME.part" in the folder of NAME and renamed when complete. Dropping it
/// earlier removes it; after a failure, [`keep`](PartFile::keep) leaves it.
///
/// The file is locked, so that two operators or two runs with the same file name find out at the start. A
/// partial file of a killed process is overwritten.
pub(crate) struct PartFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
    finished: bool,
    _use: FileUse,
}

/// Answer of a file sink to the question whether it can be restarted after a failure: an error.
pub(crate) fn not_restartable() -> Result<(), Error> {
    Err(Error::new(
        "its file would start over, and the data already written would be lost; set `on_error = \"stop\"` or \
         `\"isolate\"`",
    ))
}

impl PartFile {
    /// Creates the file, and its folders if they are missing.
    pub fn create(target: &Path) -> Result<Self, Error> {
        let cannot = |error| cannot("create", target, error);
        // `Path::file_name` would take the folder's name for it.
        let is_folder = target.as_os_str().as_encoded_bytes().ends_with(b"/");
        let Some(name) = target.file_name().filter(|_| !is_folder) else {
            let shown = target.display();
            return Err(Error::new(format!("cannot create `{shown}`: the path has no file name; add one")));
        };
        let _use = FileUse::replacing(target, "an operator")?;
        if fs::metadata(target).is_ok_and(|found| !found.is_file()) {
            return Err(Error::new(format!(
                "cannot create {}: the existing entry is not a regular file; choose another name",
                target.display()
            )));
        }
        let mut part_name = name.to_os_string();
        part_name.push(".part");
        let path = target.with_file_name(part_name);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(cannot)?;
        }
        loop {
            // Opening must not wait for the reader of a pipe of that name, nor follow a link to another
            // user's file.
            let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
            let options =
                OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags).clone();
            let file = options.open(&path).map_err(cannot)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::new(format!(
                        "cannot create {}: another operator or another run is writing it; give each its own \
                         file name",
                        target.display()
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
            // Between opening and locking, the former writer may have renamed the file: then it is complete
            // and not ours.
            let ours = file.metadata().map_err(cannot)?;
            if !ours.is_file() {
                return Err(Error::new(format!(
                    "cannot create {}: {} exists and is not a file; remove it",
                    target.display(),
                    path.display()
                )));
            }
            if fs::metadata(&path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
                file.set_len(0).map_err(cannot)?;
                return Ok(PartFile { file, path, target: target.to_owned(), finished: false, _use });
            }
        }
    }

    /// Error of a write that failed.
    pub fn cannot_write(&self, error: io::Error) -> Error {
        cannot("write", &self.target, error)
    }

    /// Handle to write to; all handles share one position.
    pub fn handle(&self) -> Result<File, Error> {
        self.file.try_clone().map_err(|error| self.cannot_write(error))
    }

    /// Final name of the file.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Leaves the incomplete file as "NAME.part" after a failure, and notes that. An empty file is removed.
    pub fn keep(mut self, cx: &mut Context) {
        if self.file.metadata().is_ok_and(|found| found.len() > 0) {
            self.finished = true;
            cx.note(format!("{} has the data from before the failure", self.path.display()));
        }
    }

    /// Completes the file: syncs it to disk, if the run wants that, and renames it.
    pub fn finish(mut self, syncs: bool) -> Result<(), Error> {
        if syncs {
            self.file.sync_all().map_err(|error| self.cannot_write(error))?;
        }
        fs::rename(&self.path, &self.target).map_err(|error| cannot("name", &self.target, error))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.finished {
            // The error that led here is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    Error::with_source(format!("cannot {what} {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn is_there_when_complete_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/b/out.wav");
        for text in ["a longer first text", "second"] {
            let part = PartFile::create(&target).unwrap();
            part.handle().unwrap().write_all(text.as_bytes()).unwrap();
            assert_ne!(fs::read_to_string(&target).ok().as_deref(), Some(text));
            part.finish(false).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), text);
        }
        drop(PartFile::create(&target).unwrap());
        assert_eq!(fs::read_to_string(&target).unwrap(), "second");
        assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        let first = PartFile::create(&target).unwrap();
        let error = PartFile::create(&target).err().unwrap().to_string();
        assert!(error.contains("give them different files"), "{error}");
        first.finish(false).unwrap();
        assert!(target.is_file());
        fs::write(folder.path().join("out.part"), "left by a killed process").unwrap();
        PartFile::create(&target).unwrap().finish(false).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"");
    }
}
