//! Costs that were measured before, in a file per machine.

use crate::model::MachineCosts;
use crate::told;
use onbeat_trace::{Machine, replace};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What the file has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Which onbeat measured them: another one may have another engine.
    pub version: String,
    /// How it was built.
    pub profile: String,
    /// On which machine: on another they say nothing.
    pub machine: Machine,
    /// How many cores the process had.
    pub cores: usize,
    /// What was measured.
    pub costs: MachineCosts,
}

impl Kept {
    /// These costs, on this machine.
    #[must_use]
    pub fn here(costs: MachineCosts) -> Kept {
        Kept {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: told::profile().to_owned(),
            machine: Machine::of_this_process().clone(),
            cores: onbeat_os::CoreSet::allowed().map_or(0, |cores| cores.iter().count()),
            costs,
        }
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("costs.json")
}

/// Those that were kept in this folder, if they are of this machine, this onbeat and as many cores; what cannot be read is none.
#[must_use]
pub fn kept(folder: &Path) -> Option<MachineCosts> {
    let kept: Kept = serde_json::from_str(&fs::read_to_string(path(folder)).ok()?).ok()?;
    (kept == Kept::here(kept.costs)).then_some(kept.costs)
}

/// Keeps them for the next time; the folder is made where it is missing. Says where.
///
/// # Errors
/// What the kernel says; the message names the path.
pub fn keep(folder: &Path, costs: MachineCosts) -> io::Result<PathBuf> {
    let (path, kept) = (path(folder), Kept::here(costs));
    fs::create_dir_all(folder)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
    let json = serde_json::to_string_pretty(&kept).expect("plain data with text for keys");
    replace::replace(&path, (json + "\n").as_bytes())?;
    Ok(path)
}

/// Throws away what was kept there.
///
/// # Errors
/// What the kernel says, but not that there was nothing.
pub fn forget(folder: &Path) -> io::Result<()> {
    match fs::remove_file(path(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
