//! A CAN interface from its opening to its end, also over times without it.

use crate::streams::{real_ns, usual_ns};
use onbeat_os::can::{CanError, CanReception, CanSocket, is_removed};
use onbeat_runtime::{Context, Error, Step};
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Time from one attempt to open an interface that is away to the next.
const ATTEMPT_NS: u64 = 50_000_000;
/// Most bytes of the name of an interface.
const NAME: usize = 15;

/// Checks the name of an interface.
pub(super) fn check_interface(name: &str) -> Result<(), Error> {
    let is_good = |name: &str| !name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
    if (1..=NAME).contains(&name.len()) && is_good(name) {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME).flat_map(char::escape_debug).collect();
    Err(Error::new(format!(
        "`interface` is `{shown}`: the name of an interface has 1 to {NAME} bytes without spaces and `/`, such as \
         `can0`"
    )))
}

/// An interface and its state.
pub(super) struct CanInterface {
    pub name: String,
    /// Time in nanoseconds to wait for an interface that went down, after a restart.
    pub patience_ns: u64,
    pub reception: CanReception,
    pub socket: Option<CanSocket>,
    /// Real times at which it went away, and at which the present attempts began.
    away: Option<(u64, u64)>,
}

impl CanInterface {
    pub fn new(name: String, reception: CanReception) -> Self {
        CanInterface { name, patience_ns: usual_ns(), reception, socket: None, away: None }
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

    /// Closes the interface after a failed step. The next steps open it again.
    pub fn restart(&mut self) {
        let now_ns = real_ns();
        self.socket = None;
        self.away = Some((self.away.map_or(now_ns, |(since_ns, _)| since_ns), now_ns));
    }

    /// Makes an attempt to open the interface, unless it is open. Returns the result of the step if it is
    /// not.
    pub fn open(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        let Some((since_ns, begun_ns)) = self.away else {
            return Ok(self.socket.is_none().then_some(Step::Done));
        };
        let socket = CanSocket::open(&self.name, &self.reception);
        match socket.and_then(|socket| if socket.is_on_bus() { Ok(socket) } else { Err(CanError::OffBus) }) {
            Ok(socket) => {
                let away_s = real_ns().saturating_sub(since_ns) as f64 / 1e9;
                cx.note(format!("{} was away for {away_s:.2} s and is open again", self.name));
                (self.socket, self.away) = (Some(socket), None);
                Ok(None)
            }
            Err(error) if real_ns() >= begun_ns.saturating_add(self.patience_ns) => {
                Err(self.cannot_open(&error))
            }
            Err(_) => Ok(Some(cx.look_again_in(ATTEMPT_NS))),
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
