//! The other end of a run's control socket.

use crate::failure::Failure;
use onbeat_os::local;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of the protocol.
const VERSION: u64 = 1;

/// How long whoever is there may take to say who it is.
const GREETING: Duration = Duration::from_secs(5);

/// How long a run may take for an order. It says itself after 5 s that it could not.
const PATIENCE: Duration = Duration::from_secs(15);

/// Most bytes of an answer: the picture of a very large run.
const ANSWER_BYTES: u64 = 256 << 20;

/// A run to which we are connected.
pub struct Connection {
    stream: BufReader<UnixStream>,
    socket: PathBuf,
}

/// Why there is no answer.
pub enum Trouble {
    /// The run has ended, or there was none.
    Gone(Failure),
    Other(Failure),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Gone(failure) | Trouble::Other(failure) => failure,
        }
    }
}

impl Connection {
    /// Connects, and sees that an onbeat is there.
    pub fn open(socket: &Path) -> Result<Self, Trouble> {
        let stream = local::connect(socket, GREETING).map_err(|error| cannot_connect(socket, &error))?;
        let mut connection = Connection { stream: BufReader::new(stream), socket: socket.to_path_buf() };
        connection.wait_for(GREETING)?;
        connection.ask(json!({ "command": "hello" }))?;
        connection.wait_for(PATIENCE)?;
        Ok(connection)
    }

    fn wait_for(&self, time: Duration) -> Result<(), Trouble> {
        let stream = self.stream.get_ref();
        let set = stream.set_read_timeout(Some(time)).and_then(|()| stream.set_write_timeout(Some(time)));
        set.map_err(|error| self.other(&error.to_string()))
    }

    /// The answer to a request, if that was carried out.
    pub fn ask(&mut self, mut request: Value) -> Result<Value, Trouble> {
        request["version"] = VERSION.into();
        // Whoever has hung up may have said why.
        let written = self.stream.get_mut().write_all(format!("{request}\n").as_bytes());
        let mut line = Vec::new();
        let read = (&mut self.stream).take(ANSWER_BYTES).read_until(b'\n', &mut line);
        match (written.and(read.map(drop)), line.last()) {
            (_, Some(b'\n')) => self.answer(&line),
            (Err(error), _) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Err(
                Trouble::Other(self.failure("nobody answers").help("is it the socket of another program?")),
            ),
            (Err(error), _) if is_end(&error) => Err(self.gone()),
            (Err(error), _) => Err(self.other(&error.to_string())),
            (Ok(()), None) => Err(self.gone()),
            (Ok(()), Some(_)) => Err(self.not_ours()),
        }
    }

    fn answer(&self, line: &[u8]) -> Result<Value, Trouble> {
        let answer: Value = serde_json::from_slice(line).map_err(|_| self.not_ours())?;
        let version = answer["version"].as_u64().ok_or_else(|| self.not_ours())?;
        match (&answer["ok"], &answer["error"]) {
            (Value::Bool(false), Value::String(error)) => Err(Trouble::Other(Failure::new(error.clone()))),
            (Value::Bool(true), _) if version == VERSION => Ok(answer),
            (Value::Bool(true), _) => Err(self.other(&format!(
                "the run speaks version {version} of the protocol, and this command {VERSION}: use the onbeat that runs it"
            ))),
            _ => Err(self.not_ours()),
        }
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("control socket `{}`: {what}", self.socket.display()))
    }

    fn other(&self, what: &str) -> Trouble {
        Trouble::Other(self.failure(what))
    }

    fn gone(&self) -> Trouble {
        Trouble::Gone(self.failure("the run has ended before it answered"))
    }

    fn not_ours(&self) -> Trouble {
        let failure = self.failure("what is answered there is no answer of onbeat");
        Trouble::Other(failure.help("is it the socket of another program?"))
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

fn cannot_connect(socket: &Path, error: &io::Error) -> Trouble {
    const MAKE: &str =
        "`onbeat run FILE --control SOCKET` makes one, and so does the key `control` of the file";
    let found = fs::metadata(socket).ok();
    let failure = |what: &str| Failure::new(format!("control socket `{}`: {what}", socket.display()));
    match (error.kind(), found) {
        (ErrorKind::NotFound, _) => Trouble::Gone(failure("there is none").help(MAKE)),
        (ErrorKind::ConnectionRefused, Some(found)) if found.file_type().is_socket() => Trouble::Gone(
            failure("nobody listens there: the run has ended")
                .help("the next run with this socket replaces it"),
        ),
        (ErrorKind::ConnectionRefused, Some(found)) => {
            let what = if found.is_dir() { "a folder" } else { "a file" };
            Trouble::Other(failure(&format!("it is {what} and no socket")).help(MAKE))
        }
        (ErrorKind::PermissionDenied, Some(found)) => {
            let (owner, user) = (found.uid(), local::user());
            let what = format!("{error}: it is that of user {owner}, and you are user {user}");
            let help = format!("ask as its owner or as root: sudo -u '#{owner}' onbeat ctl ...");
            Trouble::Other(failure(&what).help(help))
        }
        (ErrorKind::PermissionDenied, None) => {
            let what = format!("{error}: you are user {}, who may not look into its folder", local::user());
            Trouble::Other(failure(&what).help("ask as the user of the run, or as root"))
        }
        (ErrorKind::TimedOut, _) => {
            Trouble::Other(failure("nobody answers").help("too many wait for it, or it is stopped"))
        }
        _ => Trouble::Other(failure(&error.to_string())),
    }
}
