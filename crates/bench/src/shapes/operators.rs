//! Operators of a random graph, which modify their samples and compute for a while.

use onbeat_operators::dsp::Affine;
use onbeat_runtime::{Chunk, Context, Error, Input, Operator, Output, Ports, Step};
use std::hint::black_box;

/// Modifies the samples in place, then runs this many dependent rounds of arithmetic.
fn work(samples: &mut [f32], rounds: u64) -> u64 {
    black_box(Affine::new(1.0, 0.0)).in_place(samples);
    let mut x = black_box(1_u64);
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    x
}

/// An operator without state that works on each chunk and sends it on.
#[derive(Default)]
pub(super) struct Stateless {
    pub input: Input<Chunk<f32>>,
    pub out: Output<Chunk<f32>>,
    pub rounds: u64,
}

impl Operator for Stateless {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            black_box(work(chunk.edit(cx)?, self.rounds));
            self.out.push(cx, chunk)?;
        }
        Ok(Step::Wait)
    }

    fn replica(&self) -> Option<Box<dyn Operator>> {
        Some(Box::new(Stateless { rounds: self.rounds, ..Stateless::default() }))
    }
}

/// An operator with state and with a change of rate: sends one chunk per `every` input chunks.
pub(super) struct Stateful {
    pub input: Input<Chunk<f32>>,
    pub out: Output<Chunk<f32>>,
    pub rounds: u64,
    pub every: u64,
    pub seen: u64,
    pub sum: u64,
}

impl Operator for Stateful {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            self.sum = self.sum.wrapping_add(work(chunk.edit(cx)?, self.rounds));
            self.seen += 1;
            if self.seen.is_multiple_of(self.every) {
                self.out.push(cx, chunk)?;
            }
        }
        Ok(Step::Wait)
    }
}
