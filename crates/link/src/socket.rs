//! Sockets of links: TCP between machines, Unix sockets within one.

use onbeat_os::door::Listener;
use onbeat_os::{SocketFile, local, shared};
use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What an address begins with that is the path of a Unix socket.
const UNIX: &str = "unix:";

/// The path in an address such as `unix:/run/iq.sock`.
pub(crate) fn unix_path(address: &str) -> Option<&Path> {
    address.strip_prefix(UNIX).map(Path::new)
}

/// Where an end listens, or whom it calls.
#[derive(Debug, Clone)]
pub(crate) enum LinkAddress {
    /// Any of these.
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

/// A connected socket.
#[derive(Debug)]
pub enum LinkSocket {
    /// Of this or another machine.
    Tcp(TcpStream),
    /// Of a process of this user, or of root, on this machine.
    Unix(LocalSocket),
}

/// A Unix socket, and the files that came over it.
#[derive(Debug)]
pub struct LocalSocket {
    stream: UnixStream,
    files: VecDeque<OwnedFd>,
}

/// Most files that wait to be taken. More are closed: the other end does not keep to the protocol.
const FILES: usize = 16;

impl LocalSocket {
    fn new(stream: UnixStream) -> Self {
        LocalSocket { stream, files: VecDeque::new() }
    }
}

/// Does the same with either socket.
macro_rules! either {
    ($socket:expr, $stream:ident => $what:expr) => {
        match $socket {
            LinkSocket::Tcp($stream) => $what,
            LinkSocket::Unix(LocalSocket { stream: $stream, .. }) => $what,
        }
    };
}

impl LinkSocket {
    /// Connects.
    pub(crate) fn connect(address: &LinkAddress, patience: Duration) -> io::Result<Self> {
        match address {
            LinkAddress::Unix(path) => {
                local::connect(path, patience).map(|stream| LinkSocket::Unix(LocalSocket::new(stream)))
            }
            LinkAddress::Tcp(addresses) => {
                let mut why = io::Error::from(io::ErrorKind::AddrNotAvailable);
                for address in addresses {
                    match TcpStream::connect_timeout(address, patience) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(LinkSocket::Tcp(stream));
                        }
                        Err(error) => why = error,
                    }
                }
                Err(why)
            }
        }
    }

    /// See [`TcpStream::set_nonblocking`].
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn set_nonblocking(&self, does: bool) -> io::Result<()> {
        either!(self, stream => stream.set_nonblocking(does))
    }

    /// See [`TcpStream::set_read_timeout`].
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        either!(self, stream => stream.set_read_timeout(time))
    }

    /// See [`TcpStream::set_write_timeout`].
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn set_write_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        either!(self, stream => stream.set_write_timeout(time))
    }

    /// See [`TcpStream::shutdown`].
    ///
    /// # Errors
    /// If it is closed already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        either!(self, stream => stream.shutdown(how))
    }

    /// See [`TcpStream::try_clone`].
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            LinkSocket::Tcp(stream) => stream.try_clone().map(LinkSocket::Tcp),
            LinkSocket::Unix(socket) => {
                socket.stream.try_clone().map(|stream| LinkSocket::Unix(LocalSocket::new(stream)))
            }
        }
    }

    /// Where the other end is: an address, or a process.
    pub(crate) fn peer(&self) -> io::Result<String> {
        match self {
            LinkSocket::Tcp(stream) => Ok(stream.peer_addr()?.to_string()),
            LinkSocket::Unix(socket) => Ok(format!("process {}", local::peer(&socket.stream)?.pid)),
        }
    }

    /// Whether files can be sent over it, and so chunks be lent.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, LinkSocket::Unix(_))
    }

    /// Writes, and sends a file along with the first byte.
    pub(crate) fn write_with_file(&mut self, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<usize> {
        match self {
            LinkSocket::Unix(socket) => shared::send_with_file(&socket.stream, bytes, file),
            LinkSocket::Tcp(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Takes the oldest file that came.
    pub(crate) fn take_file(&mut self) -> Option<OwnedFd> {
        match self {
            LinkSocket::Unix(socket) => socket.files.pop_front(),
            LinkSocket::Tcp(_) => None,
        }
    }
}

impl From<TcpStream> for LinkSocket {
    fn from(stream: TcpStream) -> Self {
        LinkSocket::Tcp(stream)
    }
}

impl AsFd for LinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(self, stream => stream.as_fd())
    }
}

impl Read for LinkSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            LinkSocket::Tcp(stream) => stream.read(bytes),
            LinkSocket::Unix(LocalSocket { stream, files }) => {
                let mut came = Vec::new();
                let read = match shared::receive_with_files(&*stream, bytes, &mut came) {
                    // The other end has closed its socket, and had not read all.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
                    read => read?,
                };
                files.extend(came);
                files.truncate(FILES);
                Ok(read)
            }
        }
    }
}

impl Write for LinkSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, stream => stream.write(bytes))
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, stream => stream.write_vectored(parts))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum LinkListener {
    Tcp(TcpListener),
    /// Its file has mode 0600, and is removed with it.
    Unix(SocketFile),
}

impl LinkListener {
    /// Listens at an address as a user writes it.
    pub fn bind(address: &str) -> io::Result<Self> {
        if let Some(path) = unix_path(address) {
            return SocketFile::take(path).map(LinkListener::Unix).map_err(io::Error::other);
        }
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(LinkListener::Tcp(listener))
    }

    /// Removes the file of a Unix socket. Returns `false` for another one.
    pub fn remove(&self) -> bool {
        match self {
            LinkListener::Tcp(_) => false,
            LinkListener::Unix(file) => {
                file.remove();
                true
            }
        }
    }

    /// The next caller, whose socket does not block. Callers of other users are refused.
    pub fn accept(&self) -> io::Result<LinkSocket> {
        match self {
            LinkListener::Tcp(listener) => {
                let stream = Listener::accept(listener)?;
                stream.set_nodelay(true)?;
                Ok(LinkSocket::Tcp(stream))
            }
            LinkListener::Unix(file) => {
                let stream = file.accept()?;
                let uid = local::peer(&stream)?.uid;
                if uid != 0 && uid != local::user() {
                    let text = format!("user {uid} may not call: only user {} may", local::user());
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
                }
                Ok(LinkSocket::Unix(LocalSocket::new(stream)))
            }
        }
    }
}

impl AsFd for LinkListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            LinkListener::Tcp(listener) => listener.as_fd(),
            LinkListener::Unix(file) => file.as_fd(),
        }
    }
}
