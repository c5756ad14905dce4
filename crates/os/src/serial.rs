//! Serial ports: raw mode at any rate, for one user at a time, with the old settings back afterwards.

use rustix::fs::{Access, FileType, FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::Errno;
use rustix::termios::{
    ControlModes, InputModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, isatty, tcflush,
    tcgetattr, tcsetattr,
};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Parity bit after the data bits of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SerialParity {
    /// No parity bit.
    #[default]
    None,
    /// Even number of ones.
    Even,
    /// Odd number of ones.
    Odd,
}

/// How the receiver stops the sender while it has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlowControl {
    /// Not at all: characters without room are lost.
    #[default]
    None,
    /// By the lines RTS and CTS.
    RtsCts,
    /// By the characters XON (0x11) and XOFF (0x13), which are then not data.
    XonXoff,
}

/// Settings of a serial port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SerialSettings {
    /// Bits per second on the line, including start, parity and stop bits.
    pub baud: u32,
    /// Data bits per character, 5 to 8.
    pub data_bits: u8,
    /// Parity bit.
    pub parity: SerialParity,
    /// Stop bits, 1 or 2.
    pub stop_bits: u8,
    /// Flow control.
    pub flow: FlowControl,
}

impl Default for SerialSettings {
    /// 115,200 baud, 8 data bits, no parity, 1 stop bit, no flow control.
    fn default() -> Self {
        let (parity, flow) = (SerialParity::None, FlowControl::None);
        SerialSettings { baud: 115_200, data_bits: 8, parity, stop_bits: 1, flow }
    }
}

/// `115200 baud, 8N1`, and the flow control if there is one.
impl fmt::Display for SerialSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parity = match self.parity {
            SerialParity::None => 'N',
            SerialParity::Even => 'E',
            SerialParity::Odd => 'O',
        };
        write!(f, "{} baud, {}{parity}{}", self.baud, self.data_bits, self.stop_bits)?;
        match self.flow {
            FlowControl::None => Ok(()),
            FlowControl::RtsCts => f.write_str(", RTS/CTS"),
            FlowControl::XonXoff => f.write_str(", XON/XOFF"),
        }
    }
}

/// Errors on the line that the driver counted (`TIOCGICOUNT`), since the port was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineErrors {
    /// Characters that the hardware lost because the driver was late.
    pub overruns: u64,
    /// Characters that the driver lost because its buffer was full.
    pub buffer_overruns: u64,
    /// Characters without a stop bit.
    pub framing: u64,
    /// Characters with a wrong parity bit.
    pub parity: u64,
    /// Breaks: the line was low for longer than a character.
    pub breaks: u64,
}

/// Why a serial port cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum SerialError {
    /// It is not a serial port.
    NotSerial,
    /// Another process, or another user in this one, has it.
    Busy,
    /// What the system reports, such as a name that does not exist or missing rights.
    System(io::Error),
}

impl fmt::Display for SerialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SerialError::NotSerial => f.write_str("not a serial port"),
            SerialError::Busy => f.write_str("another program uses it"),
            SerialError::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SerialError {}

impl From<Errno> for SerialError {
    fn from(error: Errno) -> Self {
        if error == Errno::BUSY { SerialError::Busy } else { SerialError::System(error.into()) }
    }
}

/// An open serial port in raw mode. It does not block.
///
/// It is exclusive: by `TIOCEXCL`, which all programs but those of root obey, and by `flock(2)`, which
/// programs obey that ask for it. When it is dropped, it has its old settings again.
#[derive(Debug)]
pub struct SerialPort {
    file: OwnedFd,
    before: Termios,
    obtained: SerialSettings,
    /// Counts of the driver when the port was opened.
    errors: Option<[u32; 5]>,
}

impl SerialPort {
    /// Opens a port. That raises the line DTR, which resets some boards.
    ///
    /// # Errors
    /// If there is no such port, it is in use, or it refuses the settings.
    pub fn open(path: &Path, settings: &SerialSettings) -> Result<Self, SerialError> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        // A file of another kind is not opened for writing.
        Self::check_kind(path)?;
        let file = open(path, flags, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::CharacterDevice || !isatty(&file) {
            return Err(SerialError::NotSerial);
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(SerialError::Busy),
            other => other?,
        }
        let before = tcgetattr(&file)?;
        rustix::termios::ioctl_tiocexcl(&file)?;
        let errors = counts(file.as_fd());
        let mut port = SerialPort { file, before, obtained: *settings, errors };
        let wanted = port.wanted(settings)?;
        // From here on, dropping the port restores its settings.
        tcsetattr(&port.file, OptionalActions::Now, &wanted)?;
        port.obtained = read_back(&tcgetattr(&port.file)?);
        Ok(port)
    }

    /// Looks whether there is such a port, and whether this process may read and write it, without opening
    /// it.
    ///
    /// # Errors
    /// If that is not so.
    pub fn look(path: &Path) -> Result<(), SerialError> {
        Self::check_kind(path)?;
        Ok(rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK)?)
    }

    fn check_kind(path: &Path) -> Result<(), SerialError> {
        let kind = FileType::from_raw_mode(rustix::fs::stat(path)?.st_mode);
        if kind == FileType::CharacterDevice { Ok(()) } else { Err(SerialError::NotSerial) }
    }

    /// The port's modes with these settings.
    fn wanted(&self, settings: &SerialSettings) -> Result<Termios, SerialError> {
        let mut wanted = self.before.clone();
        wanted.make_raw();
        wanted.control_modes -= ControlModes::CSIZE | ControlModes::PARENB | ControlModes::PARODD;
        wanted.control_modes -= ControlModes::CMSPAR | ControlModes::CSTOPB | ControlModes::CRTSCTS;
        // The modem's lines are not asked whether somebody is there.
        wanted.control_modes |= ControlModes::CREAD | ControlModes::CLOCAL;
        wanted.input_modes -= InputModes::IXON | InputModes::IXOFF | InputModes::IXANY | InputModes::INPCK;
        wanted.control_modes |= match settings.data_bits {
            5 => ControlModes::CS5,
            6 => ControlModes::CS6,
            7 => ControlModes::CS7,
            _ => ControlModes::CS8,
        };
        wanted.control_modes |= match settings.parity {
            SerialParity::None => ControlModes::empty(),
            SerialParity::Even => ControlModes::PARENB,
            SerialParity::Odd => ControlModes::PARENB | ControlModes::PARODD,
        };
        if settings.stop_bits == 2 {
            wanted.control_modes |= ControlModes::CSTOPB;
        }
        match settings.flow {
            FlowControl::None => {}
            FlowControl::RtsCts => wanted.control_modes |= ControlModes::CRTSCTS,
            FlowControl::XonXoff => {
                wanted.input_modes |= InputModes::IXON | InputModes::IXOFF;
                wanted.special_codes[SpecialCodeIndex::VSTART] = 0x11;
                wanted.special_codes[SpecialCodeIndex::VSTOP] = 0x13;
            }
        }
        // A read without data says that there is none; 0 bytes are the end.
        wanted.special_codes[SpecialCodeIndex::VMIN] = 1;
        wanted.special_codes[SpecialCodeIndex::VTIME] = 0;
        wanted.set_speed(settings.baud)?;
        Ok(wanted)
    }

    /// The settings that the driver has. Pseudo-terminals have 8 data bits and no parity, whatever is asked.
    #[must_use]
    pub fn obtained(&self) -> SerialSettings {
        self.obtained
    }

    /// Reads what has arrived. 0 bytes: the device has gone.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived; otherwise what `read(2)` reports.
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.file, bytes)?)
    }

    /// Writes as many bytes as the driver has room for.
    ///
    /// # Errors
    /// `WouldBlock` if it has none; otherwise what `write(2)` reports.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.file, bytes)?)
    }

    /// Number of bytes that have arrived and were not read.
    #[must_use]
    pub fn unread(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.file).unwrap_or(0)
    }

    /// Number of bytes that were written and not sent. Drivers of pseudo-terminals do not tell.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        crate::socket::unacknowledged(&self.file).unwrap_or(0)
    }

    /// Drops bytes that were written and not sent.
    pub fn drop_unsent(&self) {
        // A device that has gone has none.
        let _gone = tcflush(&self.file, QueueSelector::OFlush);
    }

    /// Returns the errors since the port was opened; `None` if the driver does not count them.
    #[must_use]
    pub fn errors(&self) -> Option<LineErrors> {
        let (before, now) = (self.errors?, counts(self.file.as_fd())?);
        let since = |at: usize| u64::from(now[at].wrapping_sub(before[at]));
        Some(LineErrors {
            framing: since(0),
            overruns: since(1),
            parity: since(2),
            breaks: since(3),
            buffer_overruns: since(4),
        })
    }

    /// Whether the device has gone.
    #[must_use]
    pub fn has_hung_up(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut files = [PollFd::new(&self.file, PollFlags::empty())];
        let polled = poll(&mut files, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        polled.is_ok() && files[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// Returns another descriptor of the port, to wait for.
    ///
    /// # Errors
    /// If the process has too many open files.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(rustix::io::fcntl_dupfd_cloexec(&self.file, 0)?)
    }
}

impl AsFd for SerialPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SerialPort {
    fn drop(&mut self) {
        // With bytes that wait for a receiver, a drain could last for ever.
        let when = if self.unsent() == 0 { OptionalActions::Drain } else { OptionalActions::Now };
        // A device that has gone needs no restoring.
        let _gone = tcsetattr(&self.file, when, &self.before);
        let _open = rustix::termios::ioctl_tiocnxcl(&self.file);
    }
}

fn read_back(found: &Termios) -> SerialSettings {
    let has = |mode| found.control_modes.contains(mode);
    let size = found.control_modes & ControlModes::CSIZE;
    let data_bits = match size {
        size if size == ControlModes::CS5 => 5,
        size if size == ControlModes::CS6 => 6,
        size if size == ControlModes::CS7 => 7,
        _ => 8,
    };
    let parity = match (has(ControlModes::PARENB), has(ControlModes::PARODD)) {
        (false, _) => SerialParity::None,
        (true, false) => SerialParity::Even,
        (true, true) => SerialParity::Odd,
    };
    let flow = match (has(ControlModes::CRTSCTS), found.input_modes.contains(InputModes::IXON)) {
        (true, _) => FlowControl::RtsCts,
        (false, true) => FlowControl::XonXoff,
        (false, false) => FlowControl::None,
    };
    let stop_bits = if has(ControlModes::CSTOPB) { 2 } else { 1 };
    SerialSettings { baud: found.output_speed(), data_bits, parity, stop_bits, flow }
}

/// Framing errors, overruns, parity errors, breaks and overruns of the buffer, from `struct
/// serial_icounter_struct`; `None` if the driver does not count.
fn counts(port: BorrowedFd<'_>) -> Option<[u32; 5]> {
    // Modem lines (4), received, sent, the five of the result, 9 reserved ones.
    let mut counts = [0_u32; 20];
    // SAFETY: the request writes one `struct serial_icounter_struct`, which has 20 numbers of 32 bits, to a
    // local variable of that size.
    let status = unsafe { libc::ioctl(port.as_raw_fd(), libc::TIOCGICOUNT, counts.as_mut_ptr()) };
    (status == 0).then(|| [counts[6], counts[7], counts[8], counts[9], counts[10]])
}
