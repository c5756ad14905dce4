//! What the tests of operators in a graph share: recordings to play, sources to feed, sinks that keep what came.
#![allow(dead_code, reason = "no test needs all of it")]

use num_complex::Complex;
use onbeat_runtime::{
    Chunk, ClockKind, Context, Error, FnSink, Graph, Handle, Operator, Options, Output, Pace, Ports,
    RunError, Sample, Step, Tag,
};
use onbeat_trace::Record;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The committed recording.
pub const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fm.sigmf-meta");

/// Runs fast, by a quantum and a capacity.
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

/// Runs a graph that must fail, and gives what it says.
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

/// What came to a sink: samples, tags by their place in the stream, and the lengths of the chunks.
pub struct Stream<T> {
    pub samples: Vec<T>,
    pub tags: Vec<(u64, String, String)>,
    pub chunks: Vec<usize>,
    pub rate_hz: f64,
}

type ChunkSink<T> = FnSink<Chunk<T>, Box<dyn FnMut(Chunk<T>) + Send>>;

/// A sink that keeps chunks, after checking that they follow one another.
pub fn keep<T: Sample>(graph: &mut Graph, name: &str) -> (Handle<ChunkSink<T>>, Arc<Mutex<Stream<T>>>) {
    let stream = Stream { samples: Vec::new(), tags: Vec::new(), chunks: Vec::new(), rate_hz: 0.0 };
    let kept = Arc::new(Mutex::new(stream));
    let into = Arc::clone(&kept);
    let take = move |chunk: Chunk<T>| {
        let mut kept = into.lock().unwrap();
        assert_eq!(chunk.info().start, kept.samples.len() as u64);
        let start = chunk.info().start;
        kept.tags.extend(
            chunk
                .tags()
                .iter()
                .map(|tag| (start + tag.offset as u64, tag.key.to_string(), tag.value.to_string())),
        );
        kept.samples.extend_from_slice(&chunk);
        kept.chunks.push(chunk.len());
        kept.rate_hz = chunk.rate_hz();
    };
    (graph.sink(name, Box::new(take) as Box<dyn FnMut(Chunk<T>) + Send>), kept)
}

type NumberSink = FnSink<u64, Box<dyn FnMut(u64) + Send>>;

/// A sink that keeps numbers.
pub fn keep_numbers(graph: &mut Graph, name: &str) -> (Handle<NumberSink>, Arc<Mutex<Vec<u64>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&kept);
    let take = move |n: u64| into.lock().unwrap().push(n);
    (graph.sink(name, Box::new(take) as Box<dyn FnMut(u64) + Send>), kept)
}

/// Sends samples in chunks of given lengths, the last one for ever.
pub struct Feed<T: Sample> {
    pub out: Output<Chunk<T>>,
    pub samples: Vec<T>,
    pub lengths: Vec<usize>,
    pub rate_hz: f64,
    pub tags: Vec<(usize, &'static str)>,
    pub at: usize,
    pub chunk: usize,
}

pub fn feed<T: Sample>(samples: Vec<T>, lengths: &[usize], rate_hz: f64) -> Feed<T> {
    let lengths = lengths.to_vec();
    Feed { out: Output::default(), samples, lengths, rate_hz, tags: Vec::new(), at: 0, chunk: 0 }
}

impl<T: Sample> Operator for Feed<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.at == self.samples.len() {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let length = self.lengths[self.chunk.min(self.lengths.len() - 1)];
        let end = self.samples.len().min(self.at + length.min(chunk.capacity()));
        chunk.truncate(end - self.at);
        chunk.edit_unique().unwrap().copy_from_slice(&self.samples[self.at..end]);
        let info = chunk.info_mut();
        (info.start, info.rate_hz) = (self.at as u64, self.rate_hz);
        for &(place, key) in self.tags.iter().filter(|(place, _)| (self.at..end).contains(place)) {
            info.tags.push(Tag { offset: place - self.at, key: key.into(), value: 1i64.into() });
        }
        if self.rate_hz > 0.0 {
            cx.set_time((self.at as f64 * 1e9 / self.rate_hz) as u64, None);
        }
        self.out.push(cx, chunk)?;
        (self.at, self.chunk) = (end, self.chunk + 1);
        Ok(Step::Again)
    }
}

/// A recording of `samples` samples at 256 kHz, to be changed before it is written.
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
    /// Writes both files; gives the path of the metadata.
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

/// Runs `test` in a thread and panics when it does not end.
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
