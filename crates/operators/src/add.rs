//! Sum of two streams.

use crate::lanes::Aligned;
use onbeat_runtime::{Chunk, Context, Error, Input, Kind, Operator, Output, Ports, Step, Tag};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds two streams sample by sample: output `k` is `a[k] + b[k]`, independent of chunk borders.
///
/// The inputs are called `a` and `b`. Both streams must have the same sample rate. Tags of both stay on their
/// samples; on the same sample, tags of `a` come first. The operator ends with the shorter stream, and a note
/// says that the rest of the other was not read.
pub struct Add {
    /// The summands `a` and `b`.
    pub inputs: [Input<Chunk<f32>>; 2],
    /// The sum.
    pub out: Output<Chunk<f32>>,
    streams: Aligned<f32>,
}

const NAMES: [&str; 2] = ["a", "b"];

impl Default for Add {
    fn default() -> Self {
        Add { inputs: Default::default(), out: Output::default(), streams: Aligned::named(&NAMES) }
    }
}

impl Add {
    /// Creates a sum of two streams.
    pub fn new() -> Self {
        Add::default()
    }

    /// Adds up to `most` samples and up to a chunk. Returns whether there was a chunk.
    fn add(&mut self, most: usize, cx: &mut Context) -> Result<bool, Error> {
        let Some(mut sum) = self.out.chunk(cx) else { return Ok(false) };
        let (count, streams) = (most.min(sum.capacity()), &mut self.streams);
        sum.truncate(count);
        let (a, b) = (streams.samples(0, count), streams.samples(1, count));
        let samples = sum.edit_unique().expect("a new chunk is not shared");
        samples.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = a + b);
        let tags = (0..2).flat_map(|lane| streams.tags(lane, count));
        let mut tags: Vec<Tag> = tags.map(|(offset, tag)| Tag { offset, ..tag.clone() }).collect();
        tags.sort_by_key(|tag| tag.offset);
        let info = sum.info_mut();
        (info.start, info.rate_hz, info.tags) = (streams.taken(), streams.rate_hz(), tags);
        cx.set_stamp(streams.stamp());
        streams.consume(count);
        self.out.push(cx, sum)?;
        Ok(true)
    }
}

impl Operator for Add {
    fn ports(&mut self, p: &mut Ports) {
        for (name, input) in NAMES.iter().zip(&mut self.inputs) {
            p.input(name, input);
        }
        p.output("out", &mut self.out).fresh();
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            let Some(most) = self.streams.take(&mut self.inputs, cx)? else {
                return Ok(self.streams.wait(&self.inputs, cx));
            };
            if self.out.room(cx) == 0 || !self.add(most, cx)? {
                return Ok(Step::Again);
            }
        }
    }
}

/// `add` has no parameters.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddParameters {}

pub(crate) fn kind() -> Kind {
    Kind::new("add", "y = a + b, sample by sample", "", |_: &AddParameters, _| Ok(Add::new()))
}
