//! Kernel settings that are changed for a while and restored, even if the process is killed.
//!
//! Before a setting is changed, its old value is written to a *journal*, a file in a folder of this user.
//! Dropping [`Knobs`] restores everything and removes the journal. A killed process leaves its journal. The
//! next process that makes [`Knobs`] finds it, and restores the settings that still have the value left by
//! the dead process. A folder that cannot be removed, because it is in use or its file system is not mounted,
//! stays in the journal.

use crate::tracefs::read_at_once;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Changed settings, and folders made in kernel file systems. The last change is undone first.
#[derive(Debug)]
#[must_use = "dropping it puts the settings back"]
pub struct Knobs {
    journal: PathBuf,
    file: File,
    done: Vec<Change>,
    cleaned: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Set { path: PathBuf, old: String, new: String },
    Folder(PathBuf),
}

impl Knobs {
    /// Opens a journal in the folder of this user, after restoring what dead processes left.
    ///
    /// # Errors
    /// If that folder cannot be made, or belongs to another user: nothing is changed that could not be
    /// restored.
    pub fn new() -> io::Result<Self> {
        Self::at(&folder())
    }

    /// As [`new`](Self::new), with the journal in another folder.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn at(folder: &Path) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(named)?;
        let owner = fs::metadata(folder).map_err(named)?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            let message =
                format!("{}: it belongs to user {owner}, so its journals are not trusted", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let cleaned = clean(folder);
        let pid = std::process::id();
        // A process may have several, one after the other or at once.
        let free = (0..).map(|n| folder.join(format!("{pid}.{n}.knobs"))).find(|path| !path.exists());
        let journal = free.expect("some journal name is unused");
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&journal).map_err(named)?;
        let mut knobs = Knobs { journal, file, done: Vec::new(), cleaned };
        knobs.note(&owned(pid))?;
        Ok(knobs)
    }

    /// State that dead processes had left and that was restored, one line each.
    #[must_use]
    pub fn cleaned(&self) -> &[String] {
        &self.cleaned
    }

    /// Writes `value` to the file of a setting, unless it has that value already.
    ///
    /// # Errors
    /// What reading and writing return; the message names the file and the value. A value must be a single
    /// line.
    pub fn set(&mut self, path: &Path, value: &str) -> io::Result<()> {
        let old = read_at_once(path).map_err(|error| named(path, value, &error))?;
        let old = old.trim().to_owned();
        if old == value {
            return Ok(());
        }
        self.change(path, old, value)
    }

    /// Writes `value` to a file whose words are switched one by one, and `back` when this is dropped.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn switch(&mut self, path: &Path, value: &str, back: &str) -> io::Result<()> {
        self.change(path, back.to_owned(), value)
    }

    fn change(&mut self, path: &Path, old: String, value: &str) -> io::Result<()> {
        if old.contains(['\n', '\t']) || value.contains(['\n', '\t']) {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "a value has one line and no tab");
            return Err(named(path, value, &error));
        }
        let change = Change::Set { path: path.to_owned(), old, new: value.to_owned() };
        self.note(&change.line())?;
        write(path, value).map_err(|error| named(path, value, &error))?;
        self.done.push(change);
        Ok(())
    }

    /// Makes a folder, such as an instance of tracefs.
    ///
    /// # Errors
    /// What `mkdir(2)` reports; the message names the folder.
    pub fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        let change = Change::Folder(path.to_owned());
        self.note(&change.line())?;
        fs::create_dir(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: cannot be made: {error}", path.display()))
        })?;
        self.done.push(change);
        Ok(())
    }

    /// Writes to the journal. A change that cannot be noted is not made.
    fn note(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

impl Drop for Knobs {
    fn drop(&mut self) {
        // A value that cannot be restored is dropped from the journal, because another program may want it by
        // now.
        let left: Vec<Change> = self
            .done
            .drain(..)
            .rev()
            .filter(|change| change.undo(false).is_err() && change.is_folder())
            .collect();
        let pid = std::process::id();
        end(&self.journal, &owned(pid), &left);
    }
}

impl Change {
    /// Undoes the change. Returns whether there was something to undo. With `is_careful`, a value that was
    /// changed since is left alone.
    fn undo(&self, is_careful: bool) -> io::Result<bool> {
        match self {
            Change::Set { path, old, new } => {
                let now = read_at_once(path)?;
                let words: Vec<&str> = now.split_whitespace().collect();
                if is_careful && now.trim() != new && !words.contains(&new.as_str()) {
                    return Ok(false);
                }
                write(path, old).map(|()| true)
            }
            Change::Folder(path) => match fs::remove_dir(path) {
                // If the file system itself is missing, it may only be unmounted, for this process or for
                // all.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && path.parent().is_some_and(Path::exists) =>
                {
                    Ok(false)
                }
                other => other.map(|()| true),
            },
        }
    }

    /// Whether it is a folder. A folder may be busy for a moment, so the next process tries again.
    fn is_folder(&self) -> bool {
        matches!(self, Change::Folder(_))
    }

    /// Line of the journal.
    fn line(&self) -> String {
        match self {
            Change::Set { path, old, new } => format!("set\t{}\t{old}\t{new}", path.display()),
            Change::Folder(path) => format!("folder\t{}", path.display()),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let parts: Vec<&str> = line.split('\t').collect();
        match parts[..] {
            ["set", path, old, new] => {
                Some(Change::Set { path: path.into(), old: old.to_owned(), new: new.to_owned() })
            }
            ["folder", path] => Some(Change::Folder(path.into())),
            _ => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            Change::Set { path, old, .. } => format!("{} is {old} again", path.display()),
            Change::Folder(path) => format!("{} is gone", path.display()),
        }
    }
}

/// Writes a value with a line end: without one, some kernel files keep reading after the value.
fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::write(path, format!("{value}\n"))
}

fn named(path: &Path, value: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: cannot be set to `{value}`: {error}", path.display()))
}

fn folder() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/run/onbeat");
    }
    let user = rustix::process::geteuid().as_raw();
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    own.map_or_else(|| std::env::temp_dir().join(format!("onbeat-{user}")), |folder| folder.join("onbeat"))
}

/// Restores what is in the journals of dead processes.
fn clean(folder: &Path) -> Vec<String> {
    let mut cleaned = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return cleaned };
    let journals = entries.filter_map(|entry| Some(entry.ok()?.path()));
    for journal in journals.filter(|path| path.extension().is_some_and(|extension| extension == "knobs")) {
        let Ok(text) = fs::read_to_string(&journal) else { continue };
        let mut lines = text.lines();
        let owner = lines.next().and_then(|line| line.split_once(' '));
        let owner = owner.and_then(|(pid, start)| Some((pid.parse().ok()?, start.parse::<u64>().ok()?)));
        if owner.is_some_and(|(pid, start)| started(pid) == Some(start)) {
            continue;
        }
        let mut left = Vec::new();
        for change in lines.filter_map(Change::parse).collect::<Vec<_>>().into_iter().rev() {
            match change.undo(true) {
                Ok(true) => cleaned.push(change.shown()),
                Err(_) if change.is_folder() => left.push(change),
                _ => {}
            }
        }
        end(&journal, text.lines().next().unwrap_or_default(), &left);
    }
    cleaned
}

/// Removes a journal, or reduces it to the changes that are left, the last change first.
fn end(journal: &Path, owner: &str, left: &[Change]) {
    // If neither works, the whole journal stays for the next process.
    let _done = if left.is_empty() {
        fs::remove_file(journal)
    } else {
        let lines: String = left.iter().rev().map(|change| format!("{}\n", change.line())).collect();
        fs::write(journal, format!("{owner}\n{lines}"))
    };
}

/// First line of a journal: its owner.
fn owned(pid: u32) -> String {
    format!("{pid} {}", started(pid).unwrap_or(0))
}

/// Start time of a process, in ticks since boot, which tells apart processes that reuse an id. `None` if
/// there is no such process, or only a zombie.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain spaces; field 22 is the start time, and field 3, the state, is the first after the
    // name.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    fields.nth(22 - 4)?.parse().ok().filter(|_| !is_dead)
}
