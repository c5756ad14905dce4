//! Opens files for reading: only regular ones, and without blocking.

use super::pipe;
use onbeat_runtime::{Error, FileUse};
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Largest text file that is read, in bytes.
const MOST_TEXT: u64 = 256 << 20;

/// Opens a file, returns its size in bytes, and registers that this process reads it.
pub(crate) fn open(path: &Path) -> Result<(File, u64, FileUse), Error> {
    if path.as_os_str().is_empty() {
        return Err(Error::new("cannot open a file without a name: its path is empty"));
    }
    // Checked before opening, because opening a pipe waits for its writer.
    check_type(path, fs::metadata(path).map_err(|error| cannot("open", path, error))?.file_type())?;
    let file = File::open(path).map_err(|error| cannot("open", path, error))?;
    // Checked again: the name may have been replaced in between.
    let found = file.metadata().map_err(|error| cannot("open", path, error))?;
    check_type(path, found.file_type())?;
    Ok((file, found.len(), FileUse::reading(path, "an operator")?))
}

/// What a source plays.
pub(crate) struct OpenSource {
    pub file: File,
    /// Length in bytes; `None` for a pipe.
    pub bytes: Option<u64>,
    pub used: FileUse,
}

/// Opens a regular file or a pipe.
pub(crate) fn open_source(path: &Path) -> Result<OpenSource, Error> {
    if is_pipe(path) {
        return Ok(OpenSource {
            file: pipe::open(path)?,
            bytes: None,
            used: FileUse::reading(path, "an operator")?,
        });
    }
    let (file, bytes, used) = open(path)?;
    Ok(OpenSource { file, bytes: Some(bytes), used })
}

/// Whether this is a pipe, whose contents can be read only once.
pub(crate) fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Reads a whole text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let (mut file, bytes, _use) = open(path)?;
    if bytes > MOST_TEXT {
        return Err(Error::new(format!(
            "cannot read {}: it has {bytes} bytes, and {MOST_TEXT} is the limit for text; is it the right \
             file?",
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
    Err(Error::new(format!("cannot open {}: it is {what}; give a regular file", path.display())))
}

/// Error for an action that failed on a file.
pub(super) fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    Error::with_source(format!("cannot {what} {}", path.display()), error)
}

/// The first line of a file that begins like a text document. Samples hardly ever do: it is markup, or 256
/// bytes of printable characters.
pub(crate) fn first_text(path: &Path) -> Option<String> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut begin = [0; 256];
    let read = fs::File::open(path).and_then(|mut file| file.read(&mut begin)).ok()?;
    let text = std::str::from_utf8(&begin[..read]).ok()?;
    let start = text.trim_start();
    let is_markup = ["<!", "<?xml", "<html", "{\"", "HTTP/"]
        .iter()
        .any(|begin| start.get(..begin.len()).is_some_and(|found| found.eq_ignore_ascii_case(begin)));
    // Samples around a constant below 127 would be printable, but have no spaces between words.
    let has_words = text.split_whitespace().count() >= 10;
    let is_printable =
        read == begin.len() && has_words && text.chars().all(|c| !c.is_control() || c.is_whitespace());
    let line: String = start.lines().next()?.chars().take(40).collect();
    ((is_markup || is_printable) && !line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::first_text;

    #[test]
    fn texts_are_told_from_samples() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cu8");
        let first = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            first_text(&path)
        };
        assert_eq!(first(b"<!doctype HTML>\n<p>").as_deref(), Some("<!doctype HTML>"));
        let words = "time, level, and so on in every line\n".repeat(20);
        assert_eq!(first(words.as_bytes()).as_deref(), Some("time, level, and so on in every line"));
        // Silence, a weak signal around a constant, and noise.
        let weak: Vec<u8> = (0..1000u32).map(|n| 118 + (n * 7 % 5) as u8).collect();
        let noise: Vec<u8> = (0..1000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for samples in [&[127; 1000][..], &weak, &noise, &[], &[0; 10]] {
            assert_eq!(first(samples), None);
        }
        assert_eq!(first_text(folder.path()), None, "a folder");
    }
}
