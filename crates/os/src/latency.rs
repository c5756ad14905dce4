//! Limits on the kernel's delays: timer slack, and idle states of cores.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

const DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// Allows timers of the calling thread to be late by up to `slack_ns` (`PR_SET_TIMERSLACK`), so that the
/// kernel can merge them. The default is 50 µs. Threads with a real-time policy have no slack.
///
/// # Errors
/// What the kernel reports.
pub fn set_timer_slack_ns(slack_ns: u64) -> io::Result<()> {
    // 0 would mean the default.
    let slack = libc::c_ulong::try_from(slack_ns.max(1)).unwrap_or(libc::c_ulong::MAX);
    // SAFETY: this option takes a number and touches no memory of ours.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack, 0, 0, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the timer slack of the calling thread.
///
/// # Errors
/// What the kernel reports.
pub fn timer_slack_ns() -> io::Result<u64> {
    // SAFETY: this option takes nothing and touches no memory of ours.
    let result = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Keeps all idle cores out of idle states whose exit latency is above the limit. The kernel forgets the
/// request when the file is closed, however the process ends.
#[derive(Debug)]
#[must_use = "dropping it withdraws the request"]
pub struct DmaLatency {
    file: File,
}

impl DmaLatency {
    /// Requests a limit of `latency_us`.
    ///
    /// # Errors
    /// What opening and writing the device return; the message names the device.
    pub fn hold(latency_us: u32) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{DMA_LATENCY}: {error}"));
        let mut file = OpenOptions::new().read(true).write(true).open(DMA_LATENCY).map_err(named)?;
        let latency_us = i32::try_from(latency_us).unwrap_or(i32::MAX);
        file.write_all(&latency_us.to_ne_bytes()).map_err(named)?;
        Ok(DmaLatency { file })
    }

    /// Returns the limit in force: the minimum of all requests, in microseconds.
    ///
    /// # Errors
    /// What reading the device returns.
    pub fn in_force_us(&self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(u32::try_from(i32::from_ne_bytes(bytes)).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

    use super::*;

    #[test]
    fn timer_slack_is_that_of_the_thread() {
        let before = timer_slack_ns().unwrap();
        let helper = crate::thread::spawn("slack", || {
            set_timer_slack_ns(1234).unwrap();
            timer_slack_ns().unwrap()
        });
        let found = helper.unwrap().join().unwrap();
        // A real-time thread has no slack.
        assert!(found == 1234 || found == 0, "{found}");
        assert_eq!(timer_slack_ns().unwrap(), before);
    }

    #[test]
    fn the_wish_is_held_and_given_back() {
        match DmaLatency::hold(7) {
            Ok(held) => {
                assert!(held.in_force_us().unwrap() <= 7);
                let other = DmaLatency::hold(3).unwrap();
                assert!(other.in_force_us().unwrap() <= 3);
                drop(other);
                assert!(held.in_force_us().unwrap() <= 7);
            }
            Err(error) => {
                assert!(error.to_string().starts_with("/dev/cpu_dma_latency: "), "{error}");
                eprintln!("skipped: {error}");
            }
        }
    }
}
