//! `--metrics`: metrics of a run, or of a node, over HTTP, for Prometheus and similar programs.
//!
//! One thread serves all connections in turn, each for a short time. It reads the state of the run at most
//! ten times a second, for any number of requests. So a client can delay neither the run nor other clients.

mod client;
mod text;

use crate::error::CommandError;
use client::HttpClient;
use onbeat::RunStatus;
use onbeat_os::door::{Door, Woken};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
pub use text::MetricsOf;

pub const THREAD_NAME: &str = "onbeat-metrics";

/// Most connections at a time.
const CLIENTS: usize = 16;
/// Time for which the text of the metrics is reused.
const FRESH: Duration = Duration::from_millis(100);

/// Listening socket, before the server thread starts.
pub struct MetricsListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// Server thread, until this is dropped.
pub struct Metrics {
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// Parses an address with a port. A port alone and `localhost` mean 127.0.0.1.
fn parse(text: &str) -> Option<SocketAddr> {
    let local = |port: &str| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?));
    match text.strip_prefix("localhost:") {
        Some(port) => local(port),
        None => text.parse().ok().or_else(|| local(text.strip_prefix(':').unwrap_or(text))),
    }
}

impl MetricsListener {
    /// Listens on an address.
    pub fn new(text: &str) -> Result<Self, CommandError> {
        let wrong = |what: &dyn std::fmt::Display| CommandError::new(format!("--metrics {text}: {what}"));
        let address = parse(text).ok_or_else(|| {
            wrong(&"not an address with a port")
                .help("use 127.0.0.1:9464 or [::1]:9464 for this machine only, 0.0.0.0:9464 for all networks")
        })?;
        let listener = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                wrong(&"the address is already in use").help("choose another port, or 0 for any free one")
            }
            ErrorKind::AddrNotAvailable => wrong(&"this machine has no such address")
                .help("use 127.0.0.1:9464 for this machine only, 0.0.0.0:9464 for all networks"),
            ErrorKind::PermissionDenied => {
                wrong(&error).help("choose a port from 1024 on, or 0 for any free one")
            }
            _ => wrong(&error),
        })?;
        let address = listener.local_addr().map_err(|error| wrong(&error))?;
        Ok(MetricsListener { listener, address })
    }

    /// Returns a message with the address, and a warning if others can read it.
    pub fn line(&self) -> String {
        let whom = if self.address.ip().is_loopback() {
            String::new()
        } else {
            "; anyone who can reach this address can read them: there is no password".to_string()
        };
        format!("metrics: http://{}/metrics{whom}", self.address)
    }

    /// Starts the server thread. `look` gives the state of all runs.
    pub fn serve(
        self,
        of: MetricsOf,
        look: impl Fn() -> Vec<RunStatus> + Send + 'static,
    ) -> Result<Metrics, CommandError> {
        let cannot = |error: io::Error| {
            CommandError::new(format!("--metrics: cannot start the server thread: {error}"))
        };
        let (end, ended) = UnixStream::pair().map_err(cannot)?;
        let door = Door::new(self.listener, ended);
        let look = Box::new(move || text::text(look(), of));
        let server = Server { door, look, clients: Vec::new(), latest: None };
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
    /// Gives the text of the metrics.
    look: Box<dyn Fn() -> String + Send>,
    clients: Vec<HttpClient>,
    latest: Option<(Instant, String)>,
}

impl Server {
    fn run(mut self) {
        while let Ok(woken) = self.wait() {
            if woken.has_ended {
                return;
            }
            let (look, latest) = (&self.look, &mut self.latest);
            let mut text = || fresh(look, latest);
            self.clients.iter_mut().for_each(|client| client.turn(&mut text));
            self.clients.retain(|client| !client.is_gone());
            if woken.knocks {
                self.let_in();
            }
        }
    }

    fn wait(&mut self) -> io::Result<Woken> {
        let until = self.clients.iter().map(HttpClient::deadline).min();
        self.door.wait(self.clients.iter().map(HttpClient::waits), until)
    }

    /// Accepts new connections. If there are too many, the oldest one is closed, so that idle clients cannot
    /// block others.
    fn let_in(&mut self) {
        let clients = &mut self.clients;
        self.door.let_in(CLIENTS, |stream| {
            if clients.len() >= CLIENTS {
                clients.remove(0);
            }
            clients.push(HttpClient::new(stream));
        });
    }
}

/// Returns the text of the metrics, at most [`FRESH`] old.
fn fresh(look: &dyn Fn() -> String, latest: &mut Option<(Instant, String)>) -> String {
    if let Some((at, text)) = latest
        && at.elapsed() < FRESH
    {
        return text.clone();
    }
    let text = look();
    *latest = Some((Instant::now(), text.clone()));
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
