//! A server as a child process.

use super::client::ClientLine;
use super::messages::{EchoLine, EchoReport, EchoRequest};
use super::settings::EchoTransport;
use onbeat_os::thread;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
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
        let failed = |error: io::Error| format!("the client's end: {error}");
        let line = match request.transport {
            EchoTransport::Udp => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
                request.port = socket.local_addr().map_err(failed)?.port();
                let (server, [port, _]) = ServerProcess::ask(program, &request)?;
                (server, ClientLine::Datagrams { socket, to: (Ipv4Addr::LOCALHOST, port).into() })
            }
            EchoTransport::Tcp => {
                let (server, ports) = ServerProcess::ask(program, &request)?;
                let [out, input] = ports.map(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
                let (out, input) = (out.map_err(failed)?, input.map_err(failed)?);
                out.set_nodelay(true).map_err(failed)?;
                let (out, input) = (OwnedFd::from(out), OwnedFd::from(input));
                (server, ClientLine::Stream { out: Some(out.into()), input: input.into() })
            }
            EchoTransport::Pipe => {
                let (mut server, _) = ServerProcess::ask(program, &request)?;
                let out = server.stdin.take().map(|stdin| OwnedFd::from(stdin).into());
                let input = OwnedFd::from(server.child.stdout.take().expect("it is piped"));
                (server, ClientLine::Stream { out, input: input.into() })
            }
        };
        Ok(line)
    }

    /// Starts a server. Returns its ports too: for messages and for echoes.
    fn ask(program: &[OsString], request: &EchoRequest) -> Result<(ServerProcess, [u16; 2]), String> {
        let mut server = ServerProcess::spawn(program, request.transport == EchoTransport::Pipe)?;
        let mut line = serde_json::to_vec(request).expect("plain data");
        line.push(b'\n');
        let stdin = server.stdin.as_mut().expect("it is piped");
        stdin.write_all(&line).map_err(|error| format!("a server does not read its request: {error}"))?;
        match server.line()? {
            EchoLine::Ready { port, echoes } => Ok((server, [port, echoes])),
            line => Err(format!("unexpected answer of a server: {line:?}")),
        }
    }

    fn spawn(program: &[OsString], has_stdout: bool) -> Result<ServerProcess, String> {
        let (name, arguments) = program.split_first().ok_or("no program was named for the servers")?;
        let mut child = Command::new(name)
            .args(arguments)
            // Ctrl-C is for the bench, which ends the server.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(if has_stdout { Stdio::piped() } else { Stdio::null() })
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

    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server, and returns its report.
    pub fn end(mut self, mut line: ClientLine) -> Result<EchoReport, String> {
        line.end();
        self.stdin = None;
        match self.line()? {
            EchoLine::Report(report) => Ok(report),
            line => Err(format!("unexpected answer of a server: {line:?}")),
        }
    }

    /// Adds what the server said to the reason of a failure.
    pub fn explain(&self, reason: &str) -> String {
        match self.lines.try_recv() {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(EchoLine::Failed(said)) => format!("{reason}; the server said: {said}"),
                _ => format!("{reason}; the server said: {line}"),
            },
            Err(_) => reason.to_owned(),
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
