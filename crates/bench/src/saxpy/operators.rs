//! Operators of the chain that are not part of onbeat: written as a user would write them.

use onbeat_operators::dsp::Affine;
use onbeat_runtime::{Chunk, Context, Error, Input, Kernel, Operator, Output, Ports, Progress, Step};
use std::hint::black_box;

/// Changes each chunk in place, like `examples/own_operator.rs`.
pub(super) struct Own {
    pub input: Input<Chunk<f32>>,
    pub out: Output<Chunk<f32>>,
    affine: Affine,
}

/// Writes its results to another chunk.
pub(super) struct OutOfPlace(Affine);

/// Factor of every saxpy: it leaves samples unchanged, so that they never become denormal or infinite. The
/// compiler cannot see the value.
pub(super) fn affine() -> Affine {
    black_box(Affine::new(1.0, 0.0))
}

impl Default for Own {
    fn default() -> Self {
        Own { input: Input::default(), out: Output::default(), affine: affine() }
    }
}

impl Default for OutOfPlace {
    fn default() -> Self {
        OutOfPlace(affine())
    }
}

impl Operator for Own {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            self.affine.in_place(chunk.edit(cx)?);
            self.out.push(cx, chunk)?;
        }
        Ok(Step::Wait)
    }

    fn replica(&self) -> Option<Box<dyn Operator>> {
        Some(Box::<Own>::default())
    }
}

impl Kernel for OutOfPlace {
    type In = f32;
    type Out = f32;

    fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
        let samples = input.len().min(output.len());
        self.0.out_of_place(input, output);
        Progress { consumed: samples, produced: samples }
    }

    fn replica(&self) -> Option<Self> {
        Some(OutOfPlace::default())
    }
}

/// Claims full chunks and writes nothing. It declares no replicas, so there is only one.
#[derive(Default)]
pub(super) struct SerialSource {
    pub out: Output<Chunk<f32>>,
    sent: u64,
}

/// Takes chunks and checks their order.
#[derive(Default)]
pub(super) struct SerialSink {
    pub input: Input<Chunk<f32>>,
    next: u64,
}

impl Operator for SerialSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        chunk.info_mut().start = self.sent;
        self.sent += chunk.len() as u64;
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
}

impl Operator for SerialSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            let start = chunk.info().start;
            if start != self.next {
                return Err(Error::new(format!("received sample {start}, but {} was next", self.next)));
            }
            self.next += chunk.len() as u64;
        }
        Ok(Step::Wait)
    }
}
