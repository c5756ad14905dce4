//! One port for two operators: one that reads and one that writes.

use onbeat_os::serial::{SerialError, SerialPort, SerialSettings};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What an operator does with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortUse {
    Read,
    Write,
}

/// Why a port cannot be had.
#[derive(Debug)]
pub(super) enum LeaseError {
    /// It cannot be opened.
    Port(SerialError),
    /// An operator of this program does the same with it.
    Taken(PortUse),
    /// An operator of this program has it with these settings.
    Settings(SerialSettings),
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaseError::Port(error) => error.fmt(f),
            LeaseError::Taken(PortUse::Read) => {
                f.write_str("another operator reads from it: feed both from one source")
            }
            LeaseError::Taken(PortUse::Write) => {
                f.write_str("another operator writes to it: connect both to one sink")
            }
            LeaseError::Settings(settings) => {
                write!(f, "another operator has it with {settings}: give both the same settings")
            }
        }
    }
}

/// An open port and its users.
#[derive(Debug)]
struct SharedPort {
    port: SerialPort,
    settings: SerialSettings,
    /// Whether there is a reader, and a writer.
    taken: Mutex<[bool; 2]>,
}

/// The open ports of this program, by device number.
static PORTS: Mutex<Vec<(u64, Weak<SharedPort>)>> = Mutex::new(Vec::new());

/// The right to read from a port, or to write to it. The port is closed with the last one.
#[derive(Debug)]
pub(super) struct PortLease {
    shared: Arc<SharedPort>,
    direction: PortUse,
    /// Of this operator only: two cannot wait for one descriptor.
    descriptor: OwnedFd,
}

impl PortLease {
    /// Opens a port, or joins the operator that has it open.
    pub fn take(path: &Path, settings: &SerialSettings, direction: PortUse) -> Result<Self, LeaseError> {
        let system = |error: std::io::Error| LeaseError::Port(SerialError::System(error));
        let device = rustix::fs::stat(path).map_err(|error| system(error.into()))?.st_rdev;
        let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
        ports.retain(|(_, port)| port.strong_count() > 0);
        let open = ports.iter().filter(|(number, _)| *number == device).find_map(|(_, port)| port.upgrade());
        let shared = match open.filter(|shared| !shared.port.has_hung_up()) {
            Some(shared) if shared.settings != *settings => {
                return Err(LeaseError::Settings(shared.settings));
            }
            Some(shared) => shared,
            None => {
                let port = SerialPort::open(path, settings).map_err(LeaseError::Port)?;
                let shared = SharedPort { port, settings: *settings, taken: Mutex::new([false; 2]) };
                let shared = Arc::new(shared);
                ports.push((device, Arc::downgrade(&shared)));
                shared
            }
        };
        let descriptor = shared.port.descriptor().map_err(system)?;
        let mut taken = shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut taken[direction as usize], true) {
            return Err(LeaseError::Taken(direction));
        }
        drop(taken);
        Ok(PortLease { shared, direction, descriptor })
    }

    /// The port.
    pub fn port(&self) -> &SerialPort {
        &self.shared.port
    }
}

impl AsFd for PortLease {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for PortLease {
    fn drop(&mut self) {
        let mut taken = self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken[self.direction as usize] = false;
    }
}
