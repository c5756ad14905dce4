//! Formulas over values.

use super::program::{BLOCK, FormulaProgram, Lane};
use super::{INPUTS, check_inputs, compiled};
use onbeat_runtime::{Context, Ending, Error, Input, Operator, Output, Ports, Stamp, Step, operator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which values of the other inputs belong to one of `a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OtherValues {
    /// The last ones whose source times are not later.
    #[default]
    Held,
    /// The last ones that have come.
    Latest,
}

/// Variables that are not inputs.
const MORE: [&str; 2] = ["t", "n"];

/// A formula over values: each value of `a` gives one output.
///
/// With several inputs, `others` says which values of `b`, `c`, ... belong to a value of `a`. A value of `a`
/// that comes before the first one of another input is left out; a note says how many there were. The output
/// has the source time of `a`, and ends with `a`.
///
/// With `others = "held"`, the values of each input must come in the order of their source times. The
/// operator waits for the next value of every other input, or its end, to know which one is the last that is
/// not later than that of `a`. With `others = "latest"` it does not wait, and two runs can differ.
///
#[doc = include_str!("../about/expression.md")]
#[derive(Operator)]
#[operator(
    name = "expression.value",
    summary = "formula over values, such as 2 * a + b",
    about = include_str!("../about/expression.md"),
    prepare = Self::prepare
)]
pub struct ValueExpression {
    /// Formula over the values `a`, `b`, ... of the inputs, the source time `t` of `a` in seconds, and the
    /// number `n` of the value of `a` from 0.
    #[parameter(settable, example = "20 * log10(a)")]
    formula: String,
    /// Number of inputs, from 1 to 8; the ports are called `a`, `b`, ... Without it, they go up to the last
    /// one in the formula.
    #[parameter]
    inputs: Option<usize>,
    /// Which values of `b`, `c`, ... belong to a value of `a`. `held`: the last ones whose source times are
    /// not later; it waits for the next ones to know them. `latest`: the last ones that have come, without
    /// waiting.
    #[parameter(default)]
    others: OtherValues,
    /// The inputs.
    pub streams: Vec<Input<f64>>,
    /// One value for each of `a`.
    pub out: Output<f64>,
    next: Vec<Option<(f64, Stamp)>>,
    /// The last values of all inputs.
    last: Vec<Option<f64>>,
    program: FormulaProgram,
    variables: Vec<Lane>,
    taken: u64,
    left_out: u64,
}

impl ValueExpression {
    fn prepare(&mut self) -> Result<(), Error> {
        let (program, streams) = compiled(&self.formula, self.inputs, &MORE)?;
        check_inputs(self.streams.len(), streams)?;
        if self.streams.is_empty() {
            self.streams.resize_with(streams, Input::default);
            (self.next, self.last) = (vec![None; streams], vec![None; streams]);
            self.variables = vec![[0.0; BLOCK]; MORE.len() + INPUTS.len()];
        }
        self.program = program;
        Ok(())
    }

    /// Brings the other inputs up to the time of the value of `a` in hand. Returns whether they are.
    fn bring_up(&mut self, time_ns: u64, cx: &mut Context) -> bool {
        let mut is_ready = true;
        for stream in 1..self.streams.len() {
            loop {
                if self.next[stream].is_none() {
                    self.next[stream] = self.streams[stream].pop_stamped(cx);
                }
                let is_held = self.others == OtherValues::Held;
                match self.next[stream].take_if(|(_, stamp)| !is_held || stamp.time_ns <= time_ns) {
                    Some((value, _)) => self.last[stream] = Some(value),
                    None => {
                        let is_over = self.next[stream].is_some() || self.streams[stream].is_ended(cx);
                        is_ready &= is_over || !is_held;
                        break;
                    }
                }
            }
        }
        is_ready
    }

    fn send(&mut self, (a, stamp): (f64, Stamp), cx: &mut Context) -> Result<(), Error> {
        let number = self.taken as f64;
        self.taken += 1;
        self.last[0] = Some(a);
        if self.last.contains(&None) {
            self.left_out += 1;
            return Ok(());
        }
        self.variables[0][0] = stamp.time_ns as f64 / 1e9;
        self.variables[1][0] = number;
        for (lane, value) in self.variables[MORE.len()..].iter_mut().zip(&self.last) {
            lane[0] = value.unwrap_or(f64::NAN);
        }
        let result = self.program.evaluate(&self.variables, 1)[0];
        cx.set_stamp(stamp);
        self.out.push(cx, result)
    }
}

#[operator]
impl Operator for ValueExpression {
    fn ports(&mut self, p: &mut Ports) {
        for (number, (name, input)) in INPUTS.iter().zip(&mut self.streams).enumerate() {
            let port = p.input(name, input);
            if number > 0 && self.others == OtherValues::Latest {
                port.optional();
            }
        }
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.others == OtherValues::Latest {
            self.bring_up(0, cx);
        }
        loop {
            if self.out.room(cx) == 0 {
                return Ok(Step::Again);
            }
            if self.next[0].is_none() {
                self.next[0] = self.streams[0].pop_stamped(cx);
            }
            let Some((_, Stamp { time_ns, .. })) = self.next[0] else { break };
            if !self.bring_up(time_ns, cx) {
                break;
            }
            if let Some(a) = self.next[0].take() {
                self.send(a, cx)?;
            }
        }
        if self.next[0].is_none() && self.streams[0].is_ended(cx) {
            return Ok(Step::Done);
        }
        for (next, stream) in self.next.iter().zip(&self.streams) {
            if next.is_some() {
                stream.keep(cx);
            }
        }
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if self.left_out > 0 && ending != Ending::Failed {
            cx.note(format!(
                "{} values of `a` came before the first one of another input, and were left out",
                self.left_out
            ));
        }
        Ok(())
    }
}
