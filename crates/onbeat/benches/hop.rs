//! What one message costs from operator to operator, beside a bare call with a cell slot.
//!
//! `cargo bench -p onbeat --bench hop`
#![allow(clippy::disallowed_macros, reason = "a bench prints")]

use onbeat::prelude::*;
use onbeat::{Ending, Options};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

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
    record.result.duration_ns as f64
}

trait Bare {
    fn step(&mut self, input: &Cell<Option<u64>>, out: &Cell<Option<u64>>);
}

impl Bare for u64 {
    fn step(&mut self, input: &Cell<Option<u64>>, out: &Cell<Option<u64>>) {
        if let Some(x) = input.take() {
            out.set(Some(x + *self));
        }
    }
}

/// The same chain as plain calls of trait objects, each with a cell before and after it.
fn bare(operators: usize) -> f64 {
    let mut chain: Vec<Box<dyn Bare>> =
        (0..operators + 2).map(|_| black_box(Box::new(1u64)) as Box<dyn Bare>).collect();
    let cells: Vec<Cell<Option<u64>>> = (0..operators + 3).map(|_| Cell::new(None)).collect();
    let begin = Instant::now();
    for n in 0..MESSAGES {
        cells[0].set(Some(n));
        for (at, operator) in chain.iter_mut().enumerate() {
            operator.step(&cells[at], &cells[at + 1]);
        }
        black_box(&cells);
    }
    begin.elapsed().as_nanos() as f64
}

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn main() {
    println!("ns per operator and message, median (least, most) of {ROUNDS} rounds of {MESSAGES} messages");
    for operators in [1, 4, 6, 14] {
        let per = |total: f64| total / MESSAGES as f64 / (operators + 2) as f64;
        let (mut ours, mut one, mut bares) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bares.push(per(bare(operators)));
            ours.push(per(engine(operators, 4)));
            one.push(per(engine(operators, 1)));
        }
        let show = |values| {
            let (median, least, most) = median(values);
            format!("{median:5.2} ({least:5.2}, {most:5.2})")
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
