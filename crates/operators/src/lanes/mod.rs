//! Operators on several real streams, sample by sample.
//!
//! | type | description |
//! |---|---|
//! | [`Sum`], [`Interleave`] | join several streams into one |
//! | [`Deinterleave`] | splits one stream into several |

mod join;
mod split;

pub(crate) use join::numbered;
pub use join::{Interleave, Sum};
pub use split::Deinterleave;

use crate::check;
use num_complex::Complex;
use onbeat_runtime::{Chunk, Error, Folders, Input, Kind, Output, Ports, Registry, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most streams of one operator.
const MOST: u64 = 64;

/// Checks a number of streams.
pub(crate) fn check_count(name: &str, count: u64) -> Result<(), Error> {
    check::within(name, count as f64, 1.0, MOST as f64, "join or split in two stages")
}

/// Inputs of a sink for this many channels; empty if one channel uses the regular input.
pub(crate) fn channel_inputs<T: Sample>(channels: u64) -> Result<Vec<Input<Chunk<T>>>, Error> {
    check::within("channels", channels as f64, 1.0, MOST as f64, "write them to several files")?;
    Ok(if channels == 1 { Vec::new() } else { (0..channels).map(|_| Input::default()).collect() })
}

/// Outputs of a source with this many channels; empty if one channel uses the regular output.
pub(crate) fn channel_outputs<T: Sample>(channels: u64) -> Result<Vec<Output<Chunk<T>>>, Error> {
    let fix = "play one of them, with `channel`";
    check::within("channels", channels as f64, 1.0, MOST as f64, fix)?;
    Ok(if channels == 1 { Vec::new() } else { (0..channels).map(|_| Output::default()).collect() })
}

/// Declares `in`, or with several channels `in0`, `in1`, ...
pub(crate) fn show_inputs<T: Sample>(p: &mut Ports, one: &mut Input<Chunk<T>>, all: &mut [Input<Chunk<T>>]) {
    if all.is_empty() {
        p.input("in", one);
    }
    for (lane, input) in all.iter_mut().enumerate() {
        p.input(&format!("in{lane}"), input);
    }
}

/// Declares `out`, or with several channels `out0`, `out1`, ...
pub(crate) fn show_outputs<T: Sample>(
    p: &mut Ports,
    one: &mut Output<Chunk<T>>,
    all: &mut [Output<Chunk<T>>],
) {
    if all.is_empty() {
        p.output("out", one);
    }
    for (lane, output) in all.iter_mut().enumerate() {
        p.output(&format!("out{lane}"), output);
    }
}

/// The ports that were declared.
pub(crate) fn one_or_all<'p, P>(one: &'p mut P, all: &'p mut [P]) -> &'p mut [P] {
    if all.is_empty() { std::slice::from_mut(one) } else { all }
}

/// The streams to split into.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SplitParameters {
    /// Number of streams, from 1 to 64; the ports are called `out0`, `out1`, ...
    outputs: usize,
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::combine::<Sum>());
    registry.add(Kind::combine::<Sum<Complex<f32>>>().named("sum.complex"));
    registry.add(Kind::combine::<Interleave>());
    let text = "sends every n-th sample to each of n streams";
    let split = |p: &SplitParameters, _: &Folders| Deinterleave::new(p.outputs);
    registry.add(Kind::new("deinterleave", text, "outputs = 2", split));
}
