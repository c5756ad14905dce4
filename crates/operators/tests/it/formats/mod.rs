//! Files of samples, arrays and pictures: written data are read back, and invalid files are refused.
#![forbid(unsafe_code)]

mod annotations;
pub mod arrays;
mod bad_files;
mod channels;
mod odd_files;
mod pictures;
mod samples;
mod waterfall;

use crate::harness::run;
use onbeat_runtime::testing::{Feed, Seen, Trial};
use onbeat_runtime::{Graph, Operator, Sample};

type C32 = num_complex::Complex<f32>;

/// Plays a source to its end.
fn play(source: impl Operator, quantum: usize) -> Seen {
    Trial::new(source).quantum(quantum).capacity(2).run()
}

/// Sends samples to a sink, in chunks of these lengths.
fn write<T: Sample>(samples: Vec<T>, lengths: &[usize], rate_hz: f64, sink: impl Operator) -> Seen {
    Trial::new(sink).feed("in", Feed::samples(samples).cut(lengths).rate(rate_hz)).run()
}

/// Adds an operator like a pipeline file would.
fn add_kind(graph: &mut Graph, name: &str, kind: &str, parameters: &str) {
    let operator = onbeat_operators::registry().operator(kind, parameters);
    graph.add_boxed(name, kind, operator.unwrap_or_else(|error| panic!("{kind}: {error}")));
}
