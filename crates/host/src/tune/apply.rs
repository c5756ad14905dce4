//! Applies the changes that take effect at once. The undo file holds the old values before the first change.

use super::undo::{self, TuneChange, Undo};
use super::{TuneError, TuningPlan, Write};
use crate::fact;
use crate::lists;
use crate::tree::Root;
use onbeat_os::clock;
use std::fs;
use std::io;

/// Changes that are planned and not yet applied.
#[derive(Debug)]
#[must_use = "nothing is changed yet"]
pub struct PreparedChanges {
    undo: Undo,
    /// Settings that cannot be changed, with the reason.
    pub refused: Vec<(String, String)>,
    /// Number of settings that already have their value.
    pub already: usize,
}

/// Result of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedChange {
    /// The file.
    pub path: String,
    /// The value.
    pub value: String,
    /// Why the change failed, if it did.
    pub refused: Option<String>,
}

/// Compares the plan with the machine. Fails while earlier changes are still in force.
///
/// # Errors
/// An undo file of this boot while changes are left to apply; an undo file that cannot be read.
pub fn prepare(root: &Root, plan: &TuningPlan, with_partition: bool) -> Result<PreparedChanges, TuneError> {
    let boot_id = fact::text(root, "proc/sys/kernel/random/boot_id").known().cloned().unwrap_or_default();
    let mut prepared = PreparedChanges {
        undo: Undo::new(boot_id.clone(), clock::realtime_unix_ns(), Vec::new()),
        refused: Vec::new(),
        already: 0,
    };
    if with_partition {
        prepared.partition(root, &plan.cpus);
    }
    for write in &plan.writes {
        prepared.file(root, write);
    }
    if let Some(there) = Undo::read(root)? {
        let is_of_this_boot = there.boot_id == boot_id;
        if is_of_this_boot && !prepared.is_nothing() {
            return Err(TuneError::new(
                format!("earlier changes have not been undone: {}", root.path(undo::FILE).display()),
                "run onbeat tune --undo, then apply again",
            ));
        }
        if !is_of_this_boot {
            // // The changes in it ended with that boot.
            fs::remove_file(root.path(undo::FILE))
                .map_err(|error| TuneError::new(format!("{}: {error}", undo::FILE), "run as root"))?;
        }
    }
    Ok(prepared)
}

impl PreparedChanges {
    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.undo.changes.is_empty()
    }

    /// Number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.undo.changes.len()
    }

    /// As [`is_nothing`](Self::is_nothing).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_nothing()
    }

    fn file(&mut self, root: &Root, write: &Write) {
        let old = match undo::read(root, &write.path) {
            Ok(old) => old,
            Err(error) => return self.refused.push((write.path.clone(), error.to_string())),
        };
        if !undo::is_ours(&write.path) || write.value.contains('\n') {
            return self.refused.push((write.path.clone(), "not a kernel setting".to_owned()));
        }
        if undo::holds(&old, &write.value) {
            self.already += 1;
            return;
        }
        let value =
            fact::bracketed(&old).filter(|_| old.trim().contains(' ')).unwrap_or(old.trim()).to_owned();
        // First to the core that it was on: otherwise an interrupt that may go anywhere stays on the core it
        // was moved to.
        let effective = write
            .path
            .strip_suffix("smp_affinity_list")
            .map(|folder| format!("{folder}effective_affinity_list"));
        let effective =
            effective.and_then(|path| undo::read(root, &path).ok()).map(|text| text.trim().to_owned());
        let effective = effective.filter(|cores| lists::file(cores).is_some_and(|cores| !cores.is_empty()));
        let back = effective.into_iter().chain([value]).collect();
        self.undo.changes.push(TuneChange::File {
            path: write.path.clone(),
            old,
            new: write.value.clone(),
            back,
        });
    }

    /// Plans a control group that owns these cores.
    fn partition(&mut self, root: &Root, cpus: &str) {
        let top = "sys/fs/cgroup";
        let folder = format!("{top}/onbeat");
        let controllers = fact::text(root, &format!("{top}/cgroup.controllers"));
        if !controllers.known().is_some_and(|text| text.split_whitespace().any(|one| one == "cpuset")) {
            let why = match controllers.known() {
                Some(_) => {
                    "cgroup v2 has no cpuset controller here: boot with cgroup_no_v1=all, or systemd.unified_cgroup_hierarchy=1"
                }
                None => "cgroup v2 is not mounted on /sys/fs/cgroup",
            };
            return self.refused.push((folder, why.to_owned()));
        }
        if root.path(&folder).exists() {
            return self.refused.push((folder, "it exists already, and onbeat did not create it".to_owned()));
        }
        let subtree = format!("{top}/cgroup.subtree_control");
        match undo::read(root, &subtree) {
            Ok(old) if undo::holds(&old, "+cpuset") => {}
            Ok(old) => self.undo.changes.push(TuneChange::File {
                path: subtree,
                old,
                new: "+cpuset".to_owned(),
                back: vec!["-cpuset".to_owned()],
            }),
            Err(error) => return self.refused.push((subtree, error.to_string())),
        }
        self.undo.changes.push(TuneChange::Folder { path: folder.clone() });
        for (file, new) in [("cpuset.cpus", cpus), ("cpuset.cpus.partition", "isolated")] {
            // The kernel removes these files with their folder.
            let change = TuneChange::File {
                path: format!("{folder}/{file}"),
                old: String::new(),
                new: new.to_owned(),
                back: Vec::new(),
            };
            self.undo.changes.push(change);
        }
    }

    /// Writes the undo file; then [`Applying::next`] makes the changes.
    ///
    /// # Errors
    /// If it cannot be written: nothing is changed then.
    pub fn begin(self, root: &Root) -> Result<Applying<'_>, TuneError> {
        if !self.is_nothing() {
            self.undo.write(root)?;
        }
        Ok(Applying { root, changes: self.undo.changes.into_iter() })
    }
}

/// Changes being applied, one by one. If the program stops in between, the undo file restores the ones that
/// were made.
#[derive(Debug)]
pub struct Applying<'r> {
    root: &'r Root,
    changes: std::vec::IntoIter<TuneChange>,
}

impl Iterator for Applying<'_> {
    type Item = AppliedChange;

    fn next(&mut self) -> Option<AppliedChange> {
        let change = self.changes.next()?;
        Some(match change {
            TuneChange::Folder { path } => {
                let made = fs::create_dir(self.root.path(&path));
                AppliedChange {
                    refused: made.err().map(|error| error.to_string()),
                    path,
                    value: "a control group".to_owned(),
                }
            }
            TuneChange::File { path, new, .. } => {
                let written =
                    undo::write(self.root, &path, &new).and_then(|()| read_back(self.root, &path, &new));
                AppliedChange {
                    refused: written.err().map(|error| explained(&path, &error)),
                    path,
                    value: new,
                }
            }
        })
    }
}

/// Reads a value back: the kernel silently turns some values into others.
fn read_back(root: &Root, path: &str, new: &str) -> io::Result<()> {
    let now = undo::read(root, path)?;
    match undo::holds(&now, new) {
        true => Ok(()),
        false => Err(io::Error::other(format!("the kernel turned it into `{}`", fact::short(now.trim())))),
    }
}

fn explained(path: &str, error: &io::Error) -> String {
    const EIO: i32 = 5;
    match error.raw_os_error() {
        Some(EIO) if path.starts_with("proc/irq/") => {
            "the kernel manages this interrupt itself (EIO): isolcpus=managed_irq keeps it off".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Restores a machine, and returns the result of each change. `None` if nothing was applied in this boot.
///
/// # Errors
/// An undo file that cannot be read or written.
pub fn undo(root: &Root) -> Result<Option<Vec<(TuneChange, undo::UndoOutcome)>>, TuneError> {
    let Some(there) = Undo::read(root)? else { return Ok(None) };
    let wrong = |error: io::Error| {
        TuneError::new(format!("{}: {error}", root.path(undo::FILE).display()), "run as root")
    };
    let boot_id = fact::text(root, "proc/sys/kernel/random/boot_id").known().cloned().unwrap_or_default();
    if boot_id != there.boot_id {
        there.keep(root, Vec::new()).map_err(wrong)?;
        return Ok(None);
    }
    let outcomes = there.back(root);
    let failed = outcomes.iter().rev().filter(|(_, outcome)| matches!(outcome, undo::UndoOutcome::Failed(_)));
    there.keep(root, failed.map(|(change, _)| change.clone()).collect()).map_err(wrong)?;
    Ok(Some(outcomes))
}
