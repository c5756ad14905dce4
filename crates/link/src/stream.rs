//! Connections, encrypted or not.

use crate::socket::LinkSocket;
use crate::tls::{Encryption, NodeIdentity};
use onbeat_os::poll;
use onbeat_runtime::Error;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A connection with another process, encrypted if both ends have an [`NodeIdentity`].
///
/// If its socket does not block, what was written may stay in a buffer: [`Write::flush`] says whether all has
/// left.
#[derive(Debug)]
pub struct LinkStream {
    socket: LinkSocket,
    encryption: Option<Box<Encryption>>,
}

impl LinkStream {
    /// A connection that is not encrypted.
    pub fn plain(socket: LinkSocket) -> Self {
        LinkStream { socket, encryption: None }
    }

    #[cfg(feature = "tls")]
    pub(crate) fn encrypted(socket: LinkSocket, encryption: Encryption) -> Self {
        LinkStream { socket, encryption: Some(Box::new(encryption)) }
    }

    /// The socket below, for its settings.
    pub fn socket(&self) -> &LinkSocket {
        &self.socket
    }

    /// The socket, if chunks can be lent over it: to a process of this machine, and without encryption.
    pub(crate) fn lending(&mut self) -> Option<&mut LinkSocket> {
        (self.encryption.is_none() && self.socket.is_local()).then_some(&mut self.socket)
    }

    /// Returns which of these names the other end has proved to have. On a connection that is not encrypted,
    /// nothing is proved, and there is no name.
    ///
    /// # Errors
    /// If it has proved another one.
    pub fn proved<'n>(&self, names: &'n [String]) -> Result<Option<&'n str>, Error> {
        self.encryption.as_ref().map(|encryption| encryption.proved(names)).transpose()
    }

    /// Says that no more will be written.
    ///
    /// # Errors
    /// If the connection is closed already.
    pub fn end(&mut self) -> io::Result<()> {
        if let Some(encryption) = &mut self.encryption {
            encryption.end(&mut self.socket)?;
        }
        self.socket.shutdown(Shutdown::Write)
    }
}

impl AsFd for LinkStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for LinkStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &mut self.encryption {
            Some(encryption) => encryption.read(&mut self.socket, bytes),
            None => self.socket.read(bytes),
        }
    }
}

impl Write for LinkStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.encryption {
            Some(encryption) => encryption.write(&mut self.socket, parts),
            None => self.socket.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encryption {
            Some(encryption) => encryption.push(&mut self.socket),
            None => Ok(()),
        }
    }
}

/// A connection that one thread reads while others write.
#[derive(Debug, Clone)]
pub struct SharedStream {
    stream: Arc<Mutex<LinkStream>>,
    /// To wait without the lock.
    socket: Arc<LinkSocket>,
    /// Longest wait of an operation.
    pub patience: Option<Duration>,
}

impl SharedStream {
    /// Shares a connection.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new(stream: LinkStream) -> io::Result<Self> {
        stream.socket.set_nonblocking(true)?;
        let socket = Arc::new(stream.socket.try_clone()?);
        Ok(SharedStream { stream: Arc::new(Mutex::new(stream)), socket, patience: None })
    }

    /// See [`LinkStream::proved`].
    ///
    /// # Errors
    /// If it has proved another one.
    pub fn proved<'n>(&self, names: &'n [String]) -> Result<Option<&'n str>, Error> {
        self.locked().proved(names)
    }

    /// Ends the connection in one direction or both, which wakes the thread that waits for it.
    ///
    /// # Errors
    /// If it is closed already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.socket.shutdown(how)
    }

    fn locked(&self) -> MutexGuard<'_, LinkStream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries again and again, and waits in between.
    fn until_done<T>(
        &self,
        writes: bool,
        mut what: impl FnMut(&mut LinkStream) -> io::Result<T>,
    ) -> io::Result<T> {
        let begin = Instant::now();
        loop {
            match what(&mut self.locked()) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                done => return done,
            }
            let left = self.patience.map(|patience| patience.saturating_sub(begin.elapsed()));
            if left == Some(Duration::ZERO) {
                return Err(ErrorKind::TimedOut.into());
            }
            poll::wait_any(&[(self.socket.as_fd(), writes)], left)?;
        }
    }
}

impl Read for SharedStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.until_done(false, |stream| stream.read(bytes))
    }
}

impl Write for SharedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.until_done(true, |stream| stream.write(bytes))?;
        self.flush()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.until_done(true, LinkStream::flush)
    }
}

/// Calls the other end of a connection, encrypted if there is an identity.
///
/// # Errors
/// If the other end is not `peer`, or breaks off.
pub fn call(
    socket: impl Into<LinkSocket>,
    identity: Option<&NodeIdentity>,
    peer: &str,
) -> io::Result<LinkStream> {
    match identity {
        Some(identity) => identity.call(socket.into(), peer),
        None => Ok(LinkStream::plain(socket.into())),
    }
}

/// Takes a call. If there is an identity, the first read proves who calls.
///
/// # Errors
/// If no encryption can begin.
pub fn answer(socket: impl Into<LinkSocket>, identity: Option<&NodeIdentity>) -> io::Result<LinkStream> {
    match identity {
        Some(identity) => identity.answer(socket.into()),
        None => Ok(LinkStream::plain(socket.into())),
    }
}
