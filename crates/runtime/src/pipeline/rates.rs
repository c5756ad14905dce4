//! Sample rates that follow from the parameters alone, before any run, and what needs them.

use super::build::Places;
use super::error::Fault;
use crate::base::wording::quoted;
use crate::graph::Graph;
use crate::operator::link::Initial;
use crate::operator::message::Value;
use crate::plan::{Wire, wires};
use crate::{Error, Seconds};
use std::ops::Range;
use toml::Spanned;

/// The rates behind the operators, by their places in the graph.
pub(super) struct Rates {
    /// The edges by numbers, in the order of the graph's; none if the graph has mistakes.
    wires: Vec<Wire>,
    known_hz: Vec<Option<f64>>,
    /// The first operator that cannot work at the rates that reach it, and why.
    wrong: Option<(usize, Error)>,
}

impl Rates {
    /// Follows the rates from the sources on. If the graph has mistakes, none is known.
    pub fn of(graph: &mut Graph) -> Self {
        let wires = wires(graph).unwrap_or_default();
        let operators = &graph.operators;
        let known_hz = operators.iter().map(|node| node.operator.sample_rate()).collect();
        let (mut before, mut after) = (vec![Vec::new(); operators.len()], vec![Vec::new(); operators.len()]);
        for Wire { from, to, .. } in wires.iter().filter(|wire| !wire.feedback) {
            before[*to].push(*from);
            after[*from].push(*to);
        }
        let mut missing: Vec<usize> = before.iter().map(Vec::len).collect();
        let mut rates = Rates { wires, known_hz, wrong: None };
        let mut next: Vec<usize> = (0..missing.len()).filter(|&place| missing[place] == 0).collect();
        while let Some(place) = next.pop() {
            rates.pass(graph, place, &before[place]);
            for &to in &after[place] {
                missing[to] -= 1;
                if missing[to] == 0 {
                    next.push(to);
                }
            }
        }
        rates
    }

    /// Finds the rate behind one operator.
    fn pass(&mut self, graph: &mut Graph, place: usize, before: &[usize]) {
        let known = |from: &usize| Some((*from, self.known_hz[*from]?));
        let Some((first, rate_hz)) = before.iter().find_map(known) else { return };
        let other = before.iter().filter_map(known).find(|(_, other_hz)| *other_hz != rate_hz);
        let result = match other {
            Some((other, other_hz)) if graph.operators[place].operator.needs_one_rate() => {
                let name = |place: usize| &graph.operators[place].name;
                Err(Error::new(format!(
                    "the samples of `{}` have a rate of {rate_hz} Hz, and those of `{}` of {other_hz} Hz: \
                     all of its inputs must have the same rate; resample one of them",
                    name(first),
                    name(other)
                )))
            }
            _ => graph.operators[place].operator.rate_behind(rate_hz),
        };
        match result {
            Ok(behind_hz) => self.known_hz[place] = behind_hz,
            Err(error) => self.wrong = self.wrong.take().or(Some((place, error))),
        }
    }

    /// Refuses operators that cannot work at their rates. Something odd in the graph may be the reason.
    pub fn check(&self, graph: &Graph, places: &Places) -> Result<(), Fault> {
        let Some((place, error)) = &self.wrong else { return Ok(()) };
        let name = &graph.operators[*place].name;
        let message = format!("operator {}: {error}", quoted(name));
        let odd = super::check::odd(graph);
        let help = (!odd.is_empty()).then(|| odd.join("\n"));
        let span = places.operators.get(name).map(|place| place.of(&error.to_string()));
        Err(Fault { message, span, help })
    }

    /// Replaces times as `initial` of edges with samples by numbers of samples.
    pub fn count_initial(&self, graph: &mut Graph, places: &Places) -> Result<(), Fault> {
        for ((wire, edge), entry) in self.wires.iter().zip(&mut graph.edges).zip(&places.edges) {
            let node = &graph.operators[wire.from];
            let (Some(_), Some(written)) = (node.ports.outputs[wire.out].sample_bytes, &entry.initial) else {
                continue;
            };
            let Value::Text(_) = written.get_ref() else { continue };
            let samples = samples(written, &node.name, self.known_hz[wire.from])?;
            edge.initial = vec![Initial::Value(Value::Int(samples))];
        }
        Ok(())
    }
}

/// Returns how many samples there are in the time `written`, rounded to a whole number.
fn samples(written: &Spanned<Value>, from: &str, rate_hz: Option<f64>) -> Result<i64, Fault> {
    let at: Range<usize> = written.span();
    let Seconds(time_s) = written.get_ref().read("initial").map_err(|error| {
        Fault::at(at.clone(), error.to_string())
            .help("for samples it is a number of samples of 0, or a time such as \"50 ms\"")
    })?;
    let rate_hz = rate_hz.ok_or_else(|| {
        let message = format!(
            "`initial` is a time, and the sample rate behind {} is not known before the run",
            quoted(from)
        );
        Fault::at(at.clone(), message).help("write the number of samples")
    })?;
    let samples = (time_s * rate_hz).round();
    if !(1.0..=u32::MAX.into()).contains(&samples) {
        let message = format!("`initial` is {time_s} s: {samples} samples at {rate_hz} Hz");
        return Err(Fault::at(at, message).help("it must be from one sample to 2^32 - 1"));
    }
    Ok(samples as i64)
}
