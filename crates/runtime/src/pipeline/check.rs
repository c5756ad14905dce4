//! What can be known of a pipeline without running it.

use super::Pipeline;
use crate::plan::frames::FrameShapes;
use std::collections::HashMap;

impl Pipeline {
    /// Asks all operators whether they [could start](crate::Operator::check), and whether they can work at
    /// the sample rate and with the frames that reach them, where these are known. Returns the names of those
    /// that cannot, and why.
    pub fn check(&mut self) -> Vec<(String, crate::Error)> {
        let refused = FrameShapes::of(&self.graph).map_or(Vec::new(), |frames| frames.refused);
        let operators = &mut self.graph.operators;
        let failed = |node: &crate::graph::Node| Some((node.name.clone(), node.operator.check().err()?));
        let mut wrong: Vec<_> = operators.iter().filter_map(failed).collect();
        wrong.extend(refused.into_iter().map(|(place, error)| (operators[place].name.clone(), error)));
        let places: HashMap<String, usize> =
            operators.iter().enumerate().map(|(place, node)| (node.name.clone(), place)).collect();
        let place_of = |port: &str| port.rsplit_once('.').and_then(|(name, _)| places.get(name)).copied();
        let edges: Vec<(usize, usize)> = (self.plan.edges.iter())
            .filter_map(|edge| Some((place_of(&edge.from)?, place_of(&edge.to)?)))
            .collect();
        let mut rates_hz: Vec<Option<f64>> =
            operators.iter().map(|node| node.operator.sample_rate()).collect();
        // In the order of the plan, producers come before consumers.
        for name in self.plan.operators.iter().map(|operator| &operator.name) {
            let Some(&place) = places.get(name) else { continue };
            let before = edges.iter().filter(|(_, to)| *to == place);
            let mut known =
                before.filter_map(|&(from, _)| Some((operators[from].name.as_str(), rates_hz[from]?)));
            let Some((first, rate_hz)) = known.next() else { continue };
            if let Some((other, other_hz)) = known.find(|(_, other_hz)| *other_hz != rate_hz)
                && operators[place].operator.needs_one_rate()
            {
                let error = format!(
                    "the samples of `{first}` have a rate of {rate_hz} Hz, and those of `{other}` of {other_hz} Hz: \
                     all of its inputs must have the same rate; resample one of them"
                );
                wrong.push((name.clone(), crate::Error::new(error)));
                continue;
            }
            match operators[place].operator.rate_behind(rate_hz) {
                Ok(behind_hz) => rates_hz[place] = behind_hz,
                Err(error) => wrong.push((name.clone(), error)),
            }
        }
        wrong
    }

    /// Returns what operators find [odd](crate::Operator::odd) in what they were given, each with the name of
    /// the operator.
    pub fn odd(&self) -> Vec<String> {
        let of = |node: &crate::graph::Node| {
            let name = node.name.clone();
            node.operator.odd().into_iter().map(move |text| format!("{name}: {text}"))
        };
        self.graph.operators.iter().flat_map(of).collect()
    }
}
