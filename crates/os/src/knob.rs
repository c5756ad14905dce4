//! Settings of the kernel that are changed for a while and put back, whatever becomes of the process.
//!
//! Before a setting is changed, its old value is written to a *journal*, a file of its own in a folder of this user. Dropping
//! [`Knobs`] puts everything back and takes the journal away. A process that was killed leaves its journal, and the next one
//! that makes [`Knobs`] finds it and puts back what is still as the dead one left it. A folder that could not be taken away, because
//! somebody looks into it or its file system is not mounted, stays in the journal.

use crate::tracefs::read_at_once;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Changed settings, and folders made in the kernel's file systems. The last one is put back first.
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
    /// With a journal in the folder of this user, after what dead processes left has been put back.
    ///
    /// # Errors
    /// Where that folder cannot be made, or belongs to somebody else: nothing is changed that could not be put back.
    pub fn new() -> io::Result<Self> {
        Self::at(&folder())
    }

    /// The same, with the journal in another folder.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn at(folder: &Path) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(named)?;
        let owner = fs::metadata(folder).map_err(named)?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            let message = format!(
                "{}: it belongs to user {owner}, so its journals are not to be believed",
                folder.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let cleaned = clean(folder);
        let pid = std::process::id();
        // A process may have several, one after the other or at once.
        let free = (0..).map(|n| folder.join(format!("{pid}.{n}.knobs"))).find(|path| !path.exists());
        let journal = free.expect("there is no end of numbers");
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&journal).map_err(named)?;
        let mut knobs = Knobs { journal, file, done: Vec::new(), cleaned };
        knobs.note(&owned(pid))?;
        Ok(knobs)
    }

    /// What dead processes had left and is put back now, a line each.
    #[must_use]
    pub fn cleaned(&self) -> &[String] {
        &self.cleaned
    }

    /// Writes `value` to the file of a setting. What it is already is not written.
    ///
    /// # Errors
    /// What reading and writing say; the message names the file and the value. Several lines are no value.
    pub fn set(&mut self, path: &Path, value: &str) -> io::Result<()> {
        let old = read_at_once(path).map_err(|error| named(path, value, &error))?;
        let old = old.trim().to_owned();
        if old == value {
            return Ok(());
        }
        self.change(path, old, value)
    }

    /// The same for a file whose words are switched one by one: writes `value`, and later `back`.
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
    /// What `mkdir(2)` says; the message names the folder.
    pub fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        let change = Change::Folder(path.to_owned());
        self.note(&change.line())?;
        fs::create_dir(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: cannot be made: {error}", path.display()))
        })?;
        self.done.push(change);
        Ok(())
    }

    /// What is not in the journal is not done.
    fn note(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

impl Drop for Knobs {
    fn drop(&mut self) {
        // Whoever cannot put a value back cannot do more about it: it is in no journal any more, for others may want it by now.
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
    /// Says whether there was something to do. A careful one leaves alone what somebody else has changed since.
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
                // Where the file system itself is not there, nobody knows: it may have been unmounted, for this process or for all.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && path.parent().is_some_and(Path::exists) =>
                {
                    Ok(false)
                }
                other => other.map(|()| true),
            },
        }
    }

    /// Such a one may be busy for a moment: whoever comes next tries again.
    fn is_folder(&self) -> bool {
        matches!(self, Change::Folder(_))
    }

    /// As the journal has it.
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

/// With an end of line: some files of the kernel read on behind a value that has none.
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

/// Puts back what is in the journals of the dead.
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

/// Takes a journal away, but for what is left to be done, the last change first.
fn end(journal: &Path, owner: &str, left: &[Change]) {
    // Whoever can do neither finds the whole journal again.
    let _done = if left.is_empty() {
        fs::remove_file(journal)
    } else {
        let lines: String = left.iter().rev().map(|change| format!("{}\n", change.line())).collect();
        fs::write(journal, format!("{owner}\n{lines}"))
    };
}

/// How a journal says whose it is.
fn owned(pid: u32) -> String {
    format!("{pid} {}", started(pid).unwrap_or(0))
}

/// When a process began, in ticks since boot: a number that comes again has another one. `None` where there is none, or only what
/// its parent has not asked for yet.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces; field 22 is the moment, and the first after the name is field 3, the state.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    fields.nth(22 - 4)?.parse().ok().filter(|_| !is_dead)
}
