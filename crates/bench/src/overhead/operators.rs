//! Operators that do next to nothing, so that the engine dominates the cost.

use super::effort::Effort;
use super::marks::StepCounter;
use onbeat_runtime::{Context, Ending, Error, Input, Operator, Output, Ports, Step};
use std::hint::black_box;

/// Has no ports; it is stepped until it is done.
pub(super) struct Portless<E> {
    pub mark: StepCounter,
    pub effort: E,
}

/// Sends one number per step.
pub(super) struct Tx<E> {
    pub out: Output<u64>,
    pub next: u64,
    pub mark: StepCounter,
    pub effort: E,
}

/// Adds one to each number and sends it on.
pub(super) struct AddOne<E> {
    pub input: Input<u64>,
    pub out: Output<u64>,
    pub effort: E,
}

/// Sums the numbers up.
pub(super) struct Rx<E> {
    pub input: Input<u64>,
    pub sum: u64,
    pub mark: StepCounter,
    pub effort: E,
}

impl<E: Effort> Operator for Portless<E> {
    fn ports(&mut self, _: &mut Ports) {}

    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        self.effort.spend();
        Ok(if self.mark.step() { Step::Done } else { Step::Again })
    }
}

impl<E: Effort> Operator for Tx<E> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.effort.spend();
        self.next += 1;
        self.out.push(cx, self.next)?;
        Ok(if self.mark.step() { Step::Done } else { Step::Again })
    }
}

impl<E: Effort> Operator for AddOne<E> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(x) = self.input.pop(cx) {
            self.effort.spend();
            self.out.push(cx, x + 1)?;
        }
        Ok(Step::Wait)
    }
}

impl<E: Effort> Operator for Rx<E> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(x) = self.input.pop(cx) {
            self.effort.spend();
            self.sum = self.sum.wrapping_add(x);
            self.mark.step();
        }
        Ok(Step::Wait)
    }

    fn stop(&mut self, _: &mut Context, _: Ending) -> Result<(), Error> {
        black_box(self.sum);
        Ok(())
    }
}
