//! TCP connections: which end calls, and how the byte stream is framed.

use super::address::check_address;
use super::patience::{is_over, on_clock_ns, over_at_ns, real_ns, usual_ns};
use onbeat_os::socket;
use onbeat_runtime::{Context, Error, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longest attempt to connect to one address, before the next address is tried.
const ATTEMPT_NS: u64 = 200_000_000;
/// Pause after an attempt with each address.
const PAUSE_NS: u64 = 50_000_000;
/// Bytes of a frame's length field.
pub(super) const LENGTH: usize = 4;

/// Framing of the bytes on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// Bare samples. Closing the connection ends the stream.
    #[default]
    Raw,
    /// A length before each run of samples: its bytes as 4 bytes, low byte first; length 0 ends the stream.
    /// Closing the connection without it is an error.
    Strict,
}

/// Which end opens the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpPeer {
    /// Calls this address.
    Connect(String),
    /// Waits for one call at this address.
    Listen(String),
}

impl TcpPeer {
    pub(crate) fn of(connect: Option<&str>, listen: Option<&str>) -> Result<Self, Error> {
        match (connect, listen) {
            (Some(address), None) => {
                check_address("connect", address)?;
                Ok(TcpPeer::Connect(address.to_string()))
            }
            (None, Some(address)) => {
                check_address("listen", address)?;
                Ok(TcpPeer::Listen(address.to_string()))
            }
            _ => Err(Error::new(
                "needs `connect` (an address to call) or `listen` (an address to be called at), not both",
            )),
        }
    }

    fn address(&self) -> &str {
        match self {
            TcpPeer::Connect(address) | TcpPeer::Listen(address) => address,
        }
    }
}

/// One connection, from the first attempt to its end.
pub(crate) struct TcpConnection {
    peer: TcpPeer,
    /// Time to wait for a connection.
    pub patience_ns: u64,
    /// Whether a peer whose kernel does not answer for that time is an error.
    pub is_watched: bool,
    /// Listening socket; one that is open before the start is used as it is.
    pub listener: Option<TcpListener>,
    addresses: Vec<SocketAddr>,
    /// Index of the address to call next, and the attempt that has begun.
    next: usize,
    attempt: Option<ConnectAttempt>,
    /// Why the last attempt failed.
    refused: Option<std::io::Error>,
    /// Real time of the first attempt.
    begun_ns: Option<u64>,
    dials: bool,
    /// Pause after an attempt with each address, in nanoseconds.
    pause_ns: u64,
    /// The connection while it is open.
    pub stream: Option<TcpStream>,
    /// Real time at which the connection was opened.
    pub opened_ns: u64,
}

/// A connection that is being opened.
struct ConnectAttempt {
    stream: TcpStream,
    /// Real time at which the next address is tried instead.
    end_ns: u64,
}

/// Result of an attempt to connect.
enum Dialed {
    Open(TcpStream),
    NotYet(Step),
    GivenUp,
}

/// State of a connection before a step.
pub(crate) enum Opening {
    /// It is open, or has been closed here.
    Over,
    /// It is not open yet: result of the step.
    Wait(Step),
    /// The run was stopped before there was a connection, and the patience is used up.
    GivenUp,
}

/// Has a sink stepped without a message, in its start: it connects, so that a wrong address or password is
/// found then, and not when the first message comes.
pub(crate) fn connect_at_once(cx: &mut Context) {
    cx.until(cx.now_ns());
}

impl TcpConnection {
    pub fn new(peer: TcpPeer) -> Self {
        TcpConnection {
            peer,
            patience_ns: usual_ns(),
            is_watched: false,
            listener: None,
            addresses: Vec::new(),
            next: 0,
            attempt: None,
            refused: None,
            begun_ns: None,
            dials: false,
            pause_ns: PAUSE_NS,
            stream: None,
            opened_ns: 0,
        }
    }

    /// The address, for messages.
    pub fn address(&self) -> &str {
        self.peer.address()
    }

    /// Opens the listening socket or resolves the address. Called before the first step, and again after a
    /// restart.
    pub fn start(&mut self) -> Result<(), Error> {
        match &self.peer {
            TcpPeer::Listen(address) => {
                let cannot = |error| Error::with_source(format!("cannot listen on {address}"), error);
                let listener = match self.listener.take() {
                    Some(listener) => listener,
                    None => TcpListener::bind(address).map_err(cannot)?,
                };
                listener.set_nonblocking(true).map_err(cannot)?;
                self.listener = Some(listener);
            }
            TcpPeer::Connect(address) => {
                let found = address.to_socket_addrs();
                let found = found
                    .map_err(|error| Error::with_source(format!("cannot connect to {address}"), error))?;
                self.addresses = found.collect();
                if self.addresses.is_empty() {
                    return Err(Error::new(format!("cannot connect to {address}: the host has no address")));
                }
                (self.next, self.attempt, self.refused) = (0, None, None);
            }
        }
        (self.dials, self.begun_ns, self.stream) = (true, None, None);
        Ok(())
    }

    /// Makes an attempt to open the connection, unless it is open.
    pub fn open(&mut self, cx: &mut Context) -> Result<Opening, Error> {
        if self.dials {
            match self.dial(cx)? {
                Dialed::NotYet(step) => return Ok(Opening::Wait(step)),
                Dialed::GivenUp => {
                    self.hang_up();
                    return Ok(Opening::GivenUp);
                }
                Dialed::Open(stream) => {
                    if self.is_watched {
                        let patience = Duration::from_nanos(self.patience_ns);
                        socket::watch_peer(&stream, patience).map_err(|error| self.broken(error))?;
                    }
                    self.stream = Some(stream);
                }
            }
            (self.dials, self.opened_ns) = (false, real_ns());
        }
        Ok(Opening::Over)
    }

    /// Whether it is open, or being opened.
    pub fn is_begun(&self) -> bool {
        self.dials || self.stream.is_some()
    }

    /// Begins to call the addresses once more, with a pause between attempts, in nanoseconds.
    pub fn call_again(&mut self, pause_ns: u64) {
        (self.next, self.attempt, self.refused, self.begun_ns) = (0, None, None, None);
        (self.dials, self.stream, self.pause_ns) = (true, None, pause_ns);
    }

    fn dial(&mut self, cx: &mut Context) -> Result<Dialed, Error> {
        let begun_ns = *self.begun_ns.get_or_insert_with(real_ns);
        let end_ns = begun_ns.saturating_add(self.patience_ns);
        let is_over = real_ns() >= end_ns || is_over(cx, self.patience_ns);
        match self.peer {
            TcpPeer::Listen(_) => self.accept(is_over, end_ns, cx),
            TcpPeer::Connect(_) => self.call(is_over, cx),
        }
    }

    /// Takes a call.
    fn accept(&mut self, is_over: bool, end_ns: u64, cx: &mut Context) -> Result<Dialed, Error> {
        let Some(listener) = &self.listener else { return Ok(Dialed::NotYet(Step::Done)) };
        match listener.accept() {
            Ok((stream, _)) => {
                // Closes the listening socket, so that further callers are refused.
                self.listener = None;
                opened(stream, self.address())
            }
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                let text = format!("cannot accept a connection on {}", self.address());
                Err(Error::with_source(text, error))
            }
            Err(_) if is_over && cx.is_stopping() => Ok(Dialed::GivenUp),
            Err(_) if is_over => {
                Err(Error::new(format!("no connection to {} within {}", self.address(), self.limit())))
            }
            Err(_) => {
                let until_ns = on_clock_ns(cx, end_ns).min(over_at_ns(cx, self.patience_ns));
                cx.readable_until(listener, until_ns).map(Dialed::NotYet)
            }
        }
    }

    /// Calls the peer.
    fn call(&mut self, is_over: bool, cx: &mut Context) -> Result<Dialed, Error> {
        if let Some(stream) = self.attempt() {
            return opened(stream, self.address());
        }
        if let Some(attempt) = &self.attempt {
            let until_ns = on_clock_ns(cx, attempt.end_ns);
            return cx.writable_until(&attempt.stream, until_ns).map(Dialed::NotYet);
        }
        if is_over && cx.is_stopping() {
            return Ok(Dialed::GivenUp);
        }
        if is_over {
            let text = format!("cannot connect to {} within {}", self.address(), self.limit());
            return Err(match self.refused.take() {
                Some(why) => Error::with_source(text, why),
                None => Error::new(text),
            });
        }
        Ok(Dialed::NotYet(cx.look_again_in(self.pause_ns)))
    }

    /// The patience, in words.
    fn limit(&self) -> String {
        format!("{} ms (`patience`)", self.patience_ns / 1_000_000)
    }

    /// Goes on with the attempt that has begun, or begins one, until there is a connection, one has to wait
    /// for the peer, or each address has been tried. Then no attempt is left.
    fn attempt(&mut self) -> Option<TcpStream> {
        loop {
            let begun = match self.attempt.take() {
                Some(attempt) => Ok(attempt),
                None => socket::begin_connect(self.addresses[self.next])
                    .map(|stream| ConnectAttempt { stream, end_ns: real_ns().saturating_add(ATTEMPT_NS) }),
            };
            let result = begun.and_then(|attempt| match socket::is_connected(&attempt.stream) {
                Ok(false) if real_ns() >= attempt.end_ns => Err(ErrorKind::TimedOut.into()),
                Ok(is_open) => Ok((attempt, is_open)),
                Err(error) => Err(error),
            });
            match result {
                Ok((attempt, true)) => return Some(attempt.stream),
                Ok((attempt, false)) => {
                    self.attempt = Some(attempt);
                    return None;
                }
                Err(error) => self.refused = Some(error),
            }
            self.next = (self.next + 1) % self.addresses.len();
            if self.next == 0 {
                return None;
            }
        }
    }

    /// An error on an open connection.
    pub fn broken(&self, error: std::io::Error) -> Error {
        Error::with_source(format!("the connection with {} broke", self.address()), error)
    }

    /// Closes the connection, or gives up waiting for it.
    pub fn hang_up(&mut self) {
        (self.dials, self.listener, self.attempt, self.stream) = (false, None, None, None);
    }
}

fn opened(stream: TcpStream, address: &str) -> Result<Dialed, Error> {
    let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
    prepared.map_err(|error| Error::with_source(format!("the connection with {address}"), error))?;
    Ok(Dialed::Open(stream))
}
