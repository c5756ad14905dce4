//! Limits on the idle states of measured cores.

use onbeat_os::knob::Knobs;
use std::fs;
use std::io;
use std::path::Path;

/// Idle states that are switched off; dropping it switches them on again.
#[derive(Debug)]
#[must_use = "dropping it switches them on again"]
pub(crate) struct IdleStates {
    _knobs: Knobs,
}

impl IdleStates {
    /// Switches off all idle states deeper than `deepest` on these cores; every state for −1.
    ///
    /// # Errors
    /// If a core has no idle states to choose from, or they cannot be written.
    pub fn keep(deepest: i32, cpus: &[usize]) -> io::Result<Self> {
        Self::below(Path::new("/sys/devices/system/cpu"), deepest, cpus, Knobs::new)
    }

    fn below(
        root: &Path,
        deepest: i32,
        cpus: &[usize],
        knobs: impl FnOnce() -> io::Result<Knobs>,
    ) -> io::Result<Self> {
        let mut files = Vec::new();
        for cpu in cpus {
            let folder = root.join(format!("cpu{cpu}/cpuidle"));
            let states = fs::read_dir(&folder).map_err(|error| {
                let why = format!(
                    "{}: {error}: this kernel or machine offers no choice of idle states",
                    folder.display()
                );
                io::Error::new(error.kind(), why)
            })?;
            for state in states {
                let path = state?.path();
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let number = name.strip_prefix("state").and_then(|number| number.parse::<i32>().ok());
                if number.is_some_and(|number| number > deepest) {
                    files.push(path.join("disable"));
                }
            }
        }
        let mut knobs = knobs()?;
        files.iter().try_for_each(|file| knobs.set(file, "1"))?;
        Ok(IdleStates { _knobs: knobs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeper_states_are_off_for_a_while() {
        let place = tempfile::tempdir().unwrap();
        for state in 0..3 {
            let folder = place.path().join(format!("cpu1/cpuidle/state{state}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("disable"), "0\n").unwrap();
        }
        let states = || {
            let one =
                |state| fs::read_to_string(place.path().join(format!("cpu1/cpuidle/state{state}/disable")));
            (0..3).map(|state| one(state).unwrap().trim().to_owned()).collect::<String>()
        };
        let knobs = || Knobs::at(&place.path().join("journal"));
        for (deepest, expected) in [(0, "011"), (1, "001"), (7, "000"), (-1, "111")] {
            let kept = IdleStates::below(place.path(), deepest, &[1], knobs).unwrap();
            assert_eq!(states(), expected);
            drop(kept);
            assert_eq!(states(), "000");
        }
        let error = IdleStates::below(place.path(), 0, &[2], knobs).unwrap_err().to_string();
        assert!(
            error.contains("cpu2/cpuidle") && error.contains("offers no choice of idle states"),
            "{error}"
        );
    }
}
