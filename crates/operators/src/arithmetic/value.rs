//! A linear map of values, and their number.

use crate::check;
use onbeat_runtime::{Context, Error, Input, Operator, Output, Step, operator};

/// Scale and offset of values: y = scale · x + offset.
///
/// It converts units, such as the volts of a sensor to degrees, or a set-point to a command. It is computed
/// in double precision; a value that is not finite is passed on as the formula gives it.
#[derive(Operator)]
#[operator(name = "value.linear", prepare = Self::prepare)]
pub struct ValueLinear {
    /// Values.
    input: Input<f64>,
    /// Converted values.
    out: Output<f64>,
    /// Factor.
    #[parameter(default = 1.0, example = 0.5, settable)]
    scale: f64,
    /// Added after the multiplication.
    #[parameter(default = 0.0, settable)]
    offset: f64,
}

impl ValueLinear {
    fn prepare(&mut self) -> Result<(), Error> {
        check::finite("scale", self.scale)?;
        check::finite("offset", self.offset)
    }
}

#[operator]
impl Operator for ValueLinear {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(x) = self.input.pop(cx) {
            self.out.push(cx, self.scale * x + self.offset)?;
        }
        Ok(Step::Wait)
    }
}

/// Counts the values that are above a limit, and sends the number.
///
/// It counts the events of `threshold` or `peaks`, for example: each of them sends the number so far. A value
/// that is not a number is not above any limit.
#[derive(Operator)]
#[operator(name = "value.count")]
pub struct ValueCount {
    /// Values.
    input: Input<f64>,
    /// The number of values so far, with the time of the latest.
    out: Output<f64>,
    /// Only values above this one count.
    #[parameter(default = 0.0, settable)]
    above: f64,
    count: u64,
}

#[operator]
impl Operator for ValueCount {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.input.pop(cx).is_some_and(|x| x > self.above) {
            self.count += 1;
            self.out.push(cx, self.count as f64)?;
        }
        Ok(Step::Wait)
    }
}
