//! Doing what the kernel takes at once. What was there is in the undo file before the first change.

use super::undo::{self, Change, Undo};
use super::{Error, Plan, Write};
use crate::fact;
use crate::lists;
use crate::tree::Root;
use onbeat_os::clock;
use std::fs;
use std::io;

/// Changes that are written down and not yet done.
#[derive(Debug)]
#[must_use = "nothing is changed yet"]
pub struct Prepared {
    undo: Undo,
    /// Settings that cannot be changed, and why.
    pub refused: Vec<(String, String)>,
    /// Settings that are already as they should be.
    pub already: usize,
}

/// What became of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The file.
    pub path: String,
    /// The value.
    pub value: String,
    /// Why not, where it was not done.
    pub refused: Option<String>,
}

/// Looks at what there is, and refuses where changes of before are still to be taken back.
///
/// # Errors
/// An undo file of this boot, while something is left to do; one that cannot be read.
pub fn prepare(root: &Root, plan: &Plan, with_partition: bool) -> Result<Prepared, Error> {
    let boot_id = fact::text(root, "proc/sys/kernel/random/boot_id").known().cloned().unwrap_or_default();
    let mut prepared = Prepared {
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
            return Err(Error::new(
                format!("changes of before are in {} and not taken back", root.path(undo::FILE).display()),
                "onbeat tune --undo puts them back; then apply again",
            ));
        }
        if !is_of_this_boot {
            // What it is about went with the boot.
            fs::remove_file(root.path(undo::FILE))
                .map_err(|error| Error::new(format!("{}: {error}", undo::FILE), "run as root"))?;
        }
    }
    Ok(prepared)
}

impl Prepared {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.undo.changes.is_empty()
    }

    /// How many changes there are.
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
            return self.refused.push((write.path.clone(), "it is no setting of the kernel".to_owned()));
        }
        if undo::holds(&old, &write.value) {
            self.already += 1;
            return;
        }
        let value =
            fact::bracketed(&old).filter(|_| old.trim().contains(' ')).unwrap_or(old.trim()).to_owned();
        // First to the core where it was: else an interrupt that may go anywhere stays where it was put meanwhile.
        let effective = write
            .path
            .strip_suffix("smp_affinity_list")
            .map(|folder| format!("{folder}effective_affinity_list"));
        let effective =
            effective.and_then(|path| undo::read(root, &path).ok()).map(|text| text.trim().to_owned());
        let effective = effective.filter(|cores| lists::file(cores).is_some_and(|cores| !cores.is_empty()));
        let back = effective.into_iter().chain([value]).collect();
        self.undo.changes.push(Change::File {
            path: write.path.clone(),
            old,
            new: write.value.clone(),
            back,
        });
    }

    /// A control group that has these cores for itself.
    fn partition(&mut self, root: &Root, cpus: &str) {
        let top = "sys/fs/cgroup";
        let folder = format!("{top}/onbeat");
        let controllers = fact::text(root, &format!("{top}/cgroup.controllers"));
        if !controllers.known().is_some_and(|text| text.split_whitespace().any(|one| one == "cpuset")) {
            let why = match controllers.known() {
                Some(_) => {
                    "the second version of control groups has no cpuset here: boot with cgroup_no_v1=all, or systemd.unified_cgroup_hierarchy=1"
                }
                None => "control groups of the second version are not mounted on /sys/fs/cgroup",
            };
            return self.refused.push((folder, why.to_owned()));
        }
        if root.path(&folder).exists() {
            return self.refused.push((folder, "it is there already, and not ours".to_owned()));
        }
        let subtree = format!("{top}/cgroup.subtree_control");
        match undo::read(root, &subtree) {
            Ok(old) if undo::holds(&old, "+cpuset") => {}
            Ok(old) => self.undo.changes.push(Change::File {
                path: subtree,
                old,
                new: "+cpuset".to_owned(),
                back: vec!["-cpuset".to_owned()],
            }),
            Err(error) => return self.refused.push((subtree, error.to_string())),
        }
        self.undo.changes.push(Change::Folder { path: folder.clone() });
        for (file, new) in [("cpuset.cpus", cpus), ("cpuset.cpus.partition", "isolated")] {
            // They go with their folder.
            let change = Change::File {
                path: format!("{folder}/{file}"),
                old: String::new(),
                new: new.to_owned(),
                back: Vec::new(),
            };
            self.undo.changes.push(change);
        }
    }

    /// Writes the undo file; from then on [`Applying::next`] makes the changes.
    ///
    /// # Errors
    /// Where it cannot be written: nothing is changed then.
    pub fn begin(self, root: &Root) -> Result<Applying<'_>, Error> {
        if !self.is_nothing() {
            self.undo.write(root)?;
        }
        Ok(Applying { root, changes: self.undo.changes.into_iter() })
    }
}

/// Changes that are being made, one by one: whoever stops in between can put back what was done.
#[derive(Debug)]
pub struct Applying<'r> {
    root: &'r Root,
    changes: std::vec::IntoIter<Change>,
}

impl Iterator for Applying<'_> {
    type Item = Done;

    fn next(&mut self) -> Option<Done> {
        let change = self.changes.next()?;
        Some(match change {
            Change::Folder { path } => {
                let made = fs::create_dir(self.root.path(&path));
                Done {
                    refused: made.err().map(|error| error.to_string()),
                    path,
                    value: "a control group".to_owned(),
                }
            }
            Change::File { path, new, .. } => {
                let written =
                    undo::write(self.root, &path, &new).and_then(|()| read_back(self.root, &path, &new));
                Done { refused: written.err().map(|error| explained(&path, &error)), path, value: new }
            }
        })
    }
}

/// The kernel takes some values without a word, and does something else.
fn read_back(root: &Root, path: &str, new: &str) -> io::Result<()> {
    let now = undo::read(root, path)?;
    match undo::holds(&now, new) {
        true => Ok(()),
        false => Err(io::Error::other(format!("the kernel made `{}` of it", fact::short(now.trim())))),
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

/// Puts a machine back, and says what became of each change. Nothing where nothing was applied in this boot.
///
/// # Errors
/// An undo file that cannot be read or written.
pub fn undo(root: &Root) -> Result<Option<Vec<(Change, undo::Outcome)>>, Error> {
    let Some(there) = Undo::read(root)? else { return Ok(None) };
    let wrong =
        |error: io::Error| Error::new(format!("{}: {error}", root.path(undo::FILE).display()), "run as root");
    let boot_id = fact::text(root, "proc/sys/kernel/random/boot_id").known().cloned().unwrap_or_default();
    if boot_id != there.boot_id {
        there.keep(root, Vec::new()).map_err(wrong)?;
        return Ok(None);
    }
    let outcomes = there.back(root);
    let failed = outcomes.iter().rev().filter(|(_, outcome)| matches!(outcome, undo::Outcome::Failed(_)));
    there.keep(root, failed.map(|(change, _)| change.clone()).collect()).map_err(wrong)?;
    Ok(Some(outcomes))
}
