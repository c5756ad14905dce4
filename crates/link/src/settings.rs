//! Settings of one end of a link.

use crate::socket::{LinkAddress, unix_path};
use crate::tls::NodeIdentity;
use onbeat_os::local;
use onbeat_runtime::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// What an end does when the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnCut {
    /// The run fails at once.
    End,
    /// The end waits for a new connection for the time `hold`; then the run fails. Nothing is lost: what was
    /// in flight is sent again. Meanwhile the edge before the link fills.
    #[default]
    Hold,
    /// The run goes on for as long as it takes; a producer whose input has ended waits for the time `hold`.
    /// Messages that the link cannot take meanwhile are dropped and counted, at both ends.
    Degrade,
}

/// Which end calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkPeer {
    /// This end calls this address: a host and a port, or `unix:` and a path.
    Connect(String),
    /// This end is called at this address.
    Listen(String),
}

impl LinkPeer {
    /// The address.
    pub fn address(&self) -> &str {
        match self {
            LinkPeer::Connect(address) | LinkPeer::Listen(address) => address,
        }
    }
}

/// How a link to another machine is protected.
#[derive(Debug, Clone, Default)]
pub enum LinkSecurity {
    /// The link stays on this machine.
    #[default]
    Loopback,
    /// Everybody on the way can read and change messages, and be the other end.
    Insecure,
    /// Both ends prove their names, and what they say is encrypted.
    Proved {
        /// That of this end.
        identity: Arc<NodeIdentity>,
        /// Name of the node at the other end, as in its certificate.
        peer: String,
    },
}

impl LinkSecurity {
    /// The identity of this end, if it has one.
    pub(crate) fn identity(&self) -> Option<&Arc<NodeIdentity>> {
        match self {
            LinkSecurity::Proved { identity, .. } => Some(identity),
            _ => None,
        }
    }

    /// Name that the other end must have, or none.
    pub(crate) fn peer(&self) -> &[String] {
        match self {
            LinkSecurity::Proved { peer, .. } => std::slice::from_ref(peer),
            _ => &[],
        }
    }
}

/// Settings of one end of a link.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// Name of the link, the same at both ends.
    pub name: String,
    /// Where the other end is.
    pub peer: LinkPeer,
    /// At the consumer: most messages that may be in flight.
    pub window: u32,
    /// What to do when the connection is cut.
    pub on_cut: OnCut,
    /// How long to wait for the first connection.
    pub patience_ns: u64,
    /// How long [`OnCut::Hold`] waits for a new connection.
    pub hold_ns: u64,
    /// Time between signs of life. After three without one, the connection is cut.
    pub heartbeat_ns: u64,
    /// Whether the link may leave this machine, and how.
    pub security: LinkSecurity,
}

/// Whether a text is a host and a port, or `unix:` and the path of a socket. The host is not resolved.
pub(crate) fn is_address(text: &str, least_port: u16) -> bool {
    if let Some(path) = unix_path(text) {
        return (1..=local::PATH_MAX_BYTES).contains(&path.as_os_str().len());
    }
    let port =
        text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    matches!(port, Some(Ok(port)) if port >= least_port)
}

/// Usual number of messages in flight.
pub const WINDOW: u32 = 16;
/// Usual waits for a connection.
pub const PATIENCE_NS: u64 = 10_000_000_000;
/// Usual time between signs of life.
pub const HEARTBEAT_NS: u64 = 200_000_000;

impl LinkSettings {
    /// Settings with the usual values.
    pub fn new(name: impl Into<String>, peer: LinkPeer) -> Self {
        LinkSettings {
            name: name.into(),
            peer,
            window: WINDOW,
            on_cut: OnCut::default(),
            patience_ns: PATIENCE_NS,
            hold_ns: PATIENCE_NS,
            heartbeat_ns: HEARTBEAT_NS,
            security: LinkSecurity::default(),
        }
    }

    /// Resolves the address, and checks that the link may go there.
    ///
    /// # Errors
    /// If the host is not known, or is another machine and nothing allows that.
    pub(crate) fn resolve(&self) -> Result<LinkAddress, Error> {
        let address = self.peer.address();
        if let Some(path) = unix_path(address) {
            if !is_address(address, 0) {
                return Err(Error::new(format!(
                    "{address}: the path of a socket has 1 to {} bytes: choose a shorter one",
                    local::PATH_MAX_BYTES
                )));
            }
            return Ok(LinkAddress::Unix(path.to_path_buf()));
        }
        let found = address.to_socket_addrs();
        let found: Vec<SocketAddr> = found
            .map_err(|error| Error::with_source(format!("cannot find the host of {address}"), error))?
            .collect();
        if found.is_empty() {
            return Err(Error::new(format!("cannot find the host of {address}: it has no address")));
        }
        let is_here = found.iter().all(|address| address.ip().is_loopback());
        if !is_here && matches!(self.security, LinkSecurity::Loopback) {
            return Err(Error::new(format!(
                "{address} is not the loopback: everybody on the way could read and change the messages of link \
                 `{}`; give both ends an `identity`, or set `insecure = true` if that network is trusted",
                self.name
            )));
        }
        Ok(LinkAddress::Tcp(found))
    }
}
