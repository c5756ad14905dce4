//! Client of a run's control socket.

use crate::arguments::ctl::CtlArguments;
use crate::error::CommandError;
use crate::nodes;
use onbeat::link::SharedStream;
use onbeat_os::local;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the protocol.
const VERSION: u64 = 1;

/// Longest wait for the greeting.
const GREETING: Duration = Duration::from_secs(5);

/// Longest wait for the answer to a request. The run itself reports after 5 s that it could not carry it out.
const PATIENCE: Duration = Duration::from_secs(15);

/// Largest answer: the status of a very large run.
const ANSWER_BYTES: u64 = 256 << 20;

/// Connection to a run.
pub struct Connection {
    stream: BufReader<ControlWay>,
    socket: PathBuf,
}

/// What leads to the run.
enum ControlWay {
    Local(UnixStream),
    /// Through the node where it runs.
    Node(SharedStream),
}

impl Read for ControlWay {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            ControlWay::Local(stream) => stream.read(bytes),
            ControlWay::Node(stream) => stream.read(bytes),
        }
    }
}

impl Write for ControlWay {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ControlWay::Local(stream) => stream.write(bytes),
            ControlWay::Node(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ControlWay::Local(stream) => stream.flush(),
            ControlWay::Node(stream) => stream.flush(),
        }
    }
}

/// Error of a request.
pub enum RequestError {
    /// The run has ended, or never existed.
    Gone(CommandError),
    Other(CommandError),
}

impl From<RequestError> for CommandError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Gone(failure) | RequestError::Other(failure) => failure,
        }
    }
}

impl Connection {
    /// Connects, and checks that an onbeat run answers.
    pub fn open(arguments: &CtlArguments) -> Result<Self, RequestError> {
        let CtlArguments { socket, identity, node, .. } = arguments;
        let way = match nodes::remote(socket) {
            Some(place) => {
                let found = nodes::connect(place, identity.as_deref(), node.as_deref());
                ControlWay::Node(found.map_err(RequestError::Other)?.map_err(RequestError::Gone)?)
            }
            None => {
                let found = local::connect(socket, GREETING);
                ControlWay::Local(found.map_err(|error| cannot_connect(socket, &error))?)
            }
        };
        let mut connection = Connection { stream: BufReader::new(way), socket: socket.clone() };
        connection.wait_for(GREETING)?;
        connection.ask(json!({ "command": "hello" }))?;
        connection.wait_for(PATIENCE)?;
        Ok(connection)
    }

    fn wait_for(&mut self, time: Duration) -> Result<(), RequestError> {
        let set = match self.stream.get_mut() {
            ControlWay::Local(stream) => {
                stream.set_read_timeout(Some(time)).and_then(|()| stream.set_write_timeout(Some(time)))
            }
            ControlWay::Node(stream) => {
                stream.patience = Some(time);
                Ok(())
            }
        };
        set.map_err(|error| self.other(&error.to_string()))
    }

    /// Sends a request and returns the answer, if the run carried it out.
    pub fn ask(&mut self, mut request: Value) -> Result<Value, RequestError> {
        request["version"] = VERSION.into();
        // If the run closed the connection, it may have sent a reason before that.
        let written = self.stream.get_mut().write_all(format!("{request}\n").as_bytes());
        let mut line = Vec::new();
        let read = (&mut self.stream).take(ANSWER_BYTES).read_until(b'\n', &mut line);
        match (written.and(read.map(drop)), line.last()) {
            (_, Some(b'\n')) => self.answer(&line),
            (Err(error), _) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(RequestError::Other(
                    self.failure("no answer").help("check that it is the socket of an onbeat run, and that the run is not suspended (Ctrl-Z)"),
                ))
            }
            (Err(error), _) if is_end(&error) => Err(self.gone()),
            (Err(error), _) => Err(self.other(&error.to_string())),
            (Ok(()), None) => Err(self.gone()),
            (Ok(()), Some(_)) => Err(self.not_ours()),
        }
    }

    fn answer(&self, line: &[u8]) -> Result<Value, RequestError> {
        let answer: Value = serde_json::from_slice(line).map_err(|_| self.not_ours())?;
        let version = answer["version"].as_u64().ok_or_else(|| self.not_ours())?;
        match (&answer["ok"], &answer["error"]) {
            (Value::Bool(false), Value::String(error)) => Err(RequestError::Other(CommandError::new(error.clone()))),
            (Value::Bool(true), _) if version == VERSION => Ok(answer),
            (Value::Bool(true), _) => Err(self.other(&format!(
                "the run uses protocol version {version}, this command {VERSION}: use the same version of onbeat"
            ))),
            _ => Err(self.not_ours()),
        }
    }

    fn failure(&self, what: &str) -> CommandError {
        CommandError::new(format!("control socket `{}`: {what}", self.socket.display()))
    }

    fn other(&self, what: &str) -> RequestError {
        RequestError::Other(self.failure(what))
    }

    fn gone(&self) -> RequestError {
        RequestError::Gone(self.failure("the run ended before it answered"))
    }

    fn not_ours(&self) -> RequestError {
        let failure = self.failure("the answer is not from an onbeat run");
        RequestError::Other(failure.help("check that it is the socket of an onbeat run"))
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

fn cannot_connect(socket: &Path, error: &io::Error) -> RequestError {
    const MAKE: &str =
        "create one with `onbeat run FILE --control SOCKET`, or with `control` in the pipeline file";
    let found = fs::metadata(socket).ok();
    let failure = |what: &str| CommandError::new(format!("control socket `{}`: {what}", socket.display()));
    match (error.kind(), found) {
        (ErrorKind::NotFound, _) => RequestError::Gone(failure("no such socket").help(MAKE)),
        (ErrorKind::ConnectionRefused, Some(found)) if found.file_type().is_socket() => RequestError::Gone(
            failure("no run listens on it: the run has ended")
                .help("the next run with this socket replaces it"),
        ),
        (ErrorKind::ConnectionRefused, Some(found)) => {
            let what = if found.is_dir() { "a folder" } else { "a file" };
            RequestError::Other(failure(&format!("it is {what}, not a socket")).help(MAKE))
        }
        (ErrorKind::PermissionDenied, Some(found)) => {
            let (owner, user) = (found.uid(), local::user());
            let what = format!("{error}: it belongs to user {owner}, and you are user {user}");
            let help = format!("run the command as its owner or as root: sudo -u '#{owner}' onbeat ctl ...");
            RequestError::Other(failure(&what).help(help))
        }
        (ErrorKind::PermissionDenied, None) => {
            let what = format!("{error}: you are user {}, who cannot access its folder", local::user());
            RequestError::Other(failure(&what).help("run the command as the user of the run, or as root"))
        }
        (ErrorKind::TimedOut, _) => RequestError::Other(
            failure("no answer").help("too many clients are waiting, or the process is stopped"),
        ),
        _ => RequestError::Other(failure(&error.to_string())),
    }
}
