//! Runs that are watched and steered through a socket.

mod hostile;
mod place;
mod wire;

use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_runtime::{ControlSocket, Graph, Options, Run, RunStatus};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A folder of its own, which goes away with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("onbeat-serve-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// numbers → double → end, without an end of its own, and served.
pub fn endless(socket: &Path) -> Run {
    let mut graph = Graph::new("endless");
    let mut n = 0u64;
    let numbers = graph.source("numbers", move || {
        n += 1;
        Some(n)
    });
    let double = graph.map("double", |n: u64| 2 * n);
    let end = graph.sink("end", |_: u64| ());
    graph.connect(numbers, |s| &s.out, double, |d| &d.input);
    graph.connect(double, |d| &d.out, end, |e| &e.input);
    let mut run = graph.start(&Options::default()).unwrap();
    run.serve(ControlSocket::bind(socket).unwrap()).unwrap();
    run
}

/// A client of the control socket.
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    pub fn new(socket: &Path) -> Self {
        Client(BufReader::new(UnixStream::connect(socket).unwrap()))
    }

    /// As far as it is taken: it may be closed already.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).is_ok()
    }

    /// The next line, empty when there is none.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(_) => line.trim_end().to_string(),
            // It was closed before all was read that we had sent.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => String::new(),
            Err(error) => panic!("{error}"),
        }
    }

    /// All lines until it is closed.
    pub fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty())).collect()
    }

    /// Asks in the form of the protocol: `"command":"status"`.
    pub fn ask(&mut self, fields: &str) -> String {
        assert!(self.send(format!("{{\"version\":1,{fields}}}\n").as_bytes()), "{fields}");
        self.line()
    }

    /// No more is said by us.
    pub fn shut(&mut self) {
        self.0.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Everything, without a limit.
    pub fn drain(mut self) -> usize {
        let mut bytes = Vec::new();
        let _ = self.0.read_to_end(&mut bytes);
        bytes.len()
    }
}

/// Polls a run's status until it is as expected. The watchdog of the test ends it otherwise.
pub fn until(run: &Run, what: impl Fn(&RunStatus) -> bool) -> RunStatus {
    let begin = Instant::now();
    loop {
        let status = run.status();
        if what(&status) {
            return status;
        }
        assert!(begin.elapsed() < Duration::from_secs(50), "{status:#?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// It goes on: everything moves.
pub fn goes_on(run: &Run) {
    let before = run.status().edges[1].sent;
    until(run, |status| status.edges[1].sent > before);
}
