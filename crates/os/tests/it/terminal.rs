//! A terminal gives keys at once, and is as it was afterwards.

use onbeat_os::terminal::{KeyMode, Waited};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, SpecialCodeIndex, tcgetattr};
use std::os::fd::OwnedFd;

/// Both ends of a terminal.
fn pair() -> (OwnedFd, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("ours");
    unlockpt(&ours).expect("unlocked");
    let name = ptsname(&ours, Vec::new()).expect("a name");
    let theirs = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
    (ours, theirs)
}

#[test]
fn keys_come_at_once_and_ctrl_c_stays_a_signal() {
    let (ours, theirs) = pair();
    let before = tcgetattr(&theirs).expect("a terminal");
    let keys = KeyMode::of(Some(theirs.try_clone().expect("another"))).expect("it can be taken");
    let during = tcgetattr(&theirs).expect("a terminal");
    assert!(!during.local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO));
    assert!(during.local_modes.contains(LocalModes::ISIG));
    assert_eq!(during.special_codes[SpecialCodeIndex::VINTR], before.special_codes[SpecialCodeIndex::VINTR]);
    assert_eq!(during.special_codes[SpecialCodeIndex::VSUSP], 0);
    rustix::io::write(&ours, b"q").expect("a key");
    let mut key = [0; 4];
    assert_eq!(rustix::io::read(&theirs, &mut key).expect("without an end of line"), 1);
    drop(keys);
    let after = tcgetattr(&theirs).expect("a terminal");
    assert_eq!(after.local_modes, before.local_modes);
    assert_eq!(after.special_codes[SpecialCodeIndex::VSUSP], before.special_codes[SpecialCodeIndex::VSUSP]);
}

#[test]
fn a_terminal_that_is_gone_is_no_key() {
    let (ours, theirs) = pair();
    let mode = KeyMode::of(Some(theirs)).expect("it can be taken");
    let keys = mode.keys().expect("its keys");
    assert_eq!(keys.wait(std::time::Duration::ZERO), Waited::Nothing);
    rustix::io::write(&ours, b"q").expect("a key");
    assert_eq!(keys.wait(std::time::Duration::from_secs(10)), Waited::Keys);
    drop(ours);
    assert_eq!(keys.wait(std::time::Duration::from_secs(10)), Waited::Gone);
}

#[test]
fn what_is_no_terminal_is_refused() {
    let file = open("/dev/null", OFlags::RDWR, Mode::empty()).expect("a file");
    assert!(KeyMode::of(Some(file)).is_err());
}
