//! Atomic replacement of a file: no reader sees a part of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces the content of `path` with `bytes`: writes a temporary file in the same folder, flushes it to the
/// disk and renames it. On an error the temporary file is removed and the old content is kept.
///
/// A symbolic link is followed. A path that is not a regular file (`/dev/stdout`, a pipe) is written to
/// directly, because renaming would replace it with a file.
///
/// # Errors
///
/// What the kernel reports; the message names the path.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |file| file.write_all(bytes))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let target = match fs::metadata(path) {
        Ok(found) if !found.is_file() => return write(&mut OpenOptions::new().write(true).open(path)?),
        Ok(_) => fs::canonicalize(path)?,
        Err(_) => path.to_owned(),
    };
    let mut temporary = Temporary::beside(&target)?;
    write(&mut temporary.file)?;
    temporary.file.sync_all()?;
    temporary.become_file(&target)
}

/// A file that removes itself unless it was renamed.
struct Temporary {
    file: File,
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    fn beside(target: &Path) -> io::Result<Self> {
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
        let mut attempt = 0_u32;
        loop {
            // The number tells apart two threads of this process, and remains of a dead process.
            let temporary = format!(".{}.{}.{attempt}.tmp", name.to_string_lossy(), std::process::id());
            let path = target.with_file_name(temporary);
            match File::create_new(&path) {
                Ok(file) => return Ok(Self { file, path, renamed: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn become_file(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // The earlier error is the one to report; a file that cannot be removed stays hidden.
            let _left_behind = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_made_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        for text in ["a longer first text", "second"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(folder.path()), ["out.json"]);
        }
    }

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        fs::write(&path, "before").unwrap();
        let full = |file: &mut File| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert_eq!(replace_with(&path, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn a_stale_temporary_file_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let stale = format!(".out.json.{}.0.tmp", std::process::id());
        fs::write(folder.path().join(&stale), "").unwrap();
        replace(&folder.path().join("out.json"), b"x").unwrap();
        assert_eq!(names(folder.path()), [stale.as_str(), "out.json"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "before").unwrap();
        symlink("file", &link).unwrap();
        replace(&link, b"after").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn errors_name_the_path() {
        for (path, kind) in [
            ("/nowhere/at/all/out.json", io::ErrorKind::NotFound),
            ("/dev/full", io::ErrorKind::StorageFull),
            ("/proc", io::ErrorKind::IsADirectory),
        ] {
            let error = replace(Path::new(path), b"x").unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().starts_with(path), "{error}");
        }
    }
}
