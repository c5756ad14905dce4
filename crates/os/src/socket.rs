//! Sockets beyond the standard library: datagrams with the kernel's receive time and the number of dropped
//! ones, and the data of a connection that the peer has not acknowledged.

use crate::clock;
use crate::socket_message::{MessageStamps, dropped, receive, set_flag, set_receive_buffer};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// A UDP socket that reports the receive time of each datagram, and how many the kernel has dropped. It does
/// not block.
///
/// ```
/// use onbeat_os::socket::DatagramSocket;
/// use std::net::UdpSocket;
///
/// let socket = DatagramSocket::new(UdpSocket::bind("127.0.0.1:0")?)?;
/// let sender = UdpSocket::bind("127.0.0.1:0")?;
/// sender.send_to(b"abc", socket.local_addr()?)?;
/// let mut buffer = [0; 1500];
/// let received = socket.receive(&mut buffer)?;
/// assert_eq!(&buffer[..received.length], b"abc");
/// assert_eq!((received.from, received.dropped), (Some(sender.local_addr()?), 0));
/// assert!(received.stamped_ns.is_some());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
}

/// A datagram from a [`DatagramSocket`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedDatagram {
    /// Number of its bytes that are in the buffer.
    pub length: usize,
    /// Time at which the kernel received it (`SO_TIMESTAMPNS`), on `CLOCK_REALTIME`.
    pub stamped_ns: Option<u64>,
    /// Number of datagrams that the kernel had dropped, since the socket was made and up to the arrival of
    /// this datagram (`SO_RXQ_OVFL`). It starts over after `u32::MAX`.
    pub dropped: u32,
    /// Address of the sender.
    pub from: Option<SocketAddr>,
}

impl DatagramSocket {
    /// Makes the socket non-blocking, and asks the kernel for receive times and counts. Waits, a few
    /// milliseconds at most as a rule, until the kernel notes the time of arrivals: it begins to do so some
    /// time after the first socket of the machine asks for it, and before that the time of a datagram is that
    /// at which it is taken.
    ///
    /// # Errors
    /// What `setsockopt(2)` reports.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        set_flag(socket.as_fd(), libc::SO_TIMESTAMPNS)?;
        set_flag(socket.as_fd(), libc::SO_RXQ_OVFL)?;
        // Without a loopback device there is nothing to try it with.
        let _not_tried = await_arrival_times();
        Ok(DatagramSocket { socket })
    }

    /// Returns the address that the socket is bound to.
    ///
    /// # Errors
    /// What `getsockname(2)` reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Takes the next datagram. Bytes beyond the buffer are dropped.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; otherwise what `recvmsg(2)` reports.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<ReceivedDatagram> {
        let mut name = [0_u8; 128];
        let received = receive(self.socket.as_fd(), buffer, &mut name)?;
        let MessageStamps { stamped_ns, dropped, .. } = received.stamps;
        let from = address(&name[..received.name]);
        Ok(ReceivedDatagram { length: received.length, stamped_ns, dropped: dropped.unwrap_or(0), from })
    }

    /// Returns the number of datagrams that the kernel has dropped since the socket was made, up to now. It
    /// starts over after `u32::MAX`.
    ///
    /// # Errors
    /// What `getsockopt(2)` reports: kernels before 4.12 do not know `SO_MEMINFO`.
    pub fn dropped(&self) -> io::Result<u32> {
        dropped(self.socket.as_fd())
    }

    /// Requests a receive buffer of this size. Returns the size obtained, which `net.core.rmem_max` limits
    /// without `CAP_NET_ADMIN`. Both include the kernel's own data for each datagram, about 0.8 KiB.
    ///
    /// # Errors
    /// What `setsockopt(2)` reports.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        set_receive_buffer(self.socket.as_fd(), bytes)
    }
}

/// Most tries, 1 ms each, until arrivals have their time.
const TRIES: usize = 200;

/// Sends datagrams to a socket of its own until one has the time of its arrival.
fn await_arrival_times() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    set_flag(socket.as_fd(), libc::SO_TIMESTAMPNS)?;
    let socket = DatagramSocket { socket };
    let address = socket.local_addr()?;
    for _ in 0..TRIES {
        socket.socket.send_to(&[0], address)?;
        let arrived_ns = clock::realtime_unix_ns();
        let received = socket.receive(&mut [0])?;
        if received.stamped_ns.is_some_and(|stamped_ns| stamped_ns <= arrived_ns) {
            return Ok(());
        }
        clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    }
    Ok(())
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Number of bytes written to a connection that the peer's kernel has not acknowledged, including the end of
/// the stream (1) if it was sent. After a reset: the number at that time.
///
/// # Errors
/// What `ioctl(2)` reports for `SIOCOUTQ`.
pub fn unacknowledged(connection: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one `int`, to a local variable.
    let status = unsafe { libc::ioctl(connection.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Begins a TCP connection without waiting for the peer. The stream does not block. It is writable when the
/// attempt is over; [`is_connected`] then tells the result.
///
/// # Errors
/// What `socket(2)` and `connect(2)` report.
pub fn begin_connect(address: SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Whether a connection from [`begin_connect`] is open. False while the peer has not answered.
///
/// # Errors
/// Why it cannot be opened.
pub fn is_connected(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// Number of bytes of a connection that wait to be read.
///
/// # Errors
/// What `ioctl(2)` reports for `FIONREAD`.
pub fn unread(connection: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(connection)?)
}

/// Lets the connection end with a reset when it is closed, instead of an end of the stream. The peer then
/// learns that data is missing, and the kernel sends nothing more.
///
/// # Errors
/// What `setsockopt(2)` reports for `SO_LINGER`.
pub fn reset_on_close(connection: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_linger(connection, Some(Duration::ZERO))?)
}

/// Returns how long the peer's kernel has not answered, although it was asked at least twice since. `None` if
/// it need not answer, because nothing was sent to it.
///
/// # Errors
/// What `getsockopt(2)` reports for `TCP_INFO`.
pub fn unanswered(connection: impl AsFd) -> io::Result<Option<Duration>> {
    // Up to `tcpi_last_ack_recv` of `struct tcp_info`.
    let mut info = [0_u32; 15];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the pointers are to local variables, and `length` is the size of `info`, of which the kernel
    // writes no more.
    let status = unsafe {
        libc::getsockopt(
            connection.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // Data that was sent again, and questions whether there is room; an answer sets both to 0.
    let [_, _, retransmits, probes] = info[0].to_ne_bytes();
    let last_answer = Duration::from_millis(u64::from(info[14]));
    Ok((retransmits.max(probes) >= 2).then_some(last_answer))
}

/// Least time of [`watch_peer`].
const LEAST_WATCH: Duration = Duration::from_secs(4);

/// Lets a connection fail if the peer's kernel does not answer for this time, at least 4 s, although nothing
/// is sent. The kernel asks it four times meanwhile (`SO_KEEPALIVE`). A peer that only has nothing to say
/// answers.
///
/// # Errors
/// What `setsockopt(2)` reports.
pub fn watch_peer(connection: impl AsFd, time: Duration) -> io::Result<()> {
    use rustix::net::sockopt;
    // The kernel counts in seconds, and takes 32767 of them at most.
    let each = Duration::from_secs((time.max(LEAST_WATCH).as_secs() / 4).min(32_767));
    sockopt::set_tcp_keepidle(&connection, each)?;
    sockopt::set_tcp_keepintvl(&connection, each)?;
    sockopt::set_tcp_keepcnt(&connection, 3)?;
    Ok(sockopt::set_socket_keepalive(&connection, true)?)
}

/// Address and port from a `sockaddr_in` or `sockaddr_in6`.
fn address(name: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*name.first_chunk()?);
    let port = u16::from_be_bytes(name.get(2..4)?.try_into().ok()?);
    let ip = match i32::from(family) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(name.get(4..8)?).ok()?)),
        libc::AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(name.get(8..24)?).ok()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}
