//! TCP connections: which end calls, and how the byte stream is framed.

use super::address::check_address;
use super::patience::{is_over, over_at_ns, usual_ns};
use onbeat_runtime::{Context, Error, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Timeout of one attempt to connect. Attempts are made only before the first sample.
const TRY: Duration = Duration::from_millis(200);
/// Pause between two attempts.
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
    pub(super) fn of(connect: Option<&str>, listen: Option<&str>) -> Result<Self, Error> {
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
pub(super) struct TcpConnection {
    peer: TcpPeer,
    /// Time to wait for a connection.
    pub patience_ns: u64,
    /// Listening socket; one that is open before the start is used as it is.
    pub listener: Option<TcpListener>,
    addresses: Vec<SocketAddr>,
    begun_ns: Option<u64>,
    dials: bool,
    /// The connection while it is open.
    pub stream: Option<TcpStream>,
    /// Time on the run's clock at which the connection was opened.
    pub opened_ns: u64,
}

/// Result of an attempt to connect.
enum Dialed {
    Open(TcpStream),
    NotYet(Step),
    GivenUp,
}

/// State of a connection before a step.
pub(super) enum Opening {
    /// It is open, or has been closed here.
    Over,
    /// It is not open yet: result of the step.
    Wait(Step),
    /// The run was stopped before there was a connection, and the patience is used up.
    GivenUp,
}

impl TcpConnection {
    pub fn new(peer: TcpPeer) -> Self {
        TcpConnection {
            peer,
            patience_ns: usual_ns(),
            listener: None,
            addresses: Vec::new(),
            begun_ns: None,
            dials: false,
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
                Dialed::Open(stream) => self.stream = Some(stream),
            }
            (self.dials, self.opened_ns) = (false, cx.now_ns());
        }
        Ok(Opening::Over)
    }

    fn dial(&mut self, cx: &mut Context) -> Result<Dialed, Error> {
        let begun_ns = *self.begun_ns.get_or_insert(cx.now_ns());
        let over = cx.now_ns() >= begun_ns.saturating_add(self.patience_ns) || is_over(cx, self.patience_ns);
        let gives_up = over && cx.is_stopping();
        let ms = self.patience_ns / 1_000_000;
        match &self.peer {
            TcpPeer::Listen(address) => {
                let Some(listener) = &self.listener else { return Ok(Dialed::NotYet(Step::Done)) };
                match listener.accept() {
                    Ok((stream, _)) => {
                        // Closes the listening socket, so that further callers are refused.
                        self.listener = None;
                        opened(stream, address)
                    }
                    Err(error) if error.kind() != ErrorKind::WouldBlock => {
                        Err(Error::with_source(format!("cannot accept a connection on {address}"), error))
                    }
                    Err(_) if gives_up => Ok(Dialed::GivenUp),
                    Err(_) if over => {
                        Err(Error::new(format!("no connection to {address} within {ms} ms (`patience`)")))
                    }
                    Err(_) => {
                        let until_ns = begun_ns.saturating_add(self.patience_ns);
                        let until_ns = until_ns.min(over_at_ns(cx, self.patience_ns));
                        cx.readable_until(listener, until_ns).map(Dialed::NotYet)
                    }
                }
            }
            TcpPeer::Connect(address) => {
                let mut why = None;
                for found in &self.addresses {
                    match TcpStream::connect_timeout(found, TRY) {
                        Ok(stream) => return opened(stream, address),
                        Err(error) => why = Some(error),
                    }
                }
                let Some(why) = why else {
                    return Err(Error::new(format!("cannot connect to {address}: the host has no address")));
                };
                if gives_up {
                    return Ok(Dialed::GivenUp);
                }
                if over {
                    let text = format!("cannot connect to {address} within {ms} ms (`patience`)");
                    return Err(Error::with_source(text, why));
                }
                let again_ns = cx.now_ns() + PAUSE_NS;
                Ok(Dialed::NotYet(cx.until(again_ns)))
            }
        }
    }

    /// An error on an open connection.
    pub fn broken(&self, error: std::io::Error) -> Error {
        Error::with_source(format!("the connection with {} broke", self.address()), error)
    }

    /// Closes the connection, or gives up waiting for it.
    pub fn hang_up(&mut self) {
        (self.dials, self.listener, self.stream) = (false, None, None);
    }
}

fn opened(stream: TcpStream, address: &str) -> Result<Dialed, Error> {
    let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
    prepared.map_err(|error| Error::with_source(format!("the connection with {address}"), error))?;
    Ok(Dialed::Open(stream))
}
