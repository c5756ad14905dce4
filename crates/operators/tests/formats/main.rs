//! Files of samples, arrays and pictures: what is written is read back, and what is wrong is refused.
#![forbid(unsafe_code)]

#[path = "../harness/mod.rs"]
mod harness;

mod annotations;
mod arrays;
mod bad_files;
mod pictures;
mod samples;

use harness::{Stream, fast, keep, run};
use onbeat_runtime::{Chunk, Context, Error, Graph, Input, Operator, Output, Ports, Sample, Step};
use onbeat_trace::Record;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// An operator with the port `out` or `in`, so that tests can treat all alike.
trait Source<T: Sample>: Operator {
    fn out(&self) -> &Output<Chunk<T>>;
}

trait Sink<T: Sample>: Operator {
    fn input(&self) -> &Input<Chunk<T>>;
}

macro_rules! ends {
    ($($trait:ident, $port:ident, $end:ident, $($type:ty)|*, $sample:ty;)*) => { $($(impl $trait<$sample> for $type {
        fn $port(&self) -> &$end<Chunk<$sample>> { &self.$port }
    })*)* };
}
type C32 = num_complex::Complex<f32>;
use onbeat_operators::{
    IqSink, IqSource, NpySink, NpySource, PngSink, SigmfSink, SigmfSource, WavSink, WavSource,
};
ends! {
    Source, out, Output, IqSource<f32> | SigmfSource<f32> | NpySource<f32> | WavSource | harness::Feed<f32> | Frames, f32;
    Source, out, Output, IqSource<C32> | SigmfSource<C32> | NpySource<C32> | harness::Feed<C32>, C32;
    Sink, input, Input, IqSink<f32> | SigmfSink<f32> | NpySink<f32> | WavSink | PngSink, f32;
    Sink, input, Input, IqSink<C32> | SigmfSink<C32> | NpySink<C32>, C32;
}

/// Source to sink, as they are.
fn joined<T: Sample>(source: impl Source<T>, sink: impl Sink<T>) -> Graph {
    let mut graph = Graph::new("copy");
    let source = graph.add("source", source);
    let sink = graph.add("sink", sink);
    graph.connect(source, |s| s.out(), sink, |s| s.input());
    graph
}

/// Runs source to sink, which must end well.
fn copy<T: Sample>(source: impl Source<T>, sink: impl Sink<T>, quantum: usize) -> Record {
    run(joined(source, sink), &fast(quantum, 2))
}

/// Plays a source to its end, and gives what came and what was noted.
fn play<T: Sample>(source: impl Source<T>, quantum: usize) -> (Arc<Mutex<Stream<T>>>, Record) {
    let mut graph = Graph::new("play");
    let source = graph.add("source", source);
    let (end, kept) = keep::<T>(&mut graph, "end");
    graph.connect(source, |s| s.out(), end, |e| &e.input);
    let record = run(graph, &fast(quantum, 2));
    (kept, record)
}

/// Sends chunks with shapes, each as it is.
#[derive(Default)]
struct Frames {
    out: Output<Chunk<f32>>,
    frames: std::collections::VecDeque<([u32; 3], Vec<f32>)>,
    sent: u64,
}

fn frames(frames: impl IntoIterator<Item = ([u32; 3], Vec<f32>)>) -> Frames {
    Frames { frames: frames.into_iter().collect(), ..Frames::default() }
}

impl Operator for Frames {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some((shape, samples)) = self.frames.front() else { return Ok(Step::Done) };
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        chunk.truncate(samples.len());
        chunk.edit_unique().unwrap().copy_from_slice(samples);
        (chunk.info_mut().shape, chunk.info_mut().start) = (*shape, self.sent);
        self.sent += samples.len() as u64;
        self.frames.pop_front();
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
}

/// Adds an operator as a pipeline file would.
fn add_kind(graph: &mut Graph, name: &str, kind: &str, parameters: &str) {
    let operator = onbeat_operators::registry().operator(kind, parameters);
    graph.add_boxed(name, kind, operator.unwrap_or_else(|error| panic!("{kind}: {error}")));
}

/// Names in a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}
