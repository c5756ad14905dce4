//! Panics. The engine reports a panic in an operator, once, as an error of the run with the operator's name.

use std::panic;
use std::sync::{Mutex, PoisonError};

/// Place of the last panic of an operator.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Shown after a back-trace that names no lines.
const WITHOUT_LINES: &str = "\
note: the back-trace has no files and lines, because this program was built without them. Install the Debian
      package onbeat-dbgsym, unpack onbeat-VERSION-MACHINE-linux-debug.tar.xz over the tarball, or build with
      CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none
";

/// Installs a panic hook that is silent on workers and unchanged on other threads.
pub fn install() {
    let usual = panic::take_hook();
    let is_verbose = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    panic::set_hook(Box::new(move |panic| {
        let is_worker = std::thread::current().name().is_some_and(|name| name.starts_with("onbeat-w"));
        if is_worker {
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) = panic.location().map(ToString::to_string);
        }
        if !is_worker || is_verbose {
            // The message must not go to a full-screen view, which disappears.
            crate::screen::restore();
            usual(panic);
            if is_verbose && !onbeat_os::stack::has_lines() {
                crate::stderr::to_stderr(WITHOUT_LINES);
            }
        }
    }));
}

/// Returns the place of the last panic of an operator.
pub fn last() -> Option<String> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_place_of_a_worker_s_panic_is_kept() {
        super::install();
        let thread = onbeat_os::thread::spawn("onbeat-w9", || panic!("on purpose")).expect("a thread");
        assert!(thread.join().is_err());
        assert!(super::last().is_some_and(|place| place.contains("panics.rs")));
    }
}
