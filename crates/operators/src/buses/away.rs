//! A device that went away, and the attempts to open it again.

use crate::streams::{real_ns, usual_ns};
use onbeat_runtime::{Context, Step};
use std::fmt::Display;

/// Time from one attempt to the next.
const ATTEMPT_NS: u64 = 50_000_000;

/// Absence of a device, in real time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceAbsence {
    /// How long to wait for it after a restart.
    pub patience_ns: u64,
    /// When it went away, and when the present attempts began.
    away: Option<(u64, u64)>,
}

/// State of a device after an attempt.
pub(crate) enum Attempt<T> {
    /// It was not away.
    Present,
    /// It is back.
    Back(T),
    /// The step ends with this, and the next one makes another attempt.
    Wait(Step),
}

impl Default for DeviceAbsence {
    fn default() -> Self {
        DeviceAbsence::with_patience(usual_ns())
    }
}

impl DeviceAbsence {
    /// Waits this long for the device.
    pub fn with_patience(patience_ns: u64) -> Self {
        DeviceAbsence { patience_ns, away: None }
    }

    /// Whether the device is away.
    pub fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// Whether the device is away, and the time to wait for it has passed.
    pub fn is_over(&self) -> bool {
        self.away.is_some_and(|(_, begun_ns)| real_ns() >= begun_ns.saturating_add(self.patience_ns))
    }

    /// Makes no more attempts.
    pub fn end(&mut self) {
        self.away = None;
    }

    /// Notes that the device is away, or that it was given up and is looked for again.
    pub fn begin(&mut self) {
        let now_ns = real_ns();
        self.away = Some((self.away.map_or(now_ns, |(since_ns, _)| since_ns), now_ns));
    }

    /// Opens the device if it is away, and notes how long it was.
    ///
    /// # Errors
    /// That of the attempt, once `patience_ns` has passed.
    pub fn attempt<T, E>(
        &mut self,
        name: impl Display,
        open: impl FnOnce() -> Result<T, E>,
        cx: &mut Context,
    ) -> Result<Attempt<T>, E> {
        let Some((since_ns, begun_ns)) = self.away else { return Ok(Attempt::Present) };
        match open() {
            Ok(device) => {
                self.away = None;
                let away_s = real_ns().saturating_sub(since_ns) as f64 / 1e9;
                cx.note(format!("{name} was away for {away_s:.2} s and is open again"));
                Ok(Attempt::Back(device))
            }
            Err(error) if real_ns() >= begun_ns.saturating_add(self.patience_ns) => Err(error),
            Err(_) => Ok(Attempt::Wait(cx.look_again_in(ATTEMPT_NS))),
        }
    }
}
