//! A CAN interface from its opening to its end, also over times without it.

use super::super::away::{Attempt, DeviceAbsence};
use crate::check;
use onbeat_os::can::{CanError, CanReception, CanSocket, is_removed};
use onbeat_runtime::{Context, Error, Step};
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Most bytes of the name of an interface.
const NAME: usize = 15;

/// Checks the name of an interface.
pub(super) fn check_interface(name: &str) -> Result<(), Error> {
    let is_good = |name: &str| !name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
    if (1..=NAME).contains(&name.len()) && is_good(name) {
        return Ok(());
    }
    let shown = check::shown(name);
    Err(Error::new(format!(
        "`interface` is `{shown}`: the name of an interface has 1 to {NAME} bytes without spaces and `/`, such as \
         `can0`"
    )))
}

/// An interface and its state.
pub(super) struct CanInterface {
    pub name: String,
    pub absence: DeviceAbsence,
    pub reception: CanReception,
    pub socket: Option<CanSocket>,
}

impl CanInterface {
    pub fn new(name: String, reception: CanReception) -> Self {
        CanInterface { name, absence: DeviceAbsence::default(), reception, socket: None }
    }

    /// Opens the interface before the first step. It has to be up.
    pub fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let socket = CanSocket::open(&self.name, &self.reception);
        let socket = socket.map_err(|error| self.cannot_open(&error))?;
        if !socket.is_on_bus() {
            cx.note(format!("{} had no carrier at the start: has its controller left the bus?", self.name));
        }
        self.socket = Some(socket);
        Ok(())
    }

    /// Looks whether the interface is there and up.
    pub fn look(&self) -> Result<(), Error> {
        CanSocket::open(&self.name, &self.reception).map(drop).map_err(|error| self.cannot_open(&error))
    }

    /// Closes the interface after a failed step. The next steps open it again.
    pub fn restart(&mut self) {
        self.socket = None;
        self.absence.begin();
    }

    /// Makes an attempt to open the interface, unless it is open. Returns the result of the step if it is
    /// not.
    pub fn open(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        let open = || {
            let socket = CanSocket::open(&self.name, &self.reception)?;
            if socket.is_on_bus() { Ok(socket) } else { Err(CanError::OffBus) }
        };
        let attempt = self.absence.attempt(&self.name, open, cx);
        match attempt.map_err(|error| self.cannot_open(&error))? {
            Attempt::Present => Ok(self.socket.is_none().then_some(Step::Done)),
            Attempt::Back(socket) => {
                self.socket = Some(socket);
                Ok(None)
            }
            Attempt::Wait(step) => Ok(Some(step)),
        }
    }

    /// The error of a call that failed.
    pub fn broken(&self, error: &std::io::Error) -> Error {
        let text = match error.kind() {
            ErrorKind::NetworkDown => "it went down".to_string(),
            _ if is_removed(error) => "it was removed".to_string(),
            _ => error.to_string(),
        };
        self.gone(text)
    }

    /// The error of an interface that cannot be used any more.
    pub fn gone(&self, why: impl Display) -> Error {
        let name = &self.name;
        Error::new(format!("{name}: {why}. With `on_error = \"restart\"` the operator waits for it"))
    }

    fn cannot_open(&self, error: &CanError) -> Error {
        let name = &self.name;
        let text = match error {
            CanError::NoCan => "the kernel has no CAN: `modprobe can_raw` loads it".to_string(),
            CanError::Absent => format!("there is no such interface; {}", interfaces_here()),
            CanError::NotCan => format!("it is not a CAN interface; {}", interfaces_here()),
            CanError::Down if is_virtual(name) => format!("it is down: `ip link set {name} up` starts it"),
            CanError::Down => format!(
                "it is down: `ip link set {name} up type can bitrate 500000` starts it, with the bit rate of the \
                 bus"
            ),
            CanError::OffBus => format!(
                "its controller has left the bus (bus-off): `ip link set {name} type can restart` lets it come \
                 back, and with `restart-ms 100` it does on its own"
            ),
            error => error.to_string(),
        };
        Error::new(format!("cannot open {name}: {text}"))
    }
}

/// Whether an interface has no hardware, and so no bit rate.
fn is_virtual(name: &str) -> bool {
    !Path::new("/sys/class/net").join(name).join("device").exists()
}

/// Names the CAN interfaces of this machine.
fn interfaces_here() -> String {
    const KIND: &str = "280";
    const SHOWN: usize = 8;
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let is_can = |entry: &fs::DirEntry| {
        fs::read_to_string(entry.path().join("type")).is_ok_and(|kind| kind.trim() == KIND)
    };
    let mut names: Vec<String> =
        entries.filter(is_can).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    if names.is_empty() {
        return "this machine has none: `ip link add dev vcan0 type vcan` makes a virtual one".to_string();
    }
    names.truncate(SHOWN);
    format!("CAN interfaces here: {}", names.join(", "))
}
