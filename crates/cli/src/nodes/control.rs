//! The control sockets of parts, for `onbeat ctl` on other machines: a node passes on what is said.

use super::node::RunningParts;
use super::{JsonLines, NodeReply, NodeRequest, REPLY_BYTES, own_identity, write_line};
use crate::error::CommandError;
use onbeat::link::{SharedStream, call};
use std::io;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for a node.
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket for the control of a part that names none, in the folder for temporary files.
pub(super) fn own_socket(number: u64) -> PathBuf {
    std::env::temp_dir().join(format!("onbeat-node-{}-{number}.ctl", std::process::id()))
}

/// The control socket of a part; without a name, of the only one.
pub(super) fn socket_of(running: &RunningParts, name: &str) -> Result<PathBuf, String> {
    let parts = &running.parts;
    let found: Vec<_> = parts.iter().filter(|part| name.is_empty() || part.name == name).collect();
    match found[..] {
        [part] => part.control.clone().ok_or_else(|| format!("`{}` has no control socket", part.name)),
        [] if parts.is_empty() => Err("nothing runs at this node".to_string()),
        _ => {
            let names: Vec<String> = parts.iter().map(|part| format!("`{}`", part.name)).collect();
            let unknown =
                if name.is_empty() { String::new() } else { format!("`{name}` does not run here: ") };
            Err(format!("{unknown}this node runs {}: name one of them", names.join(", ")))
        }
    }
}

/// Passes on what the caller and the control socket say to each other, until one of them is done.
pub(super) fn pass_on(lines: JsonLines, mut caller: SharedStream, socket: &Path) -> io::Result<()> {
    let mut control = match UnixStream::connect(socket) {
        Ok(control) => control,
        Err(error) => return write_line(&mut caller, &NodeReply::Failed(error.to_string())),
    };
    write_line(&mut caller, &NodeReply::Controlled)?;
    let (mut asked, mut questions) = (control.try_clone()?, lines.reader);
    let asking = onbeat_os::thread::spawn("onbeat-ctl", move || {
        // Either side may be gone.
        let _gone = io::copy(&mut questions, &mut asked);
        let _gone = asked.shutdown(Shutdown::Both);
    })?;
    let _gone = io::copy(&mut control, &mut caller);
    let _gone = caller.shutdown(Shutdown::Both);
    let _panicked = asking.join();
    Ok(())
}

/// The address of a node, and the name of the run there, if this is not a local socket.
pub fn remote(socket: &Path) -> Option<(&str, &str)> {
    if socket.exists() {
        return None;
    }
    let text = socket.to_str()?;
    let (address, run) = text.split_once('/').unwrap_or((text, ""));
    let (host, port) = address.rsplit_once(':')?;
    (!host.is_empty() && port.parse::<u16>().is_ok()).then_some((address, run))
}

/// Connects to the control socket of a run at a node. An error of the inner kind: there is no such run.
pub fn connect(
    (address, run): (&str, &str),
    identity: Option<&Path>,
    node: Option<&str>,
) -> Result<Result<SharedStream, CommandError>, CommandError> {
    let cannot = |error: &dyn std::fmt::Display| CommandError::new(format!("node {address}: {error}"));
    let identity = own_identity(identity)?;
    if identity.is_some() && node.is_none() {
        return Err(CommandError::new("--identity needs --node: the name in the certificate of the node"));
    }
    let mut last = None;
    let socket = address.to_socket_addrs().map_err(|error| cannot(&error))?.find_map(|address| {
        TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| last = Some(error)).ok()
    });
    let Some(socket) = socket else {
        let why = last.map_or("it has no address".to_string(), |error| error.to_string());
        return Err(cannot(&why).help("it is the address of an `onbeat node`"));
    };
    let stream = socket
        .set_nodelay(true)
        .and_then(|()| socket.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| call(socket, identity.as_ref(), node.unwrap_or_default()))
        .and_then(SharedStream::new);
    let mut stream = stream.map_err(|error| cannot(&error))?;
    stream.patience = Some(PATIENCE);
    let mut lines = JsonLines::new(stream, REPLY_BYTES);
    let ask = NodeRequest::Control { version: env!("CARGO_PKG_VERSION").to_string(), run: run.to_string() };
    write_line(&mut lines.writer(), &ask).map_err(|error| cannot(&error))?;
    match lines.read().map_err(|error| cannot(&error))? {
        Some(NodeReply::Controlled) => Ok(Ok(lines.writer())),
        Some(NodeReply::Failed(why)) => Ok(Err(cannot(&why))),
        _ => Err(cannot(&"it answers something else").help("install the same version of onbeat there")),
    }
}
