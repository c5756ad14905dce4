//! Merges several streams of numbers.

use onbeat_runtime::{Context, Error, Folders, Input, Kind, Message, Operator, Output, Ports, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Merges the messages of several edges into one order, the same in every run: by source time, sequence
/// number and edge.
pub struct NumberMerge<M: Message> {
    /// Input from any number of edges.
    pub input: Input<M>,
    /// The merged messages.
    pub out: Output<M>,
}

impl<M: Message> Default for NumberMerge<M> {
    fn default() -> Self {
        NumberMerge { input: Input::default(), out: Output::default() }
    }
}

impl<M: Message> Operator for NumberMerge<M> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).many(onbeat_runtime::Merge::Ordered);
        p.output("out", &mut self.out);
    }

    #[inline]
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(message) = self.input.pop(cx) {
            self.out.push(cx, message)?;
        }
        Ok(Step::Wait)
    }
}

/// `merge` has no parameters.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MergeParameters {}

pub(crate) fn kind() -> Kind {
    let make = |_: &MergeParameters, _: &Folders| Ok(NumberMerge::<u64>::default());
    Kind::new("merge", "merges several streams of numbers by source time", "", make)
}
