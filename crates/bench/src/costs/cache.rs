//! A cache of measured costs, one file per machine.

use crate::common;
use crate::model::MachineCosts;
use onbeat_trace::{Machine, replace};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Contents of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CachedCosts {
    /// Version of onbeat that measured them: another version may have another engine.
    pub version: String,
    /// Build profile.
    pub profile: String,
    /// The machine: the costs do not apply to another one.
    pub machine: Machine,
    /// Number of cores of the process.
    pub cores: usize,
    /// The measured costs.
    pub costs: MachineCosts,
}

impl CachedCosts {
    /// Creates an entry for these costs on this machine.
    #[must_use]
    pub fn here(costs: MachineCosts) -> CachedCosts {
        CachedCosts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: common::profile().to_owned(),
            machine: Machine::of_this_process().clone(),
            cores: onbeat_os::CoreSet::allowed().map_or(0, |cores| cores.iter().count()),
            costs,
        }
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("costs.json")
}

/// Loads the costs cached in this folder, if they match this machine, this version of onbeat and the number
/// of cores. An unreadable file counts as missing.
#[must_use]
pub fn cached(folder: &Path) -> Option<MachineCosts> {
    let cached: CachedCosts = serde_json::from_str(&fs::read_to_string(path(folder)).ok()?).ok()?;
    (cached == CachedCosts::here(cached.costs)).then_some(cached.costs)
}

/// Writes the costs for later use, creating the folder if it is missing. Returns the path.
///
/// # Errors
/// The kernel's error; the message names the path.
pub fn save(folder: &Path, costs: MachineCosts) -> io::Result<PathBuf> {
    let (path, entry) = (path(folder), CachedCosts::here(costs));
    fs::create_dir_all(folder)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
    let json = serde_json::to_string_pretty(&entry).expect("plain data with text for keys");
    replace::replace(&path, (json + "\n").as_bytes())?;
    Ok(path)
}

/// Deletes the cached costs.
///
/// # Errors
/// The kernel's error, except for a missing file.
pub fn forget(folder: &Path) -> io::Result<()> {
    match fs::remove_file(path(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
