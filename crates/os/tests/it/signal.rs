//! Signals are a matter of the whole process: each case runs in a process of its own, which is this
//! test program started again with the case in an environment variable.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use onbeat_os::signal::{InterruptGuard, on_interrupt};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::raise;

const CASE: &str = "ONBEAT_SIGNAL_TEST_CASE";
const WATCHDOG: Duration = Duration::from_secs(60);

/// Runs `case` in a process of its own and returns how that ended, or does it if this is that process.
fn in_own_process(name: &str, case: fn()) -> Option<ExitStatus> {
    if std::env::var_os(CASE).is_some() {
        case();
        return None;
    }
    let program = std::env::current_exe().unwrap();
    let name = format!("signal::{name}");
    Some(Command::new(program).args(["--exact", &name, "--nocapture"]).env(CASE, &name).status().unwrap())
}

fn listen() -> (InterruptGuard, Receiver<u32>) {
    let (send, counts) = mpsc::channel();
    let guard = on_interrupt(move |count| send.send(count).unwrap()).unwrap();
    (guard, counts)
}

#[test]
fn signals_are_counted() {
    let status = in_own_process("signals_are_counted", || {
        let (guard, counts) = listen();
        for (signal, expected) in [(SIGINT, 1), (SIGTERM, 2), (SIGINT, 3)] {
            raise(signal).unwrap();
            assert_eq!(counts.recv_timeout(WATCHDOG), Ok(expected));
        }
        drop(guard);
        // The thread and with it the sender is gone.
        assert_eq!(counts.recv(), Err(mpsc::RecvError));
    });
    assert!(status.is_none_or(|status| status.success()));
}

/// As `timeout` sends it: to the process, and at once to its group.
#[test]
fn a_signal_sent_twice_is_one_request() {
    let status = in_own_process("a_signal_sent_twice_is_one_request", || {
        let (_guard, counts) = listen();
        for _ in 0..3 {
            raise(SIGTERM).unwrap();
        }
        assert_eq!(counts.recv_timeout(WATCHDOG), Ok(1));
        raise(SIGINT).unwrap();
        assert_eq!(counts.recv_timeout(WATCHDOG), Ok(2));
    });
    assert!(status.is_none_or(|status| status.success()));
}

#[test]
fn after_the_guard_a_signal_ends_the_process() {
    let status = in_own_process("after_the_guard_a_signal_ends_the_process", || {
        drop(listen());
        raise(SIGTERM).unwrap();
    });
    assert!(status.is_none_or(|status| status.signal() == Some(SIGTERM)));
}

#[test]
fn a_second_guard_listens_again() {
    let status = in_own_process("a_second_guard_listens_again", || {
        drop(listen());
        let (_guard, counts) = listen();
        raise(SIGINT).unwrap();
        assert_eq!(counts.recv_timeout(WATCHDOG), Ok(1));
    });
    assert!(status.is_none_or(|status| status.success()));
}

#[test]
fn a_guard_may_be_dropped_by_its_own_call() {
    let status = in_own_process("a_guard_may_be_dropped_by_its_own_call", || {
        let (give, take) = mpsc::channel::<InterruptGuard>();
        let (send, called) = mpsc::channel();
        let guard = on_interrupt(move |count| {
            drop(take.recv().unwrap());
            send.send(count).unwrap();
        })
        .unwrap();
        give.send(guard).unwrap();
        raise(SIGINT).unwrap();
        assert_eq!(called.recv_timeout(WATCHDOG), Ok(1));
    });
    assert!(status.is_none_or(|status| status.success()));
}

#[test]
fn an_ignored_signal_stays_ignored() {
    const NAME: &str = "an_ignored_signal_stays_ignored";
    if std::env::var_os(CASE).is_none() {
        // The shell lets its child ignore the two signals, as `nohup` does.
        let program = std::env::current_exe().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' HUP INT; exec \"$@\"", "sh"]).arg(program);
        let name = format!("signal::{NAME}");
        let status = shell.args(["--exact", &name, "--nocapture"]).env(CASE, &name).status().unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    let (_guard, counts) = listen();
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        raise(signal).unwrap();
    }
    assert_eq!(counts.recv_timeout(WATCHDOG), Ok(1));
    assert_eq!(counts.try_recv(), Err(mpsc::TryRecvError::Empty));
}
