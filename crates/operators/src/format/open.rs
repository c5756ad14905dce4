//! Files to read: only regular ones, and never one that waits.

use onbeat_runtime::{Error, FileUse};
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Most bytes of a file that is read as text.
const MOST_TEXT: u64 = 256 << 20;

/// Opens a file, says how many bytes it has, and that this process reads it.
pub(crate) fn open(path: &Path) -> Result<(File, u64, FileUse), Error> {
    if path.as_os_str().is_empty() {
        return Err(Error::new("cannot open a file without a name: its path is empty"));
    }
    // Before opening, because opening a pipe waits for its writer.
    check_type(path, fs::metadata(path).map_err(|error| cannot("open", path, error))?.file_type())?;
    let file = File::open(path).map_err(|error| cannot("open", path, error))?;
    // Again: something else may have taken its name in between.
    let found = file.metadata().map_err(|error| cannot("open", path, error))?;
    check_type(path, found.file_type())?;
    Ok((file, found.len(), FileUse::reading(path, "an operator")?))
}

/// Reads a whole file of text.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let (mut file, bytes, _use) = open(path)?;
    if bytes > MOST_TEXT {
        return Err(Error::new(format!(
            "cannot read {}: it has {bytes} bytes, and {MOST_TEXT} is the limit for text; is it another file?",
            path.display()
        )));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| cannot("read", path, error))?;
    Ok(text)
}

fn check_type(path: &Path, found: FileType) -> Result<(), Error> {
    if found.is_file() {
        return Ok(());
    }
    let what = if found.is_dir() {
        "a folder"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(Error::new(format!("cannot open {}: it is no file but {what}; give a regular file", path.display())))
}

/// What could not be done with which file.
pub(super) fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    Error::with_source(format!("cannot {what} {}", path.display()), error)
}
