//! A serial line from its opening to its end, also over times without the device.

use super::super::away::{Attempt, DeviceAbsence};
use super::shared::{LeaseError, PortLease, PortUse};
use crate::streams::usual_ns;
use onbeat_os::serial::{LineErrors, SerialError, SerialPort, SerialSettings};
use onbeat_runtime::{Context, Error, Step};
use onbeat_trace::record::Obtained;
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Largest difference of the rates of two ends that still understand each other, as a share.
const RATE_TOLERANCE: f64 = 0.02;
/// Unit of losses.
pub(super) const BYTES: &str = "bytes";
/// Reason of losses.
const OVERRUN: &str = "the port lost them because they were not taken in time (overrun): use flow control or a \
                       lower `baud`";

/// Which port, and how.
#[derive(Debug, Clone)]
pub struct SerialSetup {
    /// The device, such as `/dev/ttyUSB0`.
    pub path: PathBuf,
    /// Rate, form of the characters, flow control.
    pub settings: SerialSettings,
    /// Time in nanoseconds to wait for a device that went away, after a restart; for sinks also the time for
    /// it to take the rest at the end.
    pub patience_ns: u64,
}

impl SerialSetup {
    /// A port with 115,200 baud, 8N1, no flow control, and a patience of 10 s.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let settings = SerialSettings::default();
        SerialSetup { path: path.into(), settings, patience_ns: usual_ns() }
    }
}

/// A line and its state.
pub(super) struct SerialLine {
    pub setup: SerialSetup,
    direction: PortUse,
    lease: Option<PortLease>,
    absence: DeviceAbsence,
    errors: LineErrors,
}

impl SerialLine {
    pub fn new(setup: SerialSetup, direction: PortUse) -> Self {
        let absence = DeviceAbsence::with_patience(setup.patience_ns);
        SerialLine { setup, direction, lease: None, absence, errors: LineErrors::default() }
    }

    /// The path, for messages.
    pub fn name(&self) -> impl Display {
        self.setup.path.display()
    }

    /// Opens the device before the first step. It has to be there.
    pub fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let lease = self.take().map_err(|error| self.cannot_open(&error))?;
        let asked = self.setup.settings;
        let obtained = lease.port().obtained();
        self.lease = Some(lease);
        if self.direction == PortUse::Write && asked == obtained {
            return Ok(());
        }
        cx.obtained(Obtained {
            what: "line".to_string(),
            asked: asked.to_string(),
            obtained: obtained.to_string(),
            reason: differs(&asked, &obtained),
        })
    }

    /// Looks whether the device is there and may be used. It does not open it: that would reset boards which
    /// hang on its control lines.
    pub fn look(&self) -> Result<(), Error> {
        SerialPort::look(&self.setup.path).map_err(|error| self.cannot_open(&LeaseError::Port(error)))
    }

    /// Closes the device after a failed step. The next steps open it again.
    pub fn restart(&mut self, cx: &mut Context) {
        self.close(cx);
        self.absence.begin();
    }

    /// Makes an attempt to open the device, unless it is open. Returns the result of the step if it is not.
    pub fn open(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        let mut absence = self.absence;
        let attempt = absence.attempt(self.name(), || self.take(), cx);
        self.absence = absence;
        match attempt.map_err(|error| self.cannot_open(&error))? {
            Attempt::Present => Ok(self.lease.is_none().then_some(Step::Done)),
            Attempt::Back(lease) => {
                self.lease = Some(lease);
                Ok(None)
            }
            Attempt::Wait(step) => Ok(Some(step)),
        }
    }

    fn take(&self) -> Result<PortLease, LeaseError> {
        PortLease::take(&self.setup.path, &self.setup.settings, self.direction)
    }

    /// Reads what has arrived; `None` if that is nothing.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<Option<usize>, Error> {
        let Some(lease) = &self.lease else { return Ok(None) };
        match lease.port().read(bytes) {
            Ok(0) if !bytes.is_empty() => Err(self.gone("it reads the end of the file")),
            Ok(count) => Ok(Some(count)),
            Err(error) if is_later(error.kind()) => Ok(None),
            Err(error) => Err(self.gone(error)),
        }
    }

    /// Writes what there is room for; `None` if that is nothing.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let Some(lease) = &self.lease else { return Ok(None) };
        match lease.port().write(bytes) {
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(count)),
            Err(error) if is_later(error.kind()) => Ok(None),
            Err(error) => Err(self.gone(error)),
        }
    }

    /// The open port, to wait for.
    pub fn lease(&self) -> Option<&PortLease> {
        self.lease.as_ref()
    }

    /// Number of bytes that have come until the run was stopped and were not read.
    pub fn unread(&self, cx: &Context) -> u64 {
        let unread = self.lease.as_ref().map_or(0, |lease| lease.port().unread());
        // A character has 10 bits or so.
        let rate = f64::from(self.setup.settings.baud) / 10.0;
        let later = cx.stopped_for_ns().unwrap_or(0) as f64 / 1e9 * rate;
        unread.saturating_sub(later.ceil() as u64)
    }

    /// Closes the device, and adds up what its driver has counted.
    pub fn close(&mut self, _: &mut Context) {
        let Some(lease) = self.lease.take() else { return };
        if let (PortUse::Read, Some(more)) = (self.direction, lease.port().errors()) {
            let LineErrors { overruns, buffer_overruns, framing, parity, breaks } = &mut self.errors;
            *overruns += more.overruns;
            *buffer_overruns += more.buffer_overruns;
            *framing += more.framing;
            *parity += more.parity;
            *breaks += more.breaks;
        }
    }

    /// Closes the device at the end of the run, and tells of errors on the line.
    pub fn stop(&mut self, cx: &mut Context) {
        self.close(cx);
        self.absence.end();
        let LineErrors { overruns, buffer_overruns, framing, parity, breaks } =
            std::mem::take(&mut self.errors);
        cx.lose(overruns + buffer_overruns, BYTES, OVERRUN);
        for (count, what) in [
            (framing, "characters without a stop bit were received: is `baud` right?"),
            (parity, "characters had a wrong parity bit"),
            (breaks, "breaks were received, each as a byte of 0"),
        ] {
            if count > 0 {
                cx.note(format!("{}: {count} {what}", self.name()));
            }
        }
    }

    /// The error of a device that went away.
    fn gone(&self, why: impl Display) -> Error {
        Error::new(format!(
            "{} has gone ({why}): is it unplugged? With `on_error = \"restart\"` the operator waits for it",
            self.name()
        ))
    }

    fn cannot_open(&self, error: &LeaseError) -> Error {
        let path = self.name();
        let LeaseError::Port(error) = error else { return Error::new(format!("cannot use {path}: {error}")) };
        let text = match error {
            SerialError::NotSerial => format!("it is not a serial port; {}", ports_here()),
            SerialError::Busy => {
                format!("another program uses it: end that program; `fuser -v {path}` names it")
            }
            SerialError::System(error) => match error.kind() {
                ErrorKind::NotFound => format!("there is no such file; {}", ports_here()),
                ErrorKind::PermissionDenied => format!(
                    "no rights: add the user to the group that `ls -lL {path}` shows, with `usermod -aG dialout \
                     USER`, and log in again"
                ),
                ErrorKind::InvalidInput => format!("it refuses {}", self.setup.settings),
                _ => format!("{error}; {}", ports_here()),
            },
            error => error.to_string(),
        };
        Error::new(format!("cannot open {path}: {text}"))
    }
}

fn is_later(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// How the settings differ, if so.
fn differs(asked: &SerialSettings, obtained: &SerialSettings) -> Option<String> {
    let share = f64::from(obtained.baud) / f64::from(asked.baud) - 1.0;
    if share.abs() > RATE_TOLERANCE {
        return Some(format!(
            "the port cannot do this rate: its own differs by {:.1} %, and up to 2 % are good",
            share * 100.0
        ));
    }
    let same = SerialSettings { baud: asked.baud, ..*obtained };
    (same != *asked).then(|| "the driver does not support it, as those of pseudo-terminals".to_string())
}

/// Names the serial ports of this machine.
fn ports_here() -> String {
    const SHOWN: usize = 8;
    let names = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let mut ports: Vec<String> = names("/sys/class/tty")
        .iter()
        .filter(|port| is_port(port))
        .filter_map(|port| Some(format!("/dev/{}", port.file_name()?.to_str()?)))
        .collect();
    ports.extend(names("/dev/serial/by-id").iter().map(|path| path.display().to_string()));
    if ports.is_empty() {
        return "this machine has no serial port: is it plugged in?".to_string();
    }
    let left = ports.len().saturating_sub(SHOWN);
    ports.truncate(SHOWN);
    let more = if left > 0 { format!(", and {left} more") } else { String::new() };
    format!("serial ports here: {}{more}", ports.join(", "))
}

/// Whether a terminal of /sys/class/tty has hardware. Ports of the old kind are there without, with type 0.
fn is_port(terminal: &Path) -> bool {
    let kind = fs::read_to_string(terminal.join("type"));
    terminal.join("device").exists() && kind.map_or(true, |kind| kind.trim() != "0")
}
