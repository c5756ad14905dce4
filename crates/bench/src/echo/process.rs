//! A server as a child process.

use super::client::ClientLine;
use super::messages::{EchoLine, EchoReport, EchoRequest};
use super::settings::EchoTransport;
use onbeat_os::thread;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Time in which a server has to start, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server that runs. It is killed when it is dropped.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    lines: Receiver<String>,
    /// Its end asks a pipeline to stop.
    stdin: Option<ChildStdin>,
}

impl ServerProcess {
    /// Starts a server, and opens the client's end of the transport. `request` gets the client's port.
    pub fn start(
        program: &[OsString],
        mut request: EchoRequest,
    ) -> Result<(ServerProcess, ClientLine), String> {
        let EchoTransport::Udp = request.transport;
        let failed = |error| format!("cannot open a port on this machine: {error}");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        request.port = socket.local_addr().map_err(failed)?.port();
        let mut server = ServerProcess::spawn(program)?;
        server.ask(&request)?;
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, server.ready()?));
        Ok((server, ClientLine::Udp { socket, to }))
    }

    fn spawn(program: &[OsString]) -> Result<ServerProcess, String> {
        let (name, arguments) = program.split_first().ok_or("no program was named for the servers")?;
        let mut child = Command::new(name)
            .args(arguments)
            // Ctrl-C is for the bench, which ends the server.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", name.display()))?;
        let (told, lines) = mpsc::channel();
        let stdin = child.stdin.take();
        let stderr = child.stderr.take().expect("it is piped");
        let server = ServerProcess { child, lines, stdin };
        let read = move || {
            let read = BufReader::new(stderr).lines().map_while(Result::ok);
            _ = read.map(|line| told.send(line)).find(Result::is_err);
        };
        thread::spawn("echo-lines", read).map_err(|error| format!("a thread: {error}"))?;
        Ok(server)
    }

    fn ask(&mut self, request: &EchoRequest) -> Result<(), String> {
        let mut line = serde_json::to_vec(request).expect("plain data");
        line.push(b'\n');
        let stdin = self.stdin.as_mut().expect("it is piped");
        stdin.write_all(&line).map_err(|error| format!("a server does not read its request: {error}"))
    }

    fn line(&mut self) -> Result<EchoLine, String> {
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("a server said nothing for {} s", PATIENCE.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().map_or(String::new(), |status| format!(" ({status})"));
                return Err(format!("a server ended without a word{status}"));
            }
        };
        match serde_json::from_str(&line) {
            Ok(EchoLine::Failed(reason)) => Err(reason),
            Ok(line) => Ok(line),
            Err(_) => Err(format!("a server said: {line}")),
        }
    }

    fn ready(&mut self) -> Result<u16, String> {
        match self.line()? {
            EchoLine::Ready { port } => Ok(port),
            line => Err(format!("unexpected answer of a server: {line:?}")),
        }
    }

    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server, and returns its report.
    pub fn end(mut self, line: ClientLine) -> Result<EchoReport, String> {
        line.end();
        self.stdin = None;
        match self.line()? {
            EchoLine::Report(report) => Ok(report),
            line => Err(format!("unexpected answer of a server: {line:?}")),
        }
    }

    /// Ends the server at once.
    pub fn kill(&mut self) {
        // It may have ended.
        let _ended = self.child.kill();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
        let _ended = self.child.wait();
    }
}
