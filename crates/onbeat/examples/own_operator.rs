//! A user-defined operator on chunks of samples, in a pipeline with built-in operators.
//!
//! `cargo run --release --example own_operator -p onbeat`
#![allow(clippy::disallowed_macros, reason = "an example prints")]
use onbeat::Options;
use onbeat::prelude::*;

/// Measures the loudness of a signal: a moving mean of the squares, with a time constant of 4800 samples.
#[derive(Default)]
struct Loudness {
    input: Input<Chunk<f32>>,
    out: Output<Chunk<f32>>,
    mean: f32,
}

impl Operator for Loudness {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            for x in chunk.edit(cx)? {
                self.mean += (*x * *x - self.mean) / 4800.0;
                *x = self.mean.sqrt();
            }
            self.out.push(cx, chunk)?;
        }
        Ok(Step::Wait)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Built-in kinds take their parameters in TOML, as in a pipeline file.
    let registry = onbeat::operators::registry();
    let mut graph = Graph::new("own-operator");
    graph.add_boxed("source", "null.source", registry.operator("null.source", "count = 2_000")?);
    graph.add_boxed("tone", "saxpy", registry.operator("saxpy", "a = 0.0\nb = 0.25")?);
    graph.add("loudness", Loudness::default());
    let mut last = 0.0;
    graph.sink("meter", move |chunk: Chunk<f32>| {
        last = chunk.last().copied().unwrap_or(last);
        assert!(last <= 0.25);
    });
    graph.connect_names("source", "tone");
    graph.connect_names("tone", "loudness");
    graph.connect_names("loudness", "meter");

    let record = graph.run(&Options::default())?;
    for operator in &record.operators {
        println!("{:10} {:5} steps, median {:6} ns", operator.name, operator.steps, operator.step.median_ns);
    }
    Ok(())
}
