//! The undo file: everything as it was, written before anything is changed.

use super::Error;
use crate::fact;
use crate::lists;
use crate::tree::Root;
use crate::tree::Tree;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where it is: in a file system of memory, so that it goes with what it is about when the machine goes down.
pub const FILE: &str = "run/onbeat/tune.undo.json";
const SCHEMA: &str = "onbeat.tune.undo";
const VERSION: u32 = 1;

/// Everything that puts a machine back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    schema: String,
    version: u32,
    /// The boot that it belongs to: a later one has none of the changes.
    pub boot_id: String,
    /// When it was made, since 1970-01-01 00:00 UTC.
    pub made_unix_ns: u64,
    /// What was to be changed, in that order.
    pub changes: Vec<Change>,
}

/// One file, or folder, and how it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Change {
    /// A file that had another content.
    File {
        /// Without the slash in front.
        path: String,
        /// What was in it, to the byte.
        old: String,
        /// What is written to it.
        new: String,
        /// What is written to put it back, one after the other.
        back: Vec<String>,
    },
    /// A folder of control groups that was not there.
    Folder {
        /// Without the slash in front.
        path: String,
    },
}

/// What became of putting one thing back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it was.
    Back,
    /// It was as it was.
    Untouched,
    /// Somebody else has changed it since; it is left alone. This is in it.
    Foreign(String),
    /// It could not be put back.
    Failed(String),
}

impl Undo {
    /// For these changes.
    #[must_use]
    pub fn new(boot_id: String, made_unix_ns: u64, changes: Vec<Change>) -> Self {
        Undo { schema: SCHEMA.to_owned(), version: VERSION, boot_id, made_unix_ns, changes }
    }

    /// The one that there is; nothing where there is none.
    ///
    /// # Errors
    /// A file that cannot be read, belongs to somebody else, or is no undo file.
    pub fn read(root: &Root) -> Result<Option<Self>, Error> {
        let path = root.path(FILE);
        let wrong = |why: String| {
            Error::new(format!("{}: {why}", path.display()), "look at it, and remove it if it is not needed")
        };
        let owner = match fs::metadata(&path) {
            Ok(metadata) => metadata.uid(),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(Error::new(format!("{}: {error}", path.display()), "run as root")),
        };
        let user = rustix::process::geteuid().as_raw();
        if owner != user {
            return Err(wrong(format!(
                "it belongs to user {owner} and not to {user}, so it is not to be believed"
            )));
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
                "it names `{}`, which is no setting of the kernel",
                fact::short(change.path())
            ))),
            None => Ok(Some(undo)),
        }
    }

    /// Writes it, to the disk, where there is none.
    ///
    /// # Errors
    /// Where there is one, or it cannot be written: then nothing may be changed.
    pub fn write(&self, root: &Root) -> Result<PathBuf, Error> {
        let path = root.path(FILE);
        let wrong = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::new(
                format!("{} is there: somebody applies changes at this moment", path.display()),
                "onbeat tune --undo puts them back",
            ),
            _ => Error::new(
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
            // A link and no renaming: it fails where there is one.
            fs::hard_link(&temporary, &path)
        })();
        let _gone = fs::remove_file(&temporary);
        written.map_err(wrong)?;
        Ok(path)
    }

    /// Keeps those changes only that could not be put back; without any, the file goes.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn keep(&self, root: &Root, left: Vec<Change>) -> io::Result<()> {
        let path = root.path(FILE);
        if left.is_empty() {
            return fs::remove_file(path);
        }
        let undo = Undo { changes: left, ..self.clone() };
        let text = serde_json::to_string_pretty(&undo).expect("plain data") + "\n";
        onbeat_trace::replace::replace(&path, text.as_bytes())
    }

    /// Puts everything back, the last change first; says what became of each.
    #[must_use]
    pub fn back(&self, root: &Root) -> Vec<(Change, Outcome)> {
        self.changes.iter().rev().map(|change| (change.clone(), change.back(root))).collect()
    }
}

/// Only settings of the kernel are written to, whatever a file says.
pub(super) fn is_ours(path: &str) -> bool {
    let is_setting =
        path.starts_with("proc/sys/") || path.starts_with("proc/irq/") || path.starts_with("sys/");
    is_setting && !path.split('/').any(|part| part == ".." || part.is_empty())
}

impl Change {
    /// Its file or folder.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Change::File { path, .. } | Change::Folder { path } => path,
        }
    }

    fn back(&self, root: &Root) -> Outcome {
        match self {
            Change::Folder { path } => folder_back(root, path),
            // It goes with its folder.
            Change::File { back, .. } if back.is_empty() => Outcome::Untouched,
            Change::File { path, old, new, back } => {
                let now = match read(root, path) {
                    Ok(now) => now,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Outcome::Untouched,
                    Err(error) => return Outcome::Failed(error.to_string()),
                };
                if now == *old {
                    return Outcome::Untouched;
                }
                // Nothing in it: it was about to be written when the program ended. (Files of the kernel are never cut.)
                let is_cut = now.is_empty() && !old.is_empty();
                if !is_cut && !holds(&now, new) && !back.iter().any(|value| holds(&now, value)) {
                    return Outcome::Foreign(fact::short(now.trim()));
                }
                for value in back {
                    if let Err(error) = write(root, path, value) {
                        return Outcome::Failed(error.to_string());
                    }
                }
                match read(root, path) {
                    Ok(now) if now == *old => Outcome::Back,
                    Ok(now) => Outcome::Failed(format!(
                        "it is `{}` now and was `{}`",
                        fact::short(now.trim()),
                        fact::short(old.trim())
                    )),
                    Err(error) => Outcome::Failed(error.to_string()),
                }
            }
        }
    }
}

/// A group can go when nobody is in it, and is no partition any more.
fn folder_back(root: &Root, path: &str) -> Outcome {
    if !root.path(path).exists() {
        return Outcome::Untouched;
    }
    let _is_member = write(root, &format!("{path}/cpuset.cpus.partition"), "member");
    match fs::remove_dir(root.path(path)) {
        Ok(()) => Outcome::Back,
        Err(error) => Outcome::Failed(format!("{error}: move its threads away first (cgroup.procs)")),
    }
}

/// A setting's content, to the byte.
pub(super) fn read(root: &Root, path: &str) -> io::Result<String> {
    let bytes = root.read(path)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it holds no text"))
}

/// With an end of line: some files of the kernel read on behind a value that has none.
pub(super) fn write(root: &Root, path: &str, value: &str) -> io::Result<()> {
    // Never made: what is not there is no setting.
    let mut file = OpenOptions::new().write(true).truncate(true).open(root.path(path))?;
    file.write_all(format!("{value}\n").as_bytes())
}

/// Whether a content says a value: as a text, as the chosen word, as a list or mask of cores, as one of its words.
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
    // A mask with zeros in front.
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
