//! Waiting for new and existing connections in one thread.

use crate::poll;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Pause in accepting after a failure, because the process has no more files.
const DEAF: Duration = Duration::from_millis(100);

/// Listening socket.
pub trait Listener: AsFd {
    /// Type of a connection.
    type Stream;

    /// Accepts the next connection, as a non-blocking stream.
    ///
    /// # Errors
    /// What `accept(2)` reports.
    fn accept(&self) -> io::Result<Self::Stream>;
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = UnixListener::accept(self)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = TcpListener::accept(self)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

/// Reason why a wait is over. Neither field is set if the reason is an existing connection, or the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woken {
    /// The server should end.
    pub has_ended: bool,
    /// A client wants to connect.
    pub knocks: bool,
}

/// A non-blocking listener, and a stream that tells the server to end.
///
/// ```
/// use onbeat_os::{door::Door, local};
/// use std::os::unix::net::UnixStream;
/// use std::time::Duration;
/// let path = std::env::temp_dir().join(format!("onbeat-door-{}", std::process::id()));
/// let (end, ended) = UnixStream::pair()?;
/// let mut door = Door::new(local::listen(&path)?, ended);
/// let _client = local::connect(&path, Duration::from_secs(1))?;
/// assert!(door.wait([], None)?.knocks);
/// let mut streams = Vec::new();
/// door.let_in(8, |stream| streams.push(stream));
/// assert_eq!(streams.len(), 1);
/// drop(end);
/// assert!(door.wait([], None)?.has_ended);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Door<L> {
    listener: L,
    /// Readable when the server should end.
    ended: UnixStream,
    deaf_until: Option<Instant>,
}

impl<L: Listener> Door<L> {
    /// Serves until `ended` becomes readable, as it does when its other end is closed.
    pub fn new(listener: L, ended: UnixStream) -> Self {
        Door { listener, ended, deaf_until: None }
    }

    /// Waits until a client connects, one of these files is readable (writable where the flag is `true`), the
    /// time is over, or the server should end.
    ///
    /// # Errors
    /// What `poll(2)` reports.
    pub fn wait<'f>(
        &'f mut self,
        files: impl IntoIterator<Item = (BorrowedFd<'f>, bool)>,
        until: Option<Instant>,
    ) -> io::Result<Woken> {
        let now = Instant::now();
        self.deaf_until = self.deaf_until.filter(|&until| until > now);
        let until = until.into_iter().chain(self.deaf_until).min();
        let mut all = vec![(self.ended.as_fd(), false)];
        if self.deaf_until.is_none() {
            all.push((self.listener.as_fd(), false));
        }
        all.extend(files);
        let ready = poll::wait_any(&all, until.map(|until| until.saturating_duration_since(now)))?;
        Ok(Woken { has_ended: ready[0], knocks: self.deaf_until.is_none() && ready[1] })
    }

    /// Accepts up to `most` connections, so that existing ones have their turn.
    pub fn let_in(&mut self, most: usize, mut admit: impl FnMut(L::Stream)) {
        for _ in 0..most {
            match self.listener.accept() {
                Ok(stream) => admit(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(_) => {
                    self.deaf_until = Some(Instant::now() + DEAF);
                    return;
                }
            }
        }
    }
}
