//! Settings of the machine that a test changes and restores.

use std::fs;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Value of a file under `/proc/sys`, changed until this is dropped. A separate process restores it when its
/// input ends, also after `kill -9`.
pub struct Sysctl {
    restorer: Child,
    input: Option<ChildStdin>,
}

impl Sysctl {
    /// Sets the value. Prints a message if it cannot be written.
    pub fn set(file: &str, value: &str) -> Result<Self, String> {
        let wrong = |error: std::io::Error| format!("{file}: {error}");
        let before = fs::read_to_string(file).map_err(wrong)?;
        // In a session of its own, so that a signal to all of ours does not reach it.
        let mut restorer = Command::new("setsid")
            .args(["sh", "-c", "cat > /dev/null; printf %s \"$1\" > \"$2\"", "restore", before.trim(), file])
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|error| format!("setsid: {error}"))?;
        let input = restorer.stdin.take();
        let set = Sysctl { restorer, input };
        fs::write(file, value).map_err(wrong)?;
        Ok(set)
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.restorer.wait();
    }
}

#[test]
fn a_setting_comes_back() {
    let _alone = super::alone();
    let file = "/proc/sys/vm/compact_unevictable_allowed";
    let Ok(before) = fs::read_to_string(file) else { return eprintln!("skipped: there is no {file}") };
    let other = if before.trim() == "0" { "1" } else { "0" };
    match Sysctl::set(file, other) {
        Ok(set) => {
            assert_eq!(fs::read_to_string(file).expect("it is there").trim(), other);
            drop(set);
        }
        Err(error) => eprintln!("skipped: {error}"),
    }
    assert_eq!(fs::read_to_string(file).expect("it is there"), before);
}
