//! What can be known of a pipeline without running it.

use super::Pipeline;
use crate::graph::Graph;
use crate::plan::frames::FrameShapes;

impl Pipeline {
    /// Asks all operators whether they [could start](crate::Operator::check), and whether they can work with
    /// the frames that reach them, where these are known. Returns the names of those that cannot, and why.
    pub fn check(&self) -> Vec<(String, crate::Error)> {
        let refused = FrameShapes::of(&self.graph).map_or(Vec::new(), |frames| frames.refused);
        let operators = &self.graph.operators;
        let failed = |node: &crate::graph::Node| Some((node.name.clone(), node.operator.check().err()?));
        let mut wrong: Vec<_> = operators.iter().filter_map(failed).collect();
        wrong.extend(refused.into_iter().map(|(place, error)| (operators[place].name.clone(), error)));
        wrong
    }

    /// Returns what operators find [odd](crate::Operator::odd) in what they were given, each with the name of
    /// the operator.
    pub fn odd(&self) -> Vec<String> {
        odd(&self.graph)
    }
}

/// Returns what operators find odd, each with the name of the operator.
pub(super) fn odd(graph: &Graph) -> Vec<String> {
    let of = |node: &crate::graph::Node| {
        let name = node.name.clone();
        node.operator.odd().into_iter().map(move |text| format!("{name}: {text}"))
    };
    graph.operators.iter().flat_map(of).collect()
}
