//! Several real streams at once, sample by sample.
//!
//! | type | does |
//! |---|---|
//! | [`Joined`] | several streams into one, as a [`Join`] says |
//! | [`Sum`], [`Interleave`] | the two ways to join |
//! | [`Deinterleave`] | one stream into several |

mod join;
mod split;

pub use join::{Interleave, Join, Joined, Sum};
pub use split::Deinterleave;

use crate::check;
use onbeat_runtime::{Error, Folders, Kind, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Checks a number of streams.
fn check_count(name: &str, count: usize) -> Result<(), Error> {
    check::within(name, count as f64, 1.0, 64.0, "join or split in two stages")
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
