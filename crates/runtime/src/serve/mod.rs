//! A run's handle on a socket, for processes of the same user and of root.
//!
//! | file | contents |
//! |---|---|
//! | `server` | the thread: serves all connections in turn, and waits for none of them |
//! | `client` | one connection: lines in, lines out, limits |
//! | `request` | valid requests, and the refusal of all other lines |
//! | `answer` | answers |
//!
//! The page `control.md` of the book describes the protocol for those who write a client.

mod answer;
mod client;
mod request;
mod server;

use crate::base::helper::Helper;
use crate::pipeline::Pipeline;
use crate::run::{Run, RunError, RunHandle, RunService};
use onbeat_os::SocketFile;
use onbeat_trace::record::ThreadRecord;
use onbeat_trace::{Evidence, NoEvidence};
use server::ControlServer;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Its thread's name.
const NAME: &str = "onbeat-control";

/// Why a control socket cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("control socket `{}`: {reason}", path.display())]
pub struct ControlError {
    path: PathBuf,
    reason: String,
}

/// A socket by which other processes watch and control a run: `onbeat ctl`, or a program of yours.
///
/// Only its owner may connect to it (mode 0600). The server also checks the user of each connection: it
/// serves the user of this process and root. The socket exists from [`bind`](ControlSocket::bind) on. Clients
/// are answered once a run has the socket. It is removed with the run.
///
/// ```
/// use onbeat_runtime::{ControlSocket, Graph, Options};
/// use std::io::{BufRead, BufReader, Write};
/// use std::os::unix::net::UnixStream;
/// # let mut graph = Graph::new("endless");
/// # let ones = graph.source("ones", || Some(1u8));
/// # let end = graph.sink("end", |_: u8| ());
/// # graph.connect(ones, |s| &s.out, end, |e| &e.input);
/// let path = std::env::temp_dir().join(format!("onbeat-doc-{}", std::process::id()));
/// let socket = ControlSocket::bind(&path)?;
/// let mut run = graph.start(&Options::default())?;
/// run.serve(socket)?;
///
/// let mut client = UnixStream::connect(&path)?;
/// client.write_all(b"{\"version\":1,\"command\":\"stop\"}\n")?;
/// let mut answer = String::new();
/// BufReader::new(client).read_line(&mut answer)?;
/// assert_eq!(answer, "{\"version\":1,\"ok\":true}\n");
///
/// let record = run.wait()?;
/// assert!(record.threads.iter().any(|thread| thread.name == "onbeat-control"));
/// assert!(!path.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ControlSocket {
    file: SocketFile,
}

impl ControlSocket {
    /// The longest name, in bytes.
    pub const PATH_MAX_BYTES: usize = onbeat_os::local::PATH_MAX_BYTES;

    /// Creates the socket. Replaces a socket that a killed run has left behind.
    ///
    /// # Errors
    /// If the socket cannot be created, if another process listens there already, or if the name belongs to
    /// something other than a socket, which is left as it is.
    pub fn bind(path: impl AsRef<Path>) -> Result<Self, ControlError> {
        let path = path.as_ref();
        match SocketFile::take(path) {
            Ok(file) => Ok(ControlSocket { file }),
            Err(mut reason) => {
                if reason.contains("serves it already") {
                    reason += &format!(" (`onbeat ctl {} stop`)", path.display());
                }
                Err(ControlError { path: path.to_path_buf(), reason })
            }
        }
    }

    /// Its name, as it was given.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Starts the thread, on the house-keeping cores if there are any.
    fn serve(self, handle: RunHandle, house_keeping: Vec<usize>) -> Result<Serving, ControlError> {
        let path = self.path().to_path_buf();
        let cannot = |error: std::io::Error| ControlError {
            path: path.clone(),
            reason: format!("the thread that serves it cannot be started: {error}"),
        };
        let purpose = "answers those who watch and steer the run from outside";
        let helper = Helper { name: NAME, purpose, house_keeping };
        let (end, ended) = UnixStream::pair().map_err(cannot)?;
        let thread = helper.start(move || ControlServer::new(self.file, handle, ended).run());
        Ok(Serving { end: Some(end), thread: Some(thread.map_err(cannot)?) })
    }
}

impl ControlError {
    /// A run has one socket.
    fn twice(socket: &ControlSocket) -> Self {
        let reason = "the run has another one already".to_string();
        ControlError { path: socket.path().to_path_buf(), reason }
    }
}

/// A socket that is served. Dropped, it is not any more.
#[derive(Debug)]
struct Serving {
    /// Its other end is readable when this one is gone.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<ThreadRecord>>,
}

impl RunService for Serving {
    fn end(mut self: Box<Self>) -> Option<ThreadRecord> {
        self.finish()
    }
}

impl Serving {
    fn finish(&mut self) -> Option<ThreadRecord> {
        drop(self.end.take());
        self.thread.take()?.join().ok()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _told_elsewhere = self.finish();
    }
}

impl Run {
    /// Lets clients of `socket` watch and control this run until it has ended. The server's thread,
    /// `onbeat-control`, is kept on the house-keeping cores and listed in the record.
    ///
    /// # Errors
    /// If the thread cannot be started, or the run has a socket already.
    pub fn serve(&mut self, socket: ControlSocket) -> Result<(), ControlError> {
        if self.has_service() {
            return Err(ControlError::twice(&socket));
        }
        let serving = socket.serve(self.handle(), self.house_keeping())?;
        self.set_service(Box::new(serving));
        Ok(())
    }
}

impl Pipeline {
    /// Starts it, and serves its `control` socket, if it has one.
    ///
    /// # Errors
    /// [`RunError::Begin`] when threads or memory are missing, or the socket cannot be had: then it does not
    /// begin.
    pub fn start(self) -> Result<Run, RunError> {
        self.start_explained(Box::new(NoEvidence))
    }

    /// As [`start`](Pipeline::start), with kernel events: see
    /// [`Graph::start_explained`](crate::Graph::start_explained).
    ///
    /// # Errors
    /// As those of [`start`](Pipeline::start).
    pub fn start_explained(self, evidence: Box<dyn Evidence>) -> Result<Run, RunError> {
        let begin = |error: ControlError| RunError::Begin(error.to_string());
        let socket = self.control.map(ControlSocket::bind).transpose().map_err(begin)?;
        let mut run = self.graph.start_explained(self.plan, evidence)?;
        match socket.map(|socket| run.serve(socket)) {
            Some(Err(error)) => {
                run.stop();
                // What it did is of no interest: it was not to begin.
                let _ = run.wait();
                Err(begin(error))
            }
            _ => Ok(run),
        }
    }
}
