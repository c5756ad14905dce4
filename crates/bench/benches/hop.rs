//! Cost of one message between two operators, compared with bare calls of trait objects with a cell between
//! two.
//!
//! `cargo bench -p onbeat-bench --bench hop`
#![allow(clippy::disallowed_macros, reason = "a bench prints")]

use onbeat_bench::overhead;
use onbeat_report::Figure;
use onbeat_runtime::{Context, Ending, Error, Graph, Input, Operator, Options, Output, Ports, Step};
use std::hint::black_box;

const MESSAGES: u64 = 2_000_000;
const ROUNDS: usize = 9;

struct Numbers {
    out: Output<u64>,
    next: u64,
}

impl Operator for Numbers {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.next == MESSAGES {
            return Ok(Step::Done);
        }
        self.out.push(cx, self.next)?;
        self.next += 1;
        Ok(Step::Again)
    }
}

#[derive(Default)]
struct AddOne {
    input: Input<u64>,
    out: Output<u64>,
}

impl Operator for AddOne {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(x) = self.input.pop(cx) {
            self.out.push(cx, x + 1)?;
        }
        Ok(Step::Wait)
    }
}

#[derive(Default)]
struct Sum {
    input: Input<u64>,
    sum: u64,
}

impl Operator for Sum {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(x) = self.input.pop(cx) {
            self.sum = self.sum.wrapping_add(x);
        }
        Ok(Step::Wait)
    }
    fn stop(&mut self, _: &mut Context, _: Ending) -> Result<(), Error> {
        black_box(self.sum);
        Ok(())
    }
}

/// ns per message.
fn engine(operators: usize, capacity: usize) -> f64 {
    let mut graph = Graph::new("hop");
    let source = graph.add("source", Numbers { out: Output::default(), next: 0 });
    let mut last = None;
    for n in 0..operators {
        let op = graph.add(format!("op{n}"), AddOne::default());
        match last {
            None => graph.connect(source, |s| &s.out, op, |o| &o.input),
            Some(last) => graph.connect(last, |l: &AddOne| &l.out, op, |o| &o.input),
        }
        .capacity(capacity);
        last = Some(op);
    }
    let sink = graph.add("sink", Sum::default());
    graph.connect(last.expect("one at least"), |l| &l.out, sink, |s| &s.input).capacity(capacity);
    let record = graph.run(&Options::default()).expect("it runs");
    record.result.duration_ns as f64 / MESSAGES as f64
}

fn main() {
    println!(
        "ns per operator and message, median (minimum, maximum) of {ROUNDS} rounds of {MESSAGES} messages"
    );
    for operators in [1, 4, 6, 14] {
        let steps = (operators + 2) as f64;
        let (mut ours, mut one, mut bares) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bares.push(overhead::bare_chain_ns(operators + 2, MESSAGES) / steps);
            ours.push(engine(operators, 4) / steps);
            one.push(engine(operators, 1) / steps);
        }
        let show = |values: Vec<f64>| {
            let Figure { value, min, max, .. } = Figure::of(&values, "ns").expect("each round has a time");
            format!("{value:5.2} ({min:5.2}, {max:5.2})")
        };
        println!(
            "chain of {:2}: onbeat {}   capacity 1 {}   bare {}",
            operators + 2,
            show(ours),
            show(one),
            show(bares)
        );
    }
}
