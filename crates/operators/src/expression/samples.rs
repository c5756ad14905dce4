//! Formulas over samples.

use super::program::{BLOCK, FormulaProgram, Lane};
use super::{INPUTS, check_inputs, compiled};
use crate::check;
use onbeat_runtime::{Combine, Error, Operator, Slices, operator};

/// Variables that are not inputs.
const MORE: [&str; 3] = ["t", "n", "rate"];
/// Of these, the sample rate.
const RATE: usize = 2;

/// A formula over samples: output `k` is its value for sample `k` of each stream.
///
#[doc = include_str!("../about/expression.md")]
#[derive(Debug, Clone, Operator)]
#[operator(name = "expression", summary = "formula over samples, such as 2 * a + b", prepare = Self::prepare)]
pub struct SampleExpression {
    /// Formula over the samples `a`, `b`, ... of the inputs at the same position, the time `t` in seconds,
    /// the number `n` of the sample from 0, and the sample rate `rate` in hertz.
    #[parameter(settable, example = "2 * a + 0.1 * sin(2 * pi * 50 * t)")]
    formula: String,
    /// Number of inputs, from 1 to 8; the ports are called `a`, `b`, ... Without it, they go up to the last
    /// one in the formula.
    #[parameter]
    inputs: Option<usize>,
    /// Number of inputs; 0 until it is known.
    streams: usize,
    program: FormulaProgram,
    variables: Vec<Lane>,
    /// Number of samples so far.
    taken: u64,
    rate_hz: Option<f64>,
}

impl SampleExpression {
    fn prepare(&mut self) -> Result<(), Error> {
        let (program, streams) = compiled(&self.formula, self.inputs, &MORE)?;
        check_inputs(self.streams, streams)?;
        if self.streams == 0 {
            self.streams = streams;
            self.variables = vec![[0.0; BLOCK]; MORE.len() + INPUTS.len()];
        }
        self.program = program;
        self.rate_hz.map_or(Ok(()), |rate_hz| self.check_rate(rate_hz))
    }

    fn check_rate(&self, rate_hz: f64) -> Result<(), Error> {
        if self.program.has(0) || self.program.has(RATE) { check::rate(rate_hz) } else { Ok(()) }
    }
}

#[operator]
impl Combine for SampleExpression {
    type In = [f32];
    type Out = f32;

    fn inputs(&self) -> Vec<String> {
        INPUTS[..self.streams].iter().map(|name| (*name).to_string()).collect()
    }

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        self.check_rate(rate_hz)?;
        self.rate_hz = Some(rate_hz);
        self.variables[RATE].fill(rate_hz);
        Ok(())
    }

    fn combine(&mut self, inputs: Slices<'_, f32>, out: &mut [f32]) {
        let rate_hz = self.rate_hz.unwrap_or(0.0);
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let [times, numbers, _, streams @ ..] = &mut self.variables[..] else { return };
            for (at, (time, number)) in times.iter_mut().zip(numbers).take(out.len()).enumerate() {
                *number = (self.taken + at as u64) as f64;
                *time = *number / rate_hz;
            }
            for (lane, samples) in streams.iter_mut().zip(inputs.each()) {
                let samples = &samples[block * BLOCK..][..out.len()];
                lane.iter_mut().zip(samples).for_each(|(x, sample)| *x = f64::from(*sample));
            }
            let results = self.program.evaluate(&self.variables, out.len());
            out.iter_mut().zip(results).for_each(|(y, x)| *y = *x as f32);
            self.taken += out.len() as u64;
        }
    }
}
