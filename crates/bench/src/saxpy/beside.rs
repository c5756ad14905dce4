//! What the machine gave right before and right after something was measured: machines that others use, too, change from one second to
//! the next.

use super::bare;
use super::case::{Limit, Shape};
use crate::BenchError;
use std::collections::BTreeMap;

/// Witnesses are short: so much of what a case takes.
const WITNESS: f64 = 0.2;
/// The least time of what is measured without an engine: threads have to be under way.
const LEAST_S: f64 = 0.002;
/// What a machine can: what a witness gives in so many of all cases is no more than this. (One among hundreds says nothing: where others use the
/// machine, too, what they leave to a core is more for some moments, as well.)
const CAN: f64 = 0.9;
/// Where a witness gave less than so much of that, the machine was disturbed.
const CALM: f64 = 0.95;
/// The same where chunks went from core to core: how fast lines go varies by itself.
const CALM_LINES: f64 = 0.85;

/// One measurement, and what was beside it.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    /// Samples per second; not a number where a peer had none.
    pub rate: f64,
    /// What the kernel did, between before and after.
    pub kernel: f64,
    /// What its limit did, between before and after; a peer has none.
    pub limit: Option<f64>,
    /// What one core did with the same chain, between before and after, a mean over its cores; neither `greedy` nor a peer has one.
    pub one_core: Option<f64>,
    /// What each witness gave, the lesser of before and after.
    gave: Vec<(Limit, f64)>,
}

/// Measures limits and witnesses, and knows what each of these can give.
pub(super) struct Beside<'on> {
    on: &'on [usize],
    seconds: f64,
    /// What the last measurement's limit did right after it.
    limit: Option<(Limit, f64)>,
    /// What witnesses gave after the last measurement.
    seen: BTreeMap<Limit, f64>,
    /// All that each of them gave, from the least.
    gave: BTreeMap<Limit, Vec<f64>>,
}

/// Who tells what the machine gives: the kernel on one core. On more, the kernel on each, and chunks that go round.
fn witnesses(shape: Shape) -> Vec<Limit> {
    let one = Shape { kernels: 1, ..shape };
    let mut all = vec![Limit::Kernel(Shape { cores: 1, ..one })];
    if shape.cores > 1 {
        let split = Shape { kernels: shape.cores, ..shape };
        all.extend([Limit::Replicated(one), Limit::HandOver(split, shape.cores + 1)]);
    }
    all
}

impl<'on> Beside<'on> {
    /// Nothing measured yet.
    pub fn new(on: &'on [usize], seconds: f64) -> Self {
        Beside { on, seconds, limit: None, seen: BTreeMap::new(), gave: BTreeMap::new() }
    }

    /// Measures `limit`, then what `run` measures (a rate, and what one core did beside it), between witnesses.
    pub fn take(
        &mut self,
        shape: Shape,
        limit: Option<Limit>,
        run: impl FnOnce() -> Result<(f64, Option<f64>), BenchError>,
    ) -> Result<Taken, BenchError> {
        let all = witnesses(shape);
        let before = all.iter().map(|witness| self.ask(*witness)).collect::<Result<Vec<f64>, _>>()?;
        let last = self.limit.take();
        // Half the time before and half of it after: what comes and goes takes as much from the limit as from what is held against it.
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
        Ok(Taken {
            rate,
            kernel: (before[0] + after[0]) / 2.0,
            limit: limit_before.zip(limit_after).map(|(before, after)| (before + after) / 2.0),
            one_core,
            gave: all.into_iter().zip(gave).collect(),
        })
    }

    /// Whether the machine gave nearly as much as it can, by all of this run: 1 and more if so, less the more it was disturbed.
    pub fn calm(&self, taken: &Taken) -> f64 {
        let of_what_it_can = |(witness, gave): &(Limit, f64)| {
            gave / self.can(witness) / if matches!(witness, Limit::HandOver(..)) { CALM_LINES } else { CALM }
        };
        taken.gave.iter().map(of_what_it_can).fold(f64::INFINITY, f64::min)
    }

    fn can(&self, witness: &Limit) -> f64 {
        let gave = &self.gave[witness];
        gave[((gave.len() - 1) as f64 * CAN).round() as usize]
    }

    /// What a witness gives now, or gave right after the last measurement.
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
    use super::super::settings::Form;
    use super::*;

    #[test]
    fn the_worst_witness_says_how_calm_it_was() {
        let shape = Shape { cores: 2, kernels: 3, quantum: 4096, form: Form::InPlace };
        let all = witnesses(shape);
        assert_eq!(all.len(), 3);
        assert_eq!(witnesses(Shape { cores: 1, ..shape }), &all[..1]);
        let mut beside = Beside::new(&[0, 1], 0.01);
        // What it gave once is not what it can.
        let gave: Vec<f64> = (0..20).map(|_| 100.0).chain([200.0]).collect();
        beside.gave = all.iter().map(|witness| (*witness, gave.clone())).collect();
        let calm = |gave: [f64; 3]| {
            let gave = all.iter().copied().zip(gave).collect();
            beside.calm(&Taken { rate: 1.0, kernel: 1.0, limit: None, one_core: None, gave })
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
        let shape = Shape { cores: 1, kernels: 1, quantum: 256, form: Form::InPlace };
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
