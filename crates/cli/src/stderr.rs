//! Messages on stderr. They wait while a full-screen view has the terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;

/// Goes to the begin of the line and clears it.
pub const CLEAR: &str = "\r\x1b[K";

/// Messages that wait; `None` while they are written at once.
static HELD: Mutex<Option<String>> = Mutex::new(None);

/// Whether output to a stream can be coloured.
pub fn may_colour(is_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Writes a message to stderr, or keeps it for [`release`]. Errors are ignored: there is no place to report
/// them.
pub fn to_stderr(text: &str) {
    if is_held(text) {
        return;
    }
    let _lost = io::stderr().lock().write_all(text.as_bytes());
}

/// Clears a progress line, before a message that comes while one may be drawn.
pub fn clear_line() {
    if io::stderr().is_terminal() {
        to_stderr(CLEAR);
    }
}

/// Makes messages wait from now on.
pub fn hold() {
    if let Ok(mut held) = HELD.lock() {
        *held = Some(String::new());
    }
}

/// Writes the messages that waited. Later ones are written at once.
pub fn release() {
    let held = HELD.lock().ok().and_then(|mut held| held.take());
    to_stderr(&held.unwrap_or_default());
}

fn is_held(text: &str) -> bool {
    // A progress line is out of date by the time of the release.
    let is_line = text.starts_with('\r');
    let mut held = HELD.lock().ok();
    let held = held.as_mut().and_then(|held| held.as_mut());
    held.map(|held| held.push_str(if is_line { "" } else { text })).is_some()
}

#[cfg(test)]
mod tests {
    use super::{HELD, hold, is_held, release};

    #[test]
    fn messages_wait_and_progress_lines_are_dropped() {
        assert!(!is_held("at once"));
        hold();
        assert!(is_held("later\n") && is_held("\r12 %"));
        assert_eq!(HELD.lock().expect("no panic").as_deref(), Some("later\n"));
        release();
        assert!(!is_held("at once"));
    }
}
