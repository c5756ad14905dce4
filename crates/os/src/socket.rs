//! Sockets beyond the standard library: datagrams with the kernel's receive time and the number of dropped
//! ones, and the data of a connection that the peer has not acknowledged.

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
    /// Time at which the kernel received it (`SO_TIMESTAMPNS`), on `CLOCK_REALTIME`. The kernel begins to
    /// stamp some time after the first socket asked for it; datagrams from before have the time of the call.
    pub stamped_ns: Option<u64>,
    /// Number of datagrams that the kernel had dropped, since the socket was made and up to the arrival of
    /// this datagram (`SO_RXQ_OVFL`). It starts over after `u32::MAX`.
    pub dropped: u32,
    /// Address of the sender.
    pub from: Option<SocketAddr>,
}

impl DatagramSocket {
    /// Makes the socket non-blocking, and asks the kernel for receive times and counts.
    ///
    /// # Errors
    /// What `setsockopt(2)` reports.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        set_option(socket.as_fd(), libc::SO_TIMESTAMPNS, 1)?;
        set_option(socket.as_fd(), libc::SO_RXQ_OVFL, 1)?;
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
        // Room for an address of any family, and for two control messages of at most 32 bytes.
        let (mut name, mut control) = ([0_u8; 128], [0_u64; 16]);
        let mut place = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: plain data; all zeros are null pointers and lengths of 0.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = name.as_mut_ptr().cast();
        header.msg_namelen = name.len() as libc::socklen_t;
        header.msg_iov = &raw mut place;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: all pointers in the header are to local variables or to `buffer`, which outlive the call
        // and are not used during it, and the lengths are theirs. The control buffer is aligned for its
        // headers.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, 0) };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        let used = (header.msg_controllen as usize).min(size_of_val(&control));
        let control = control.map(u64::to_ne_bytes);
        let (stamped_ns, dropped) = stamps(&control.as_flattened()[..used]);
        let from = address(&name[..(header.msg_namelen as usize).min(name.len())]);
        Ok(ReceivedDatagram { length, stamped_ns, dropped: dropped.unwrap_or(0), from })
    }

    /// Returns the number of datagrams that the kernel has dropped since the socket was made, up to now. It
    /// starts over after `u32::MAX`.
    ///
    /// # Errors
    /// What `getsockopt(2)` reports: kernels before 4.12 do not know `SO_MEMINFO`.
    pub fn dropped(&self) -> io::Result<u32> {
        let mut counts = [0_u32; 9];
        let mut length = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the pointers are to local variables, and `length` is the size of `counts`.
        let status = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(counts[libc::SK_MEMINFO_DROPS as usize])
    }

    /// Requests a receive buffer of this size. Returns the size obtained, which `net.core.rmem_max` limits
    /// without `CAP_NET_ADMIN`. Both include the kernel's own data for each datagram, about 0.8 KiB.
    ///
    /// # Errors
    /// What `setsockopt(2)` reports.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        use rustix::net::sockopt;
        // The kernel takes an `i32`, and doubles it for its own data.
        let asked = bytes.min(i32::MAX as usize / 2);
        if sockopt::set_socket_recv_buffer_size_force(&self.socket, asked).is_err() {
            sockopt::set_socket_recv_buffer_size(&self.socket, asked)?;
        }
        Ok(sockopt::socket_recv_buffer_size(&self.socket)? / 2)
    }
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

fn set_option(socket: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer is to a local variable, and the length is its size.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receive time and number of dropped datagrams from a control buffer (`cmsg(3)`).
fn stamps(mut control: &[u8]) -> (Option<u64>, Option<u32>) {
    const WORD: usize = size_of::<usize>();
    // Length of the message with this header, level, type.
    const HEADER: usize = WORD + 8;
    let (mut stamped_ns, mut dropped) = (None, None);
    while let Some((head, _)) = control.split_at_checked(HEADER) {
        let (length, kind) = head.split_at(WORD);
        let length = usize::from_ne_bytes(length.try_into().expect("a word"));
        let Some(data) = control.get(HEADER..length) else { break };
        let number = |at: usize| Some(i32::from_ne_bytes(kind.get(at..at + 4)?.try_into().ok()?));
        match (number(0), number(4)) {
            (Some(libc::SOL_SOCKET), Some(libc::SO_TIMESTAMPNS)) => stamped_ns = time_ns(data),
            (Some(libc::SOL_SOCKET), Some(libc::SO_RXQ_OVFL)) => {
                dropped = data.first_chunk().map(|data| u32::from_ne_bytes(*data));
            }
            _ => {}
        }
        control = control.get(length.next_multiple_of(WORD)..).unwrap_or_default();
    }
    (stamped_ns, dropped)
}

/// Nanoseconds of a `timespec`, whose two numbers have 4 or 8 bytes.
fn time_ns(data: &[u8]) -> Option<u64> {
    let (seconds, ns) = match data.len() {
        16 => {
            let number = |at: usize| Some(i64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?));
            (number(0)?, number(8)?)
        }
        8 => {
            let number = |at: usize| Some(i32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
            (i64::from(number(0)?), i64::from(number(4)?))
        }
        _ => return None,
    };
    u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(u64::try_from(ns).ok()?)
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
