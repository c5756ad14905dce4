//! Full-screen views, and the terminal after them.

use super::harness::{Place, until, wait};
use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

/// Sequences that enter and leave the full-screen mode.
const TAKEN: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[?1049l";

/// Command in a terminal of 100 columns.
pub struct Terminal {
    pub ours: File,
    theirs: OwnedFd,
    child: Child,
    shown: Arc<Mutex<String>>,
    reader: std::thread::JoinHandle<()>,
}

impl Terminal {
    pub fn start(place: &Place, arguments: &[&str]) -> Self {
        let (ours, theirs, child) = started(place, arguments);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut from, to) = (ours.try_clone().expect("another"), Arc::clone(&shown));
        let read = move || {
            let mut bytes = [0; 4096];
            // Where the other end is closed that is an error.
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                to.lock().expect("no panic").push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        };
        // It ends with the terminal.
        let reader = onbeat_os::thread::spawn("reads-terminal", read).expect("a thread");
        Terminal { ours, theirs, child, shown, reader }
    }

    fn shown(&self) -> String {
        self.shown.lock().expect("no panic").clone()
    }

    pub fn until_shown(&self, part: &str) {
        until(part, || self.shown().contains(part).then_some(())).unwrap_or_else(|what| {
            panic!("{what}: {}", self.shown());
        });
    }

    /// Waits for the end, and checks that the terminal was restored.
    pub fn end(mut self) -> (Option<i32>, String) {
        let status = wait(&mut self.child);
        let modes = tcgetattr(&self.theirs).expect("a terminal").local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{modes:?}");
        // Without writers, the reader comes to the end.
        drop(self.theirs);
        until("all is read", || self.reader.is_finished().then_some(())).expect("it ends");
        let shown = self.shown.lock().expect("no panic").clone();
        assert!(shown.contains(GIVEN_BACK), "{shown}");
        (status, shown)
    }
}

/// Pseudo-terminal: our end and the command's end.
fn started(place: &Place, arguments: &[&str]) -> (File, OwnedFd, Child) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&ours).expect("ours");
    unlockpt(&ours).expect("unlocked");
    let name = ptsname(&ours, Vec::new()).expect("a name");
    let theirs = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
        .expect("its other end");
    let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&theirs, size).expect("a size");
    let end = || Stdio::from(theirs.try_clone().expect("another"));
    let child = place
        .command(arguments)
        .env("TERM", "xterm")
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .expect("the command");
    (File::from(ours), theirs, child)
}

#[test]
fn a_terminal_that_is_closed_ends_it_without_a_panic() {
    let place = Place::new();
    let (mut ours, _theirs, mut child) = started(&place, &["noise", "top", "-c", "0"]);
    let mut shown = String::new();
    let mut bytes = [0; 4096];
    fcntl_setfl(&ours, OFlags::NONBLOCK).expect("a flag");
    let seen = until("the table", || {
        while let Ok(count @ 1..) = ours.read(&mut bytes) {
            shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        shown.contains("Runtime").then_some(())
    });
    seen.unwrap_or_else(|what| panic!("{what}: {shown}"));
    drop(ours);
    // The table that is left behind may have nowhere to go.
    let status = wait(&mut child);
    assert!(matches!(status, Some(0 | 1)), "{status:?}");
}

#[test]
fn q_ends_the_screen_and_leaves_the_table() {
    let place = Place::new();
    for (command, title, row) in
        [("noise", "Operating System Noise", "% CPU Aval"), ("timerlat", "Timer Latency", "Usr avg")]
    {
        let mut terminal = Terminal::start(&place, &[command, "top", "-c", "0"]);
        terminal.until_shown(TAKEN);
        terminal.until_shown(title);
        terminal.until_shown(row);
        terminal.ours.write_all(b"q").expect("a key");
        let (status, shown) = terminal.end();
        assert_eq!(status, Some(0), "{shown}");
        let after = shown.split(GIVEN_BACK).nth(1).expect("something afterwards");
        assert!(after.contains("duration") || after.contains("CPU COUNT"), "{shown}");
    }
}

#[test]
fn a_signal_gives_the_terminal_back_and_what_was_said_is_seen() {
    let place = Place::new();
    let terminal = Terminal::start(&place, &["noise", "top", "-c", "0"]);
    terminal.until_shown("% CPU Aval");
    let pid = Pid::from_child(&terminal.child);
    kill_process(pid, Signal::TERM).expect("it lives");
    let (status, shown) = terminal.end();
    assert_eq!(status, Some(0), "{shown}");
    let after = shown.split(GIVEN_BACK).nth(1).expect("something afterwards");
    assert!(after.contains("onbeat: stopping"), "{after}");
    assert!(!shown.split(GIVEN_BACK).next().expect("a screen").contains("onbeat: stopping"), "{shown}");
}

#[test]
fn a_terminal_that_can_only_lines_gets_the_table_at_the_end() {
    let place = Place::new();
    let answer = place.onbeat(&["noise", "top", "-c", "0", "-d", "200ms"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(!answer.stdout.contains('\x1b') && answer.stdout.contains("% CPU Aval"), "{answer:?}");
}
