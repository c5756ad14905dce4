//! The undo file: all old values, written before the first change.

use super::TuneError;
use crate::fact;
use crate::lists;
use crate::tree::Root;
use crate::tree::Tree;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Path of the undo file. It is on a memory file system, so it disappears at shutdown together with the
/// changes.
pub const FILE: &str = "run/onbeat/tune.undo.json";
const SCHEMA: &str = "onbeat.tune.undo";
const VERSION: u32 = 1;

/// Everything needed to restore a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    schema: String,
    version: u32,
    /// Boot to which the changes belong: a later boot has none of them.
    pub boot_id: String,
    /// Time of creation, since 1970-01-01 00:00 UTC.
    pub made_unix_ns: u64,
    /// Planned changes, in order.
    pub changes: Vec<TuneChange>,
}

/// A changed file or folder, with its old state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TuneChange {
    /// A file whose content is changed.
    File {
        /// Path without the leading slash.
        path: String,
        /// Old content, to the byte.
        old: String,
        /// Value that is written.
        new: String,
        /// Values that restore it, written one after the other.
        back: Vec<String>,
    },
    /// A control group folder that did not exist.
    Folder {
        /// Path without the leading slash.
        path: String,
    },
}

/// Result of undoing one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoOutcome {
    /// The old state is restored.
    Back,
    /// The old state was still in place.
    Untouched,
    /// Another program has changed it since, to this value; it is left alone.
    Foreign(String),
    /// It could not be restored.
    Failed(String),
}

impl Undo {
    /// Makes an undo file for these changes.
    #[must_use]
    pub fn new(boot_id: String, made_unix_ns: u64, changes: Vec<TuneChange>) -> Self {
        Undo { schema: SCHEMA.to_owned(), version: VERSION, boot_id, made_unix_ns, changes }
    }

    /// Reads the undo file; `None` if there is none.
    ///
    /// # Errors
    /// A file that cannot be read, belongs to another user, or is not an undo file.
    pub fn read(root: &Root) -> Result<Option<Self>, TuneError> {
        let path = root.path(FILE);
        let wrong = |why: String| {
            TuneError::new(
                format!("{}: {why}", path.display()),
                "inspect it, and remove it if it is not needed",
            )
        };
        let owner = match fs::metadata(&path) {
            Ok(metadata) => metadata.uid(),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(TuneError::new(format!("{}: {error}", path.display()), "run as root")),
        };
        let user = rustix::process::geteuid().as_raw();
        if owner != user {
            return Err(wrong(format!("it belongs to user {owner}, not to {user}, so it is not trusted")));
        }
        let bytes = root.read(FILE).map_err(|error| wrong(error.to_string()))?;
        let undo: Undo =
            serde_json::from_slice(&bytes).map_err(|error| wrong(format!("it is damaged: {error}")))?;
        if undo.schema != SCHEMA || undo.version != VERSION {
            return Err(wrong(format!(
                "it is `{}` version {}, not `{SCHEMA}` version {VERSION}",
                undo.schema, undo.version
            )));
        }
        match undo.changes.iter().find(|change| !is_ours(change.path())) {
            Some(change) => Err(wrong(format!(
                "it names `{}`, which is not a kernel setting",
                fact::short(change.path())
            ))),
            None => Ok(Some(undo)),
        }
    }

    /// Writes the undo file to disk, unless there is one already.
    ///
    /// # Errors
    /// If one exists, or it cannot be written: then nothing may be changed.
    pub fn write(&self, root: &Root) -> Result<PathBuf, TuneError> {
        let path = root.path(FILE);
        let wrong = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => TuneError::new(
                format!("{} exists: another process is applying changes", path.display()),
                "onbeat tune --undo undoes them",
            ),
            _ => TuneError::new(
                format!("{} cannot be written: {error}; without it nothing is changed", path.display()),
                "run as root",
            ),
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(wrong)?;
        let text = serde_json::to_string_pretty(self).expect("plain data") + "\n";
        let temporary = folder.join(format!(".tune.{}.tmp", std::process::id()));
        let written = (|| {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            // // A link instead of a rename: it fails if the file exists.
            fs::hard_link(&temporary, &path)
        })();
        let _gone = fs::remove_file(&temporary);
        written.map_err(wrong)?;
        Ok(path)
    }

    /// Keeps only the changes that could not be undone; removes the file if there are none.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn keep(&self, root: &Root, left: Vec<TuneChange>) -> io::Result<()> {
        let path = root.path(FILE);
        if left.is_empty() {
            return fs::remove_file(path);
        }
        let undo = Undo { changes: left, ..self.clone() };
        let text = serde_json::to_string_pretty(&undo).expect("plain data") + "\n";
        onbeat_trace::replace::replace(&path, text.as_bytes())
    }

    /// Undoes all changes, the last one first, and returns the result of each.
    #[must_use]
    pub fn back(&self, root: &Root) -> Vec<(TuneChange, UndoOutcome)> {
        self.changes.iter().rev().map(|change| (change.clone(), change.back(root))).collect()
    }
}

/// Whether a path is a kernel setting. No other file is written, whatever an undo file says.
pub(super) fn is_ours(path: &str) -> bool {
    let is_setting =
        path.starts_with("proc/sys/") || path.starts_with("proc/irq/") || path.starts_with("sys/");
    is_setting && !path.split('/').any(|part| part == ".." || part.is_empty())
}

impl TuneChange {
    /// Returns its file or folder.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            TuneChange::File { path, .. } | TuneChange::Folder { path } => path,
        }
    }

    fn back(&self, root: &Root) -> UndoOutcome {
        match self {
            TuneChange::Folder { path } => folder_back(root, path),
            // // The kernel removes the file with its folder.
            TuneChange::File { back, .. } if back.is_empty() => UndoOutcome::Untouched,
            TuneChange::File { path, old, new, back } => {
                let now = match read(root, path) {
                    Ok(now) => now,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return UndoOutcome::Untouched,
                    Err(error) => return UndoOutcome::Failed(error.to_string()),
                };
                if now == *old {
                    return UndoOutcome::Untouched;
                }
                // An empty file was about to be written when the program ended. (Kernel files are never
                // truncated.)
                let is_cut = now.is_empty() && !old.is_empty();
                if !is_cut && !holds(&now, new) && !back.iter().any(|value| holds(&now, value)) {
                    return UndoOutcome::Foreign(fact::short(now.trim()));
                }
                for value in back {
                    if let Err(error) = write(root, path, value) {
                        return UndoOutcome::Failed(error.to_string());
                    }
                }
                match read(root, path) {
                    Ok(now) if now == *old => UndoOutcome::Back,
                    Ok(now) => UndoOutcome::Failed(format!(
                        "it is now `{}` and was `{}`",
                        fact::short(now.trim()),
                        fact::short(old.trim())
                    )),
                    Err(error) => UndoOutcome::Failed(error.to_string()),
                }
            }
        }
    }
}

/// Removes a control group, which must have no threads and not be a partition.
fn folder_back(root: &Root, path: &str) -> UndoOutcome {
    if !root.path(path).exists() {
        return UndoOutcome::Untouched;
    }
    let _is_member = write(root, &format!("{path}/cpuset.cpus.partition"), "member");
    match fs::remove_dir(root.path(path)) {
        Ok(()) => UndoOutcome::Back,
        Err(error) => {
            UndoOutcome::Failed(format!("{error}: first move its threads to another group (cgroup.procs)"))
        }
    }
}

/// Reads a setting, to the byte.
pub(super) fn read(root: &Root, path: &str) -> io::Result<String> {
    let bytes = root.read(path)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not a text"))
}

/// Writes a value with a line end: without one, some kernel files keep reading after the value.
pub(super) fn write(root: &Root, path: &str, value: &str) -> io::Result<()> {
    // // Never creates a file: a missing file is not a setting.
    let mut file = OpenOptions::new().write(true).truncate(true).open(root.path(path))?;
    file.write_all(format!("{value}\n").as_bytes())
}

/// Whether a content means a value: as the same text, the selected word, the same core list or mask, or one
/// of its words.
pub(super) fn holds(content: &str, value: &str) -> bool {
    let content = content.trim();
    if content == value || fact::bracketed(content) == Some(value) {
        return true;
    }
    if let Some(word) = value.strip_prefix('+') {
        return content.split_whitespace().any(|one| one == word);
    }
    if let Some(word) = value.strip_prefix('-').filter(|word| word.parse::<u64>().is_err()) {
        return !content.split_whitespace().any(|one| one == word);
    }
    let is_set = |text: &str| text.contains([',', '-']);
    if is_set(content) || is_set(value) {
        let same = |read: fn(&str) -> Option<onbeat_os::CoreSet>| {
            read(content).is_some() && read(content) == read(value)
        };
        return same(lists::file) || same(lists::mask);
    }
    // // A mask with leading zeros.
    let stripped = |text: &str| text.trim_start_matches('0').to_owned();
    !content.is_empty()
        && content.bytes().all(|byte| byte.is_ascii_hexdigit())
        && stripped(content) == stripped(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_say_values_in_the_kernels_ways() {
        for (content, value, is_said) in [
            ("1\n", "1", true),
            ("always [madvise] never\n", "madvise", true),
            ("always [madvise] never\n", "never", false),
            ("00000003\n", "3", true),
            ("0-1\n", "0,1", true),
            ("ff,00000001\n", "ff,00000001", true),
            ("cpuset cpu memory\n", "+cpuset", true),
            ("cpu memory\n", "-cpuset", true),
            ("-1\n", "950000", false),
            ("950000\n", "-1", false),
            ("10\n", "1", false),
        ] {
            assert_eq!(holds(content, value), is_said, "{content:?} {value}");
        }
    }

    #[test]
    fn only_settings_of_the_kernel_are_written() {
        for (path, ours) in [
            ("proc/sys/vm/stat_interval", true),
            ("sys/kernel/mm/ksm/run", true),
            ("etc/passwd", false),
            ("proc/sys/../../etc/passwd", false),
            ("/etc/passwd", false),
            ("proc/1/mem", false),
            ("sys//x", false),
        ] {
            assert_eq!(is_ours(path), ours, "{path}");
        }
    }
}
