//! Runs one chain as an ordinary graph.

use super::case::SaxpyCase;
use super::operators::{OutOfPlace, Own, SerialSink, SerialSource, affine};
use super::settings::{Mode, SaxpyForm, Whose};
use onbeat_operators::dsp::Saxpy;
use onbeat_operators::{NullSink, NullSource};
use onbeat_runtime::{Chunk, Graph, Idle, InPlace, Options, RunError, Scheduler, Stream};

/// Reason why a case has no figure: it is skipped, and a note says so.
pub(super) type SkippedCase = String;

/// Creates the chain: a source that claims full chunks and writes nothing, saxpy operators, and a sink that
/// discards them.
fn chain(case: &SaxpyCase) -> Result<Graph, onbeat_runtime::Error> {
    let affine = affine();
    let saxpy = Saxpy::new(affine.a(), affine.b())?;
    let mut graph = Graph::new("saxpy");
    let is_serial = case.mode == Mode::ReplicatedInOrder;
    match is_serial {
        true => _ = graph.add("source", SerialSource::default()),
        false => _ = graph.add("source", NullSource::<f32>::new(None)),
    }
    let mut last = "source".to_owned();
    for number in 1..=case.shape.kernels {
        let name = format!("saxpy{number}");
        match (case.shape.form, case.whose) {
            (SaxpyForm::OutOfPlace, _) => _ = graph.add(&*name, Stream::new(OutOfPlace::default())),
            (SaxpyForm::InPlace, Whose::Own) => _ = graph.add(&*name, Own::default()),
            (SaxpyForm::InPlace, Whose::BuiltIn) => _ = graph.add(&*name, InPlace::new(saxpy.clone())),
        }
        graph.connect_names(&*last, &*name);
        last = name;
    }
    match is_serial {
        true => _ = graph.add("sink", SerialSink::default()),
        false => _ = graph.add("sink", NullSink::<Chunk<f32>>::default()),
    }
    graph.connect_names(last, "sink");
    Ok(graph)
}

fn options(case: &SaxpyCase, on: &[usize], idle: Idle, seconds: f64) -> Options {
    let scheduler = match case.mode {
        Mode::Greedy => Scheduler::Greedy,
        Mode::Pinned => Scheduler::Pinned,
        Mode::Event => Scheduler::Event,
        Mode::Replicated | Mode::ReplicatedInOrder => Scheduler::Replicated,
    };
    let mut options = Options {
        scheduler,
        cores: on[..case.shape.cores].to_vec(),
        idle,
        quantum: case.shape.quantum,
        duration_ns: Some((seconds * 1e9) as u64),
        ..Options::default()
    };
    if let Some(buffers) = case.buffers {
        // The second core holds one chunk. A chunk that the first core holds has its place reserved on the
        // edge.
        options.capacity = buffers.saturating_sub(1).max(1);
    }
    options
}

/// Checks whether the chain can run.
pub(super) fn plan(case: &SaxpyCase, on: &[usize]) -> Result<(), SkippedCase> {
    let graph = chain(case).map_err(|error| error.to_string())?;
    graph.plan(&options(case, on, Idle::Spin, 1.0)).map_err(|error| error.to_string())?;
    Ok(())
}

/// How often a run in which nothing reached the sink is repeated, each time twice as long: a busy machine may
/// not have scheduled its workers.
const TRIES: u32 = 10;

/// Samples per second that reached the sink, from the record.
pub(super) fn run(case: &SaxpyCase, on: &[usize], idle: Idle, seconds: f64) -> Result<f64, SkippedCase> {
    for again in 0..TRIES {
        let graph = chain(case).map_err(|error| error.to_string())?;
        let options = options(case, on, idle, seconds * f64::from(1 << again));
        let record = graph.run(&options).map_err(|error: RunError| error.to_string())?;
        let chunks = record.edges.last().map_or(0, |edge| edge.received);
        if chunks > 0 && record.result.duration_ns > 0 {
            return Ok(chunks as f64 * case.shape.samples() as f64 * 1e9 / record.result.duration_ns as f64);
        }
    }
    Err("no chunk reached the sink: give more --seconds".to_owned())
}
