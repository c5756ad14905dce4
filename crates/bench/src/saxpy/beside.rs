//! Speed of the machine right before and right after each measurement. A machine with other users changes
//! from one second to the next.
//!
//! Each measurement is enclosed by *witnesses*: short measurements without an engine, whose rates show
//! whether the machine was disturbed.

use super::bare;
use super::case::{ChainShape, Limit};
use crate::BenchError;
use std::collections::BTreeMap;

/// Duration of a witness, relative to that of a case.
const WITNESS: f64 = 0.2;
/// Shortest measurement without an engine: the threads need time to start.
const LEAST_S: f64 = 0.002;
/// This quantile of a witness's rates is taken as the machine's undisturbed speed. (The maximum is not
/// suitable: on a machine with other users, a core is faster for some moments.)
const CAN: f64 = 0.9;
/// The machine was disturbed if a witness was slower than this share of its undisturbed rate.
const CALM: f64 = 0.95;
/// The same share for witnesses that pass chunks between cores, because the speed of cache lines varies more.
const CALM_LINES: f64 = 0.85;

/// One measurement with the results of its limit and witnesses.
#[derive(Debug, Clone)]
pub(super) struct Measurement {
    /// Samples per second; NaN if a peer gave no figure.
    pub rate: f64,
    /// Rate of the kernel, mean of before and after.
    pub kernel: f64,
    /// Rate of the limit, mean of before and after; a peer has none.
    pub limit: Option<f64>,
    /// Rate of the same chain on one core, mean of before and after and over its cores; none for `greedy` and
    /// peers.
    pub one_core: Option<f64>,
    /// Rate of each witness, the lower of before and after.
    gave: Vec<(Limit, f64)>,
}

/// Measures limits and witnesses, and keeps the witnesses' rates.
pub(super) struct Beside<'on> {
    on: &'on [usize],
    seconds: f64,
    /// Rate of the last measurement's limit right after it.
    limit: Option<(Limit, f64)>,
    /// Rates of the witnesses after the last measurement.
    seen: BTreeMap<Limit, f64>,
    /// All rates of each witness, sorted.
    gave: BTreeMap<Limit, Vec<f64>>,
}

/// Witnesses for a shape: the kernel on one core. With several cores also the kernel on each, and chunks
/// passed round.
fn witnesses(shape: ChainShape) -> Vec<Limit> {
    let one = ChainShape { kernels: 1, ..shape };
    let mut all = vec![Limit::Kernel(ChainShape { cores: 1, ..one })];
    if shape.cores > 1 {
        let split = ChainShape { kernels: shape.cores, ..shape };
        all.extend([Limit::Replicated(one), Limit::HandOver(split, shape.cores + 1)]);
    }
    all
}

impl<'on> Beside<'on> {
    /// Creates the state without measurements.
    pub fn new(on: &'on [usize], seconds: f64) -> Self {
        Beside { on, seconds, limit: None, seen: BTreeMap::new(), gave: BTreeMap::new() }
    }

    /// Measures `limit` and `run` between witnesses. `run` returns a rate, and the rate of one core next to
    /// it.
    pub fn take(
        &mut self,
        shape: ChainShape,
        limit: Option<Limit>,
        run: impl FnOnce() -> Result<(f64, Option<f64>), BenchError>,
    ) -> Result<Measurement, BenchError> {
        let all = witnesses(shape);
        let before = all.iter().map(|witness| self.ask(*witness)).collect::<Result<Vec<f64>, _>>()?;
        let last = self.limit.take();
        // The limit is measured half before and half after, so that a disturbance affects it as much as the
        // measurement compared with it.
        let half = |limit| bare::measure(&limit, self.on, (self.seconds / 2.0).max(LEAST_S));
        let limit_before = match (limit, last) {
            (Some(limit), Some((of, rate))) if of == limit => Some(rate),
            (limit, _) => limit.map(half).transpose()?,
        };
        let (rate, one_core) = run()?;
        let limit_after = limit.map(half).transpose()?;
        self.limit = limit.zip(limit_after);
        self.seen.clear();
        let after = all.iter().map(|witness| self.ask(*witness)).collect::<Result<Vec<f64>, _>>()?;
        let gave = before.iter().zip(&after).map(|(before, after)| before.min(*after));
        Ok(Measurement {
            rate,
            kernel: (before[0] + after[0]) / 2.0,
            limit: limit_before.zip(limit_after).map(|(before, after)| (before + after) / 2.0),
            one_core,
            gave: all.into_iter().zip(gave).collect(),
        })
    }

    /// Degree of calm during a measurement, from its witnesses: 1 and more if the machine reached nearly its
    /// undisturbed speed, less if it was disturbed.
    pub fn calm(&self, taken: &Measurement) -> f64 {
        let of_what_it_can = |(witness, gave): &(Limit, f64)| {
            gave / self.can(witness) / if matches!(witness, Limit::HandOver(..)) { CALM_LINES } else { CALM }
        };
        taken.gave.iter().map(of_what_it_can).fold(f64::INFINITY, f64::min)
    }

    fn can(&self, witness: &Limit) -> f64 {
        let gave = &self.gave[witness];
        gave[((gave.len() - 1) as f64 * CAN).round() as usize]
    }

    /// Returns the rate of a witness, measured now or right after the last measurement.
    fn ask(&mut self, witness: Limit) -> Result<f64, BenchError> {
        if let Some(rate) = self.seen.get(&witness) {
            return Ok(*rate);
        }
        let rate = bare::measure(&witness, self.on, (self.seconds * WITNESS).max(LEAST_S))?;
        self.seen.insert(witness, rate);
        let gave = self.gave.entry(witness).or_default();
        gave.insert(gave.partition_point(|less| *less < rate), rate);
        Ok(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::SaxpyForm;
    use super::*;

    #[test]
    fn the_worst_witness_says_how_calm_it_was() {
        let shape = ChainShape { cores: 2, kernels: 3, quantum: 4096, form: SaxpyForm::InPlace };
        let all = witnesses(shape);
        assert_eq!(all.len(), 3);
        assert_eq!(witnesses(ChainShape { cores: 1, ..shape }), &all[..1]);
        let mut beside = Beside::new(&[0, 1], 0.01);
        // A single high rate is not the undisturbed speed.
        let gave: Vec<f64> = (0..20).map(|_| 100.0).chain([200.0]).collect();
        beside.gave = all.iter().map(|witness| (*witness, gave.clone())).collect();
        let calm = |gave: [f64; 3]| {
            let gave = all.iter().copied().zip(gave).collect();
            beside.calm(&Measurement { rate: 1.0, kernel: 1.0, limit: None, one_core: None, gave })
        };
        for (gave, is_calm) in [
            ([100.0, 100.0, 100.0], true),
            ([96.0, 96.0, 86.0], true),
            ([94.0, 100.0, 100.0], false),
            ([100.0, 94.0, 100.0], false),
            ([100.0, 100.0, 84.0], false),
        ] {
            assert_eq!(calm(gave) >= 1.0, is_calm, "{gave:?}");
        }
        assert!(calm([100.0, 60.0, 100.0]) < calm([100.0, 90.0, 80.0]));
    }

    #[test]
    fn what_came_after_one_is_what_was_before_the_next() {
        let shape = ChainShape { cores: 1, kernels: 1, quantum: 256, form: SaxpyForm::InPlace };
        let on: Vec<usize> = onbeat_os::CoreSet::allowed().expect("the kernel says").iter().collect();
        let mut beside = Beside::new(&on, 0.002);
        let first = beside.take(shape, None, || Ok((1.0, None))).expect("a core");
        let after = beside.seen.clone();
        let second = beside.take(shape, Some(witnesses(shape)[0]), || Ok((2.0, None))).expect("a core");
        assert!(first.limit.is_none() && second.limit > Some(0.0) && second.rate == 2.0);
        assert!(second.gave.iter().all(|(witness, gave)| *gave <= after[witness]), "{after:?}");
        assert!(beside.calm(&second) > 0.0);
    }
}
