//! A device from its opening to its end, also over times without it.

use super::SoundSetup;
use crate::buses::away::{Attempt, DeviceAbsence};
use crate::streams::real_ns;
use onbeat_os::sound::{SoundCard, SoundError, SoundSettings, SoundStatus, SoundUse, devices};
use onbeat_runtime::{Context, Error, Step};
use onbeat_trace::record::Obtained;
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;

// Numbers of errors: see errno(3).
const NOT_THERE: [i32; 3] = [2, 6, 19];
const REFUSED: [i32; 2] = [1, 13];
const BUSY: i32 = 16;
/// Most names in a message.
const SHOWN: usize = 12;
/// Oldest time stamp that is believed, in nanoseconds: those of some plugins are on another clock.
const OLDEST_NS: u64 = 10_000_000_000;

/// A device and its state.
pub(super) struct SoundDevice {
    pub setup: SoundSetup,
    way: SoundUse,
    card: Option<SoundCard>,
    absence: DeviceAbsence,
}

/// What `SoundDevice::open` has found.
pub(super) enum SoundOpening {
    /// It is open, and was before.
    Open,
    /// It was away, and is open now.
    Back,
    /// It is away; the step ends with this.
    Away(Step),
}

impl SoundDevice {
    pub fn new(setup: SoundSetup, way: SoundUse) -> Self {
        let absence = DeviceAbsence::with_patience(setup.patience_ns);
        SoundDevice { setup, way, card: None, absence }
    }

    /// Opens the device before the first step. It has to be there.
    pub fn start(&mut self, cx: &mut Context) -> Result<SoundSettings, Error> {
        let card = self.take().map_err(|error| self.cannot_open(&error))?;
        let (asked, settings) = (self.asked(), *card.settings());
        self.card = Some(card);
        let format = code(&settings).unwrap_or_default();
        let reason = "the device, or the server behind it, has no other near this";
        for (what, asked, obtained) in [
            ("sample rate", hertz(asked.rate_hz), hertz(settings.rate_hz)),
            ("period", frames(asked.period, asked.rate_hz), frames(settings.period, settings.rate_hz)),
            ("buffer", frames(asked.buffer, asked.rate_hz), frames(settings.buffer, settings.rate_hz)),
            ("format", code(&asked).unwrap_or_else(|| format.clone()), format),
        ] {
            let reason = (asked != obtained).then(|| reason.to_string());
            cx.obtained(Obtained { what: what.to_string(), asked, obtained, reason })?;
        }
        Ok(settings)
    }

    /// Looks whether the device could be used now.
    pub fn look(&self) -> Result<(), Error> {
        self.take().map(drop).map_err(|error| self.cannot_open(&error))
    }

    /// Closes the device after a failed step. The next steps open it again.
    pub fn restart(&mut self) {
        self.card = None;
        self.absence.begin();
    }

    /// Makes an attempt to open the device, unless it is open.
    pub fn open(&mut self, cx: &mut Context) -> Result<SoundOpening, Error> {
        if self.card.is_some() {
            return Ok(SoundOpening::Open);
        }
        let mut absence = self.absence;
        let attempt = absence.attempt(self.name(), || self.take(), cx);
        self.absence = absence;
        match attempt.map_err(|error| self.cannot_open(&error))? {
            Attempt::Present => Ok(SoundOpening::Away(Step::Done)),
            Attempt::Back(card) => {
                self.card = Some(card);
                Ok(SoundOpening::Back)
            }
            Attempt::Wait(step) => Ok(SoundOpening::Away(step)),
        }
    }

    /// Closes the device at the end of the run.
    pub fn stop(&mut self) {
        if let Some(card) = self.card.take() {
            card.stop();
        }
        self.absence.end();
    }

    /// The open device.
    pub fn card(&mut self) -> Result<&mut SoundCard, Error> {
        self.card.as_mut().ok_or_else(|| Error::new("the device is not open"))
    }

    /// Its position, at a time that can be believed.
    pub fn status(&mut self) -> Result<(SoundStatus, u64), Error> {
        let status = self.card()?.status().map_err(|error| self.gone(&error))?;
        let now_ns = real_ns();
        let is_near = |at_ns: &u64| *at_ns <= now_ns && now_ns - at_ns < OLDEST_NS;
        Ok((status, status.at_ns.filter(is_near).unwrap_or(now_ns)))
    }

    /// Waits until it is ready, or until a time on the run's clock.
    pub fn wait(&mut self, until_ns: Option<u64>, cx: &mut Context) -> Result<Step, Error> {
        let card = self.card()?;
        card.before_wait();
        match until_ns {
            Some(until_ns) => cx.readable_until(card, until_ns),
            None => cx.readable(card),
        }
    }

    fn take(&self) -> Result<SoundCard, SoundError> {
        SoundCard::open(&self.setup.device, self.way, &self.asked())
    }

    fn asked(&self) -> SoundSettings {
        let SoundSetup { rate_hz, channels, period_s, periods, format, .. } = self.setup;
        let period = (period_s * f64::from(rate_hz)).round().max(1.0) as u32;
        let buffer = period.saturating_mul(periods);
        SoundSettings { rate_hz, channels: channels as u32, code: format.map(Into::into), period, buffer }
    }

    /// The device's name, for messages.
    pub fn name(&self) -> String {
        self.setup.device.clone()
    }

    /// The error of a device that went away.
    pub fn gone(&self, why: impl Display) -> Error {
        Error::new(format!(
            "{} has gone ({why}): is it unplugged, or has the sound server ended? With `on_error = \"restart\"` the \
             operator waits for it",
            self.name()
        ))
    }

    fn cannot_open(&self, error: &SoundError) -> Error {
        let name = self.name();
        let SoundError::System { errno, said, .. } = error else {
            let SoundError::Setting { what, .. } = error else {
                return Error::new(format!("{name}: {error}"));
            };
            let parameter = if *what == "format" { "format" } else { "channels" };
            return Error::new(format!(
                "cannot use {name}: {error}: set `{parameter}` to one of these{}",
                converting(&name)
                    .map_or_else(String::new, |plug| format!(", or use `{plug}`, which converts"))
            ));
        };
        let why = match *errno {
            _ if self.is_forbidden(*errno) => {
                "you have no right to use sound cards: `sudo usermod -aG audio $USER` grants it from the next login on"
                    .to_string()
            }
            errno if NOT_THERE.contains(&errno) => {
                // The first line has the cause, the others what follows from it.
                let first = said.lines().find(|line| !line.trim().is_empty());
                format!("there is no such device; {}{}", self.others(), says(first))
            }
            BUSY => format!("it is busy: {}; close that program, or use the sound server: `default`", users()),
            _ => {
                let last = said.lines().rfind(|line| !line.trim().is_empty());
                format!("{error}{}", says(last))
            }
        };
        Error::new(format!("cannot open {name}: {why}"))
    }

    /// Whether there are sound cards that this user must not open. ALSA then says that there are none.
    fn is_forbidden(&self, errno: i32) -> bool {
        if REFUSED.contains(&errno) {
            return true;
        }
        let refused = |entry: fs::DirEntry| {
            let is_card = entry.file_name().to_string_lossy().starts_with("control");
            is_card && fs::File::open(entry.path()).is_err_and(|e| e.kind() == ErrorKind::PermissionDenied)
        };
        let cards = fs::read_dir("/dev/snd");
        NOT_THERE.contains(&errno) && cards.is_ok_and(|cards| cards.flatten().any(refused))
    }

    fn others(&self) -> String {
        let mut names = devices(self.way);
        let what = if self.way == SoundUse::Capture { "capture" } else { "play" };
        if !names.iter().any(|name| name.starts_with("hw:")) {
            return format!(
                "no sound card here can {what} (`cat /proc/asound/cards` lists them): is it plugged in, is its driver loaded?"
            );
        }
        let left = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        let more = if left > 0 { format!(", and {left} more") } else { String::new() };
        format!("devices that can {what}: {}{more}", names.join(", "))
    }
}

/// A line of ALSA's library, if there is one, at the end of a message.
fn says(line: Option<&str>) -> String {
    line.map_or_else(String::new, |line| format!("; ALSA says: {}", line.trim()))
}

/// Name of a device with ALSA's conversions before it; `None` if they are there already.
fn converting(name: &str) -> Option<String> {
    if name.starts_with("plug:") || name.starts_with("plughw:") {
        return None;
    }
    if name.starts_with("hw:") {
        return Some(format!("plug{name}"));
    }
    // What has parameters of its own is quoted.
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    Some(if is_plain { format!("plug:{name}") } else { format!("plug:'{name}'") })
}

fn code(settings: &SoundSettings) -> Option<String> {
    settings.code.map(|code| code.to_string())
}

fn hertz(rate_hz: u32) -> String {
    format!("{rate_hz} Hz")
}

fn frames(count: u32, rate_hz: u32) -> String {
    format!("{count} frames ({:.3} ms)", f64::from(count) * 1e3 / f64::from(rate_hz))
}

/// Programs that use sound cards, as the kernel's files say.
fn users() -> String {
    let below = |path: &str| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut users: Vec<String> = Vec::new();
    for card in below("/proc/asound").filter(|path| path.join("id").exists()) {
        for part in below(&card.to_string_lossy()).flat_map(|device| below(&device.to_string_lossy())) {
            let status = fs::read_to_string(part.join("status")).unwrap_or_default();
            let owner = status.lines().find_map(|line| line.strip_prefix("owner_pid")?.split(':').nth(1));
            let Some(pid) = owner.map(str::trim) else { continue };
            let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let user = format!("{} (process {pid})", program.trim());
            if !users.contains(&user) {
                users.push(user);
            }
        }
    }
    if users.is_empty() {
        return "another program uses it".to_string();
    }
    format!("sound cards here are used by {}", users.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_named_as_alsa_names_them() {
        for (name, expected) in [
            ("hw:CARD=A,DEV=1", Some("plughw:CARD=A,DEV=1")),
            ("multi", Some("plug:multi")),
            ("sysdefault:CARD=A", Some("plug:'sysdefault:CARD=A'")),
            ("plughw:0", None),
            ("plug:multi", None),
        ] {
            assert_eq!(converting(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn what_alsa_has_not_said_is_left_out() {
        assert_eq!(says(None), "");
        assert_eq!(says(Some("open: Unknown PCM x ")), "; ALSA says: open: Unknown PCM x");
    }
}
