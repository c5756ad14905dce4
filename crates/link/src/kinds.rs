//! The kinds of operators for pipeline files.

use crate::carry::Carried;
use crate::settings::{
    HEARTBEAT_NS, LinkPeer, LinkSecurity, LinkSettings, OnCut, PATIENCE_NS, WINDOW, is_address,
};
use crate::tls::NodeIdentity;
use crate::{LinkSink, LinkSource};
use num_complex::Complex;
use onbeat_runtime::{Chunk, Error, Folders, Kind, Registry, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// Most messages in flight.
const WINDOW_LIMIT: u32 = 65_536;
/// Longest name of a link.
const NAME_LIMIT: usize = 100;

/// One end of a link.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LinkParameters {
    /// Name of the link, the same at both ends.
    link: String,
    /// Address and port of the other end, such as `192.168.0.7:7000`, or `unix:` and the path of a socket on
    /// this machine; give either `connect` or `listen`.
    #[serde(default)]
    connect: Option<String>,
    /// Address and port to be called at, or `unix:` and the path of a socket, which only this user and root
    /// can open. Several links can share it. Give either `connect` or `listen`.
    #[serde(default)]
    listen: Option<String>,
    /// Most messages that may be in flight: sent, and not yet taken at the other end. The smaller value of
    /// both ends counts.
    #[serde(default = "usual_window")]
    window: u32,
    /// `end`: a cut connection ends the run. `hold`: the run waits for `hold`, and nothing is lost.
    /// `degrade`: the run goes on; messages meanwhile are dropped and counted.
    #[serde(default)]
    on_cut: OnCut,
    /// How long to wait for the other end at the beginning; and after a stop, until it has taken the rest.
    #[serde(default = "usual_patience")]
    patience: Seconds,
    /// How long to wait for the other end after a cut.
    #[serde(default = "usual_patience")]
    hold: Seconds,
    /// Time between signs of life. After three without one, the connection is cut.
    #[serde(default = "usual_heartbeat")]
    heartbeat: Seconds,
    /// Folder with `authority.pem`, `certificate.pem` and `key.pem`, beside the pipeline. With
    /// it, the link is encrypted by TLS 1.3, and both ends prove their names; `onbeat identity` makes one.
    #[serde(default)]
    identity: Option<PathBuf>,
    /// Name of the node at the other end, as in its certificate. Goes with `identity`.
    #[serde(default)]
    peer: Option<String>,
    /// Allows a link to another machine without an `identity`. It is not encrypted, and every program that
    /// reaches the port can be the other end.
    #[serde(default)]
    insecure: bool,
}

fn usual_window() -> u32 {
    WINDOW
}

fn usual_patience() -> Seconds {
    Seconds(PATIENCE_NS as f64 / 1e9)
}

fn usual_heartbeat() -> Seconds {
    Seconds(HEARTBEAT_NS as f64 / 1e9)
}

fn security(p: &LinkParameters, folders: &Folders) -> Result<LinkSecurity, Error> {
    let may = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(peer) =
        p.peer.as_ref().filter(|peer| !(1..=253).contains(&peer.len()) || !peer.chars().all(may))
    {
        let shown: String = peer.chars().take(60).flat_map(char::escape_debug).collect();
        return Err(Error::new(format!(
            "`peer` is `{shown}`: a node's name has 1 to 253 letters, digits, `-`, `_` and `.`"
        )));
    }
    match (&p.identity, &p.peer, p.insecure) {
        (None, None, false) => Ok(LinkSecurity::Loopback),
        (None, None, true) => Ok(LinkSecurity::Insecure),
        (Some(_), _, true) => {
            Err(Error::new("`identity` and `insecure = true` contradict each other: remove one of them"))
        }
        (Some(folder), Some(peer), false) => Ok(LinkSecurity::Proved {
            identity: Arc::new(NodeIdentity::load(&folders.input(folder))?),
            peer: peer.clone(),
        }),
        (Some(_), None, false) => Err(Error::new(
            "`identity` needs `peer`: the name of the node at the other end, as in its certificate",
        )),
        (None, Some(peer), _) => Err(Error::new(format!(
            "`peer` is `{peer}`, but this end has no `identity` (of a node: `onbeat node --identity DIR`)"
        ))),
    }
}

fn settings(p: &LinkParameters, folders: &Folders) -> Result<LinkSettings, Error> {
    if p.link.is_empty() || p.link.len() > NAME_LIMIT || p.link.chars().any(char::is_control) {
        let shown: String = p.link.chars().take(NAME_LIMIT).flat_map(char::escape_debug).collect();
        return Err(Error::new(format!(
            "`link` is `{shown}`: it must have 1 to {NAME_LIMIT} bytes, and no control characters"
        )));
    }
    if !(1..=WINDOW_LIMIT).contains(&p.window) {
        return Err(Error::new(format!("`window` is {}: it must be 1 to {WINDOW_LIMIT}", p.window)));
    }
    let peer = match (&p.connect, &p.listen) {
        (Some(address), None) => LinkPeer::Connect(address.clone()),
        (None, Some(address)) => LinkPeer::Listen(address.clone()),
        _ => {
            return Err(Error::new(
                "needs `connect` (an address to call) or `listen` (an address to be called at), not both",
            ));
        }
    };
    let address = peer.address();
    if !is_address(address, 0) {
        let shown: String = address.chars().take(260).flat_map(char::escape_debug).collect();
        return Err(Error::new(format!(
            "the address `{shown}` must be a host and a port from 0 to 65535, such as `127.0.0.1:7000`, or `unix:` and a \
             path"
        )));
    }
    Ok(LinkSettings {
        window: p.window,
        on_cut: p.on_cut,
        patience_ns: time_ns("patience", p.patience)?,
        hold_ns: time_ns("hold", p.hold)?,
        heartbeat_ns: time_ns("heartbeat", p.heartbeat)?.max(1_000_000),
        security: security(p, folders)?,
        ..LinkSettings::new(&p.link, peer)
    })
}

fn time_ns(name: &str, time: Seconds) -> Result<u64, Error> {
    // Real time in nanoseconds, and three heartbeats of it, must not overflow.
    const MOST_S: f64 = 1e9;
    if !(time.0 > 0.0 && time.0 <= MOST_S) {
        return Err(Error::new(format!(
            "`{name}` is {} s: it must be above 0 and at most {MOST_S} s",
            time.0
        )));
    }
    Ok((time.0 * 1e9) as u64)
}

fn sink<M: Carried>(p: &LinkParameters, folders: &Folders) -> Result<LinkSink<M>, Error> {
    Ok(LinkSink::new(settings(p, folders)?))
}

fn source<M: Carried>(p: &LinkParameters, folders: &Folders) -> Result<LinkSource<M>, Error> {
    Ok(LinkSource::new(settings(p, folders)?))
}

/// Adds the kinds of both ends for one message type.
///
/// # Panics
/// If a name is taken: that is a mistake in the program.
pub fn add_kinds_of<M: Carried>(registry: &mut Registry, sink_name: &'static str, source_name: &'static str) {
    let example = "link = \"iq\"\nconnect = \"127.0.0.1:7000\"";
    registry.add(Kind::new(sink_name, "sends messages to another run of onbeat", example, sink::<M>));
    let example = "link = \"iq\"\nlisten = \"127.0.0.1:7000\"";
    registry.add(Kind::new(
        source_name,
        "receives messages from another run of onbeat",
        example,
        source::<M>,
    ));
}

/// Adds the kinds `link.sink` and `link.source`, for each message type.
pub fn add_kinds(registry: &mut Registry) {
    add_kinds_of::<Chunk<f32>>(registry, "link.sink", "link.source");
    add_kinds_of::<Chunk<Complex<f32>>>(registry, "link.sink.complex", "link.source.complex");
    add_kinds_of::<Chunk<u8>>(registry, "link.sink.bytes", "link.source.bytes");
    add_kinds_of::<u64>(registry, "link.sink.numbers", "link.source.numbers");
    add_kinds_of::<f64>(registry, "link.sink.value", "link.source.value");
    add_kinds_of::<String>(registry, "link.sink.text", "link.source.text");
}
