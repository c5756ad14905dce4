//! Shared parts of the operator tests: recordings to play, and ways to run a graph.
#![allow(dead_code, reason = "no test needs all of it")]

use num_complex::Complex;
use onbeat_runtime::testing::{Feed, Seen};
use onbeat_runtime::{ClockKind, FnSink, Graph, Handle, Options, Pace, RunError, Sample};
use onbeat_trace::Record;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The committed recording.
pub const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fm.sigmf-meta");

/// Runs without keeping time, for one quantum and capacity.
pub fn fast(quantum: usize, capacity: usize) -> Options {
    Options { pace: Some(Pace::Fast), quantum, capacity, ..Options::default() }
}

/// Runs in virtual time.
pub fn manual() -> Options {
    Options { clock: ClockKind::Manual, ..Options::default() }
}

/// Runs a graph that must end well and lose nothing.
pub fn run(graph: Graph, options: &Options) -> Record {
    let record = graph.run(options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(record.result.outcome.to_string(), "ended", "{}", record.result.reason);
    assert_eq!((record.result.exit_status, record.result.lost), (0, 0));
    for edge in &record.edges {
        assert_eq!(
            (edge.received, edge.dropped),
            (edge.sent - edge.unread, 0),
            "{} → {}",
            edge.from,
            edge.to
        );
    }
    record
}

/// Runs a graph that must fail. Returns its error.
pub fn failure(graph: Graph, options: &Options) -> String {
    match graph.run(options) {
        Err(RunError::Failed(record)) => {
            assert_eq!(record.result.exit_status, 1);
            record.result.reason
        }
        other => panic!("it did not fail: {other:?}"),
    }
}

/// Notes of a run.
pub fn notes(record: &Record) -> Vec<&str> {
    record.notes.iter().map(String::as_str).collect()
}

type NumberSink = FnSink<u64, Box<dyn FnMut(u64) + Send>>;

/// A sink that stores numbers.
pub fn keep_numbers(graph: &mut Graph, name: &str) -> (Handle<NumberSink>, Arc<Mutex<Vec<u64>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&kept);
    let take = move |n: u64| into.lock().unwrap().push(n);
    (graph.sink(name, Box::new(take) as Box<dyn FnMut(u64) + Send>), kept)
}

/// Output of an operator, to feed to another one unchanged.
pub fn again<T: Sample>(seen: &Seen, output: &str) -> Feed {
    let feed = Feed::samples(seen.samples::<T>(output)).rate(seen.rate_hz(output));
    seen.tags(output).into_iter().fold(feed, |feed, (sample, key, value)| feed.tag(sample, &key, value))
}

/// A recording of `samples` samples at 256 kHz, which can be changed before it is written.
pub struct Recording {
    pub meta: Value,
    pub data: Vec<u8>,
}

pub fn recording(samples: usize) -> Recording {
    let data: Vec<u8> = (0..2 * samples).map(|n| (n * 37 % 251) as u8).collect();
    let meta = json!({
        "global": { "core:version": "1.2.0", "core:datatype": "ci8", "core:sample_rate": 256e3 },
        "captures": [{ "core:sample_start": 0 }],
        "annotations": [],
    });
    Recording { meta, data }
}

impl Recording {
    /// Writes both files. Returns the path of the metadata.
    pub fn write(&self, folder: &Path) -> PathBuf {
        std::fs::write(folder.join("test.sigmf-data"), &self.data).unwrap();
        let path = folder.join("test.sigmf-meta");
        std::fs::write(&path, self.meta.to_string()).unwrap();
        path
    }

    /// Its samples, as `ci8`.
    pub fn samples(&self) -> Vec<Complex<f32>> {
        let float = |byte: u8| f32::from(byte as i8) / 128.0;
        self.data.chunks(2).map(|pair| Complex::new(float(pair[0]), float(pair[1]))).collect()
    }
}

/// Names in a folder, sorted.
pub fn files(folder: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// A separate file system that is soon full; unmounted on drop.
pub struct SmallDisk(pub tempfile::TempDir);

impl SmallDisk {
    /// Mounts one of this size; an error if that is not allowed.
    pub fn mount(kib: u32) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        match mounted {
            Ok(output) if output.status.success() => Ok(SmallDisk(folder)),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

/// Runs `test` in a thread and panics if it does not end.
pub fn watched<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = channel();
    let thread = std::thread::Builder::new().name("watched".into()).spawn(move || {
        let result = test();
        let _ = done.send(());
        result
    });
    let thread = thread.unwrap();
    if wait.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
        panic!("it hangs");
    }
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
