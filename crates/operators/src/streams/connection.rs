//! A connection: who calls whom, and how a stream of bytes is divided.

use super::patience::Patience;
use super::udp::check_address;
use onbeat_runtime::{Context, Error, Seconds, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long one try to connect may take. It happens before the first sample only.
const TRY: Duration = Duration::from_millis(200);
/// Time between two tries.
const PAUSE_NS: u64 = 50_000_000;
/// How long to wait for a connection, unless something else is said.
const PATIENCE_NS: u64 = 10_000_000_000;
/// Bytes of a frame's length.
pub(super) const LENGTH: usize = 4;

pub(super) fn usual() -> Seconds {
    Seconds(PATIENCE_NS as f64 / 1e9)
}

/// How the bytes of a connection are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// Samples, one after the other. Who closes the connection ends the stream.
    #[default]
    Raw,
    /// Before each run of samples, how many bytes it has: 4 bytes, low byte first; 0 ends the stream. A
    /// connection that closes without it is an error.
    Strict,
}

/// Who calls whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// Calls this address.
    Connect(String),
    /// Waits for one call at this address.
    Listen(String),
}

impl Peer {
    pub(super) fn of(connect: Option<&str>, listen: Option<&str>) -> Result<Self, Error> {
        match (connect, listen) {
            (Some(address), None) => {
                check_address("connect", address)?;
                Ok(Peer::Connect(address.to_string()))
            }
            (None, Some(address)) => {
                check_address("listen", address)?;
                Ok(Peer::Listen(address.to_string()))
            }
            _ => Err(Error::new(
                "needs `connect` (an address to call) or `listen` (one to be called at), and not both",
            )),
        }
    }

    fn address(&self) -> &str {
        match self {
            Peer::Connect(address) | Peer::Listen(address) => address,
        }
    }
}

/// One connection, from the wish to its end.
pub(super) struct Line {
    peer: Peer,
    /// How long it waits for a connection.
    pub patience_ns: u64,
    /// Where it is to be called; one that is open before the start is taken as it is.
    pub listener: Option<TcpListener>,
    addresses: Vec<SocketAddr>,
    begun_ns: Option<u64>,
    looks: Patience,
    dials: bool,
    /// While it is open.
    pub stream: Option<TcpStream>,
    /// When it was opened, on the run's clock.
    pub opened_ns: u64,
}

/// What became of a call.
enum Dialed {
    Open(TcpStream),
    NotYet(Step),
}

impl Line {
    pub fn new(peer: Peer) -> Self {
        Line {
            peer,
            patience_ns: PATIENCE_NS,
            listener: None,
            addresses: Vec::new(),
            begun_ns: None,
            looks: Patience::default(),
            dials: false,
            stream: None,
            opened_ns: 0,
        }
    }

    /// For messages.
    pub fn address(&self) -> &str {
        self.peer.address()
    }

    /// Before the first step, also where it begins anew: opens the door, or looks up the address.
    pub fn start(&mut self) -> Result<(), Error> {
        match &self.peer {
            Peer::Listen(address) => {
                let cannot = |error| Error::with_source(format!("cannot listen at {address}"), error);
                let listener = match self.listener.take() {
                    Some(listener) => listener,
                    None => TcpListener::bind(address).map_err(cannot)?,
                };
                listener.set_nonblocking(true).map_err(cannot)?;
                self.listener = Some(listener);
            }
            Peer::Connect(address) => {
                let found = address.to_socket_addrs();
                let found = found
                    .map_err(|error| Error::with_source(format!("cannot connect to {address}"), error))?;
                self.addresses = found.collect();
            }
        }
        (self.dials, self.begun_ns, self.stream) = (true, None, None);
        Ok(())
    }

    /// What to return from the step, until the connection is open.
    pub fn open(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        if self.dials {
            match self.dial(cx)? {
                Dialed::NotYet(step) => return Ok(Some(step)),
                Dialed::Open(stream) => self.stream = Some(stream),
            }
            (self.dials, self.opened_ns) = (false, cx.now_ns());
        }
        Ok(None)
    }

    fn dial(&mut self, cx: &mut Context) -> Result<Dialed, Error> {
        let begun_ns = *self.begun_ns.get_or_insert(cx.now_ns());
        let over = cx.now_ns() >= begun_ns.saturating_add(self.patience_ns);
        let ms = self.patience_ns / 1_000_000;
        match &self.peer {
            Peer::Listen(address) => {
                let Some(listener) = &self.listener else { return Ok(Dialed::NotYet(Step::Done)) };
                match listener.accept() {
                    Ok((stream, _)) => {
                        // Whoever calls now is told that nobody is there.
                        self.listener = None;
                        opened(stream, address)
                    }
                    Err(error) if error.kind() != ErrorKind::WouldBlock => {
                        Err(Error::with_source(format!("cannot accept a call at {address}"), error))
                    }
                    Err(_) if over => {
                        Err(Error::new(format!("nobody has called {address} for {ms} ms (`patience`)")))
                    }
                    Err(_) => Ok(Dialed::NotYet(self.looks.wait(cx))),
                }
            }
            Peer::Connect(address) => {
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
                if over {
                    let text = format!("cannot connect to {address}, tried for {ms} ms (`patience`)");
                    return Err(Error::with_source(text, why));
                }
                let again_ns = cx.now_ns() + PAUSE_NS;
                Ok(Dialed::NotYet(cx.until(again_ns)))
            }
        }
    }

    /// What goes wrong while the connection is open.
    pub fn broken(&self, error: std::io::Error) -> Error {
        Error::with_source(format!("the connection with {} broke", self.address()), error)
    }

    /// Ends the connection, or the way to it.
    pub fn hang_up(&mut self) {
        (self.dials, self.listener, self.stream) = (false, None, None);
    }
}

fn opened(stream: TcpStream, address: &str) -> Result<Dialed, Error> {
    let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
    prepared.map_err(|error| Error::with_source(format!("the connection with {address}"), error))?;
    Ok(Dialed::Open(stream))
}
