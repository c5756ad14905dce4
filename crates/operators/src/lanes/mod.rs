//! Several real streams at once, sample by sample.
//!
//! | type | does |
//! |---|---|
//! | [`Joined`] | several streams into one, as a [`Join`] says |
//! | [`Sum`], [`Interleave`] | the two ways to join |
//! | [`Deinterleave`] | one stream into several |

mod aligned;
mod join;
mod split;

pub(crate) use aligned::Aligned;

pub use join::{Interleave, Join, Joined, Sum};
pub use split::Deinterleave;

use crate::check;
use onbeat_runtime::{Chunk, Error, Folders, Input, Kind, Output, Ports, Registry, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most streams of one operator.
const MOST: u64 = 64;

/// Checks a number of streams.
fn check_count(name: &str, count: u64) -> Result<(), Error> {
    check::within(name, count as f64, 1.0, MOST as f64, "join or split in two stages")
}

/// Inputs of a sink that takes so many channels: none besides its usual one, where it is one.
pub(crate) fn channel_inputs<T: Sample>(channels: u64) -> Result<Vec<Input<Chunk<T>>>, Error> {
    check::within("channels", channels as f64, 1.0, MOST as f64, "write them into several files")?;
    Ok(if channels == 1 { Vec::new() } else { (0..channels).map(|_| Input::default()).collect() })
}

/// Outputs of a source that sends so many channels: none besides its usual one, where it is one.
pub(crate) fn channel_outputs<T: Sample>(channels: u64) -> Result<Vec<Output<Chunk<T>>>, Error> {
    let fix = "play one of them, with `channel`";
    check::within("channels", channels as f64, 1.0, MOST as f64, fix)?;
    Ok(if channels == 1 { Vec::new() } else { (0..channels).map(|_| Output::default()).collect() })
}

/// Shows `in`, or `in0`, `in1`, ... where there are several.
pub(crate) fn show_inputs<T: Sample>(p: &mut Ports, one: &mut Input<Chunk<T>>, all: &mut [Input<Chunk<T>>]) {
    if all.is_empty() {
        p.input("in", one);
    }
    for (lane, input) in all.iter_mut().enumerate() {
        p.input(&format!("in{lane}"), input);
    }
}

/// Shows `out`, or `out0`, `out1`, ... where there are several.
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

/// The ports that were shown.
pub(crate) fn one_or_all<'p, P>(one: &'p mut P, all: &'p mut [P]) -> &'p mut [P] {
    if all.is_empty() { std::slice::from_mut(one) } else { all }
}

/// Streams to join.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JoinParameters {
    /// How many streams, from 1 to 64: its ports are called `in0`, `in1`, ...
    inputs: usize,
}

/// Streams to make.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SplitParameters {
    /// How many streams, from 1 to 64: its ports are called `out0`, `out1`, ...
    outputs: usize,
}

fn join<J: Join>(p: &JoinParameters, _: &Folders) -> Result<Joined<J>, Error> {
    Joined::new(p.inputs)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::new("sum", "sum of several streams", "inputs = 3", join::<Sum>));
    let text = "several streams in turn, one sample of each";
    registry.add(Kind::new("interleave", text, "inputs = 2", join::<Interleave>));
    let text = "every n-th sample to each of n streams";
    let split = |p: &SplitParameters, _: &Folders| Deinterleave::new(p.outputs);
    registry.add(Kind::new("deinterleave", text, "outputs = 2", split));
}
