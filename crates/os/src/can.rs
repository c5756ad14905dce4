//! CAN interfaces (SocketCAN): whole frames, with the kernel's receive time and the number of dropped ones.
//!
//! A frame is here in the kernel's form, `struct can_frame` (16 bytes) or `struct canfd_frame` (72 bytes) of
//! linux/can.h: identifier and its flags (4 bytes), length, flags of CAN FD, two bytes that are not used,
//! data.

use crate::socket_message::{dropped, receive, set_flag, set_option, set_receive_buffer};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of a frame of classical CAN.
pub const CLASSIC_BYTES: usize = 16;
/// Bytes of a frame of CAN FD.
pub const FD_BYTES: usize = 72;
/// Flag of an identifier: it has 29 bits.
pub const EXTENDED_FLAG: u32 = 1 << 31;
/// Flag of an identifier: a request for data.
pub const REMOTE_FLAG: u32 = 1 << 30;
/// Flag of an identifier: the frame was made by the driver and tells of an error.
pub const ERROR_FLAG: u32 = 1 << 29;
/// In an identifier of a filter: frames that do not match pass.
pub const INVERTED_FLAG: u32 = 1 << 29;
/// All classes of errors.
pub const ALL_ERRORS: u32 = 0x1fff_ffff;
/// Class of errors: the controller has left the bus.
pub const BUS_OFF: u32 = 0x40;

/// Number of the kernel for raw sockets (`CAN_RAW`).
const RAW: u32 = 1;
/// Number of the type of CAN interfaces (`ARPHRD_CAN`).
const CAN_HARDWARE: u16 = 280;
/// Bytes of the longest name of an interface, and a 0.
const NAME: usize = 16;

/// Why an interface cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum CanError {
    /// The kernel has no CAN.
    NoCan,
    /// There is no interface of this name.
    Absent,
    /// The interface is not one of CAN.
    NotCan,
    /// The interface is down.
    Down,
    /// The controller has left the bus.
    OffBus,
    /// What the system reports.
    System(io::Error),
}

impl fmt::Display for CanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CanError::NoCan => f.write_str("the kernel has no CAN"),
            CanError::Absent => f.write_str("there is no such interface"),
            CanError::NotCan => f.write_str("not a CAN interface"),
            CanError::Down => f.write_str("the interface is down"),
            CanError::OffBus => f.write_str("the controller has left the bus (bus-off)"),
            CanError::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CanError {}

impl From<io::Error> for CanError {
    fn from(error: io::Error) -> Self {
        CanError::System(error)
    }
}

/// Which frames a socket receives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CanReception {
    /// Identifiers and masks, with flags: a frame passes if it matches one of them. `None`: all frames.
    pub filters: Option<Vec<(u32, u32)>>,
    /// Classes of errors of which frames tell.
    pub errors: u32,
    /// Whether times of the hardware are asked for.
    pub hardware_times: bool,
}

/// A frame from a [`CanSocket`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedFrame {
    /// Number of its bytes: [`CLASSIC_BYTES`] or [`FD_BYTES`].
    pub length: usize,
    /// Time at which the kernel received it, on `CLOCK_REALTIME`.
    pub stamped_ns: Option<u64>,
    /// Time at which the controller received it, on its own clock.
    pub hardware_ns: Option<u64>,
    /// Number of frames that the kernel had dropped, since the socket was made and up to this one. It starts
    /// over after `u32::MAX`.
    pub dropped: u32,
}

/// A socket for the frames of one interface. It does not block.
#[derive(Debug)]
pub struct CanSocket {
    socket: OwnedFd,
    carries_fd: bool,
    is_on_bus: bool,
}

impl CanSocket {
    /// Opens an interface.
    ///
    /// # Errors
    /// If there is no such interface, it is down, or the kernel has no CAN.
    pub fn open(interface: &str, reception: &CanReception) -> Result<Self, CanError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = std::num::NonZeroU32::new(RAW).map(Protocol::from_raw);
        let socket = rustix::net::socket_with(AddressFamily::CAN, SocketType::RAW, flags, protocol);
        let socket = socket.map_err(|error| match error {
            Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT => CanError::NoCan,
            error => CanError::System(error.into()),
        })?;
        let index = name_to_index(&socket, interface).map_err(|error| match error {
            Errno::NODEV => CanError::Absent,
            error => CanError::System(error.into()),
        })?;
        let [high, low, ..] = ask(socket.as_fd(), interface, libc::SIOCGIFHWADDR)?;
        if u16::from_ne_bytes([high, low]) != CAN_HARDWARE {
            return Err(CanError::NotCan);
        }
        let [low, high, ..] = ask(socket.as_fd(), interface, libc::SIOCGIFFLAGS)?;
        let flags = i32::from(i16::from_ne_bytes([low, high]));
        if flags & libc::IFF_UP == 0 {
            return Err(CanError::Down);
        }
        let [a, b, c, d, ..] = ask(socket.as_fd(), interface, libc::SIOCGIFMTU)?;
        let carries_fd = i32::from_ne_bytes([a, b, c, d]) >= FD_BYTES as i32;
        let socket = CanSocket { socket, carries_fd, is_on_bus: flags & libc::IFF_RUNNING != 0 };
        socket.receive_only(reception)?;
        socket.bind(index)?;
        Ok(socket)
    }

    fn receive_only(&self, reception: &CanReception) -> io::Result<()> {
        let raw = |option, value: &[u8]| set_option(self.as_fd(), (libc::SOL_CAN_RAW, option), value);
        set_flag(self.as_fd(), libc::SO_TIMESTAMPNS)?;
        set_flag(self.as_fd(), libc::SO_RXQ_OVFL)?;
        raw(libc::CAN_RAW_FD_FRAMES, &1_i32.to_ne_bytes())?;
        raw(libc::CAN_RAW_ERR_FILTER, &reception.errors.to_ne_bytes())?;
        if reception.hardware_times {
            // Controllers with a clock take times always: nothing has to be switched on (`SIOCSHWTSTAMP`).
            let times = libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
            let option = (libc::SOL_SOCKET, libc::SO_TIMESTAMPING);
            set_option(self.as_fd(), option, &times.to_ne_bytes())?;
        }
        if let Some(filters) = &reception.filters {
            let words: Vec<u8> = filters
                .iter()
                .flat_map(|(id, mask)| [id.to_ne_bytes(), mask.to_ne_bytes()])
                .flatten()
                .collect();
            raw(libc::CAN_RAW_FILTER, &words)?;
        }
        Ok(())
    }

    fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: plain data; all zeros are an address without an interface.
        let mut address: libc::sockaddr_can = unsafe { std::mem::zeroed() };
        address.can_family = libc::AF_CAN as libc::sa_family_t;
        address.can_ifindex = index as libc::c_int;
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the pointer is to a local variable, and the length is its size.
        let status = unsafe { libc::bind(self.socket.as_raw_fd(), (&raw const address).cast(), length) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether the interface carries frames of CAN FD.
    #[must_use]
    pub fn carries_fd(&self) -> bool {
        self.carries_fd
    }

    /// Whether the controller was on the bus when the socket was made. It is not after too many errors
    /// (bus-off), until it is restarted.
    #[must_use]
    pub fn is_on_bus(&self) -> bool {
        self.is_on_bus
    }

    /// Takes the next frame.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; `NetworkDown` if the interface went down, and an error for which
    /// [`is_removed`] holds if it was removed: each once, before the frames that had come until then;
    /// otherwise what `recvmsg(2)` reports.
    pub fn receive(&self, frame: &mut [u8; FD_BYTES]) -> io::Result<ReceivedFrame> {
        let received = receive(self.as_fd(), frame, &mut [0; 128])?;
        let stamps = received.stamps;
        Ok(ReceivedFrame {
            length: received.length,
            stamped_ns: stamps.stamped_ns,
            hardware_ns: stamps.hardware_ns,
            dropped: stamps.dropped.unwrap_or(0),
        })
    }

    /// Sends a frame, whose length is [`CLASSIC_BYTES`] or [`FD_BYTES`].
    ///
    /// # Errors
    /// `ENOBUFS` if the queue of the interface is full, which no event ends; otherwise what `write(2)`
    /// reports.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.socket, frame)?;
        Ok(())
    }

    /// Returns the number of frames that the kernel has dropped since the socket was made.
    ///
    /// # Errors
    /// What `getsockopt(2)` reports.
    pub fn dropped(&self) -> io::Result<u32> {
        dropped(self.as_fd())
    }

    /// Requests a receive buffer of this size in bytes. Returns the size obtained, which
    /// `net.core.rmem_max` limits without `CAP_NET_ADMIN`. A frame takes about 0.8 KiB of it.
    ///
    /// # Errors
    /// What `setsockopt(2)` reports.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        set_receive_buffer(self.as_fd(), bytes)
    }
}

impl AsFd for CanSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether the error says that the queue of the interface is full.
#[must_use]
pub fn is_queue_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Whether the error says that the interface was removed.
#[must_use]
pub fn is_removed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO))
}

/// The value part of a `struct ifreq`.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; NAME],
    value: [u8; 24],
}

/// Asks for a property of an interface.
fn ask(socket: BorrowedFd<'_>, interface: &str, request: libc::c_ulong) -> io::Result<[u8; 24]> {
    let mut asked = InterfaceRequest { name: [0; NAME], value: [0; 24] };
    let Some(name) = asked.name[..NAME - 1].get_mut(..interface.len()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    name.copy_from_slice(interface.as_bytes());
    // SAFETY: the requests used here read the name and write at most the 24 bytes after it, as `struct ifreq`
    // has them, of a local variable.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut asked) };
    if status == 0 { Ok(asked.value) } else { Err(io::Error::last_os_error()) }
}
