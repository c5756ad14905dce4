//! `--metrics`: what a run does, for Prometheus and its like, by HTTP.
//!
//! One thread serves all connections in turn, each for a short time, and a picture of the run is taken at most ten times a second
//! however many ask for it: whoever connects can hold up neither the run nor the others.

mod client;
mod text;

use crate::failure::Failure;
use client::Client;
use onbeat::RunHandle;
use onbeat_os::door::{Door, Woken};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const THREAD_NAME: &str = "onbeat-metrics";

/// Connections at a time.
const CLIENTS: usize = 16;
/// A picture is as good as new for so long.
const FRESH: Duration = Duration::from_millis(100);

/// Somebody may connect; nobody answers yet.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// A thread that answers, until this is dropped.
pub struct Metrics {
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// An address with a port; a port alone is one of this machine's own, and so is `localhost`.
fn parse(text: &str) -> Option<SocketAddr> {
    let local = |port: &str| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?));
    match text.strip_prefix("localhost:") {
        Some(port) => local(port),
        None => text.parse().ok().or_else(|| local(text.strip_prefix(':').unwrap_or(text))),
    }
}

impl Bound {
    /// Listens there.
    pub fn new(text: &str) -> Result<Self, Failure> {
        let wrong = |what: &dyn std::fmt::Display| Failure::new(format!("--metrics {text}: {what}"));
        let address = parse(text).ok_or_else(|| {
            wrong(&"it is no address with a port").help("write 127.0.0.1:9464 for this machine alone, 0.0.0.0:9464 for all who reach it, or [::1]:9464")
        })?;
        let listener = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => wrong(&"somebody listens there already")
                .help("choose another port, or 0 for any that is free"),
            ErrorKind::AddrNotAvailable => wrong(&"this machine has no such address")
                .help("127.0.0.1:9464 is for this machine alone, 0.0.0.0:9464 for all who reach it by any of its addresses"),
            ErrorKind::PermissionDenied => wrong(&error).help("choose a port from 1024 on, or 0 for any that is free"),
            _ => wrong(&error),
        })?;
        let address = listener.local_addr().map_err(|error| wrong(&error))?;
        Ok(Bound { listener, address })
    }

    /// Where it is, and who may read it.
    pub fn line(&self) -> String {
        let whom = if self.address.ip().is_loopback() {
            String::new()
        } else {
            "; whoever reaches this address can read them, there is no password".to_string()
        };
        format!("metrics: http://{}/metrics{whom}", self.address)
    }

    /// Answers from now on.
    pub fn serve(self, handle: RunHandle) -> Result<Metrics, Failure> {
        let cannot = |error: io::Error| {
            Failure::new(format!("--metrics: the thread that answers cannot be started: {error}"))
        };
        let (end, ended) = UnixStream::pair().map_err(cannot)?;
        let door = Door::new(self.listener, ended);
        let server = Server { door, handle, clients: Vec::new(), picture: None };
        let thread = onbeat_os::thread::spawn(THREAD_NAME, move || server.run()).map_err(cannot)?;
        Ok(Metrics { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

struct Server {
    door: Door<TcpListener>,
    handle: RunHandle,
    clients: Vec<Client>,
    picture: Option<(Instant, String)>,
}

impl Server {
    fn run(mut self) {
        while let Ok(woken) = self.wait() {
            if woken.has_ended {
                return;
            }
            let (handle, picture) = (&self.handle, &mut self.picture);
            let mut text = || fresh(handle, picture);
            self.clients.iter_mut().for_each(|client| client.turn(&mut text));
            self.clients.retain(|client| !client.is_gone());
            if woken.knocks {
                self.let_in();
            }
        }
    }

    fn wait(&mut self) -> io::Result<Woken> {
        let until = self.clients.iter().map(Client::deadline).min();
        self.door.wait(self.clients.iter().map(Client::waits), until)
    }

    /// Where there is no room, whoever came first goes: to keep connections and say nothing keeps nobody away.
    fn let_in(&mut self) {
        let clients = &mut self.clients;
        self.door.let_in(CLIENTS, |stream| {
            if clients.len() >= CLIENTS {
                clients.remove(0);
            }
            clients.push(Client::new(stream));
        });
    }
}

/// A text that is young enough.
fn fresh(handle: &RunHandle, picture: &mut Option<(Instant, String)>) -> String {
    if let Some((at, text)) = picture
        && at.elapsed() < FRESH
    {
        return text.clone();
    }
    let text = text::text(handle.status());
    *picture = Some((Instant::now(), text.clone()));
    text
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        for text in ["9464", ":9464", "127.0.0.1:9464", "localhost:9464"] {
            assert_eq!(
                parse(text).map(|address| address.to_string()).as_deref(),
                Some("127.0.0.1:9464"),
                "{text}"
            );
        }
        assert!(parse("[::1]:0").is_some_and(|address| address.ip().is_loopback()));
        for text in ["", ":", "70000", "127.0.0.1", "host:80", "0.0.0.0", "-1", "localhost:x"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
