//! Notifications to systemd: ready, status, watchdog, stopping.

use crate::stderr::to_stderr;
use onbeat::{RunHandle, RunState};
use sd_notify::NotifyState;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const THREAD_NAME: &str = "onbeat-systemd";

/// Interval between two status lines.
const STATUS: Duration = Duration::from_secs(5);
/// Interval between two checks for the first step.
const BEGIN: Duration = Duration::from_millis(5);
/// Longest and shortest wait for an answer of the engine.
const LONGEST: Duration = Duration::from_secs(60);
const SHORTEST: Duration = Duration::from_millis(1);

/// Notifier thread, until it is dropped. There is none unless a service manager set `NOTIFY_SOCKET`.
pub struct Service(Option<(Sender<()>, JoinHandle<()>)>);

impl Service {
    pub fn start(handle: RunHandle) -> Self {
        if std::env::var_os("NOTIFY_SOCKET").is_none_or(|socket| socket.is_empty()) {
            return Service(None);
        }
        let (end, ended) = mpsc::channel();
        let watchdog = sd_notify::watchdog_enabled().filter(|time| !time.is_zero());
        let thread = onbeat_os::thread::spawn(THREAD_NAME, move || notify_until(&handle, watchdog, &ended));
        let thread =
            thread.inspect_err(|error| to_stderr(&format!("cannot notify systemd: no thread: {error}\n")));
        Service(thread.ok().map(|thread| (end, thread)))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _panicked = thread.join();
        }
    }
}

fn notify_until(handle: &RunHandle, watchdog: Option<Duration>, ended: &Receiver<()>) {
    let is_over = |wait| ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
    let mut is_reported = false;
    let mut notify = |state: &[NotifyState<'_>]| {
        if let Err(error) = sd_notify::notify(state)
            && !std::mem::replace(&mut is_reported, true)
        {
            to_stderr(&format!("cannot notify systemd: NOTIFY_SOCKET: {error}\n"));
        }
    };
    // The watchdog does not cover the start: systemd has a separate limit for that (TimeoutStartSec=).
    let mut is_ended = false;
    while !is_ended && handle.status().state == RunState::Starting {
        is_ended = is_over(BEGIN);
    }
    if !is_ended {
        notify(&[NotifyState::Ready, NotifyState::Status(&line(handle))]);
    }
    // systemd recommends two notifications per watchdog period; a third of it also leaves time for the
    // answer.
    let every = watchdog.map(|time| (time / 3).clamp(SHORTEST, LONGEST));
    let mut last = Instant::now();
    while !is_ended {
        is_ended = is_over(every.unwrap_or(STATUS).min(STATUS));
        if is_ended {
            break;
        }
        let is_due = last.elapsed() >= STATUS;
        if let Some(every) = every {
            if handle.answers(every) {
                notify(&[NotifyState::Watchdog]);
            } else {
                notify(&[NotifyState::Status("a step has not returned: no watchdog notification")]);
                continue;
            }
        }
        if is_due {
            last = Instant::now();
            notify(&[NotifyState::Status(&line(handle))]);
        }
    }
    notify(&[NotifyState::Stopping, NotifyState::Status("writing the record")]);
}

fn line(handle: &RunHandle) -> String {
    let status = handle.status();
    let misses: u64 = status.paths.iter().map(|path| path.misses).sum::<u64>()
        + status.operators.iter().map(|operator| operator.late).sum::<u64>();
    let missing = status.obtained.iter().filter(|one| one.asked != one.obtained).count();
    let mut line = format!(
        "{}: {} for {} s, {misses} late",
        status.name,
        status.state,
        status.elapsed_ns / 1_000_000_000
    );
    if missing > 0 {
        line += &format!(", {missing} settings not obtained");
    }
    line.replace(['\n', '\r'], " ")
}
