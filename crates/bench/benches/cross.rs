//! Cost of a message between two workers, through the public interface: one after the other (throughput), and
//! there and back (latency). For bare rings see `cargo bench -p onbeat-queue --bench ring`.
//!
//! `cargo bench -p onbeat-bench --bench cross`
#![allow(clippy::disallowed_macros, reason = "a bench prints")]

use onbeat_report::Figure;
use onbeat_runtime::{Context, Error, Graph, Idle, Input, Operator, Options, Output, Ports, Scheduler, Step};

const STREAM: u64 = 1_000_000;
const ROUND_TRIPS: u64 = 100_000;
const ROUNDS: usize = 9;

/// Sends each message back, a given number of times.
struct Pong {
    input: Input<u64>,
    out: Output<u64>,
    left: u64,
}

impl Operator for Pong {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(x) = self.input.pop(cx) {
            self.left -= 1;
            if self.left == 0 {
                return Ok(Step::Done);
            }
            self.out.push(cx, x + 1)?;
        }
        Ok(Step::Wait)
    }
}

fn options(idle: Idle) -> Options {
    Options { scheduler: Scheduler::Pinned, workers: Some(2), idle, ..Options::default() }
}

/// ns per message of a stream.
fn stream(idle: Idle, capacity: usize) -> f64 {
    let mut graph = Graph::new("stream");
    let mut n = 0;
    graph.source("numbers", move || {
        n += 1;
        (n <= STREAM).then_some(n)
    });
    graph.map("here", |x: u64| x);
    graph.map("there", |x: u64| x);
    graph.sink("end", |_: u64| ());
    graph.connect_names("numbers", "here");
    graph.connect_names("here", "there").capacity(capacity);
    graph.connect_names("there", "end");
    graph.run(&options(idle)).expect("it runs").result.duration_ns as f64 / STREAM as f64
}

/// ns for one way of a message that circulates between two workers.
fn one_way(idle: Idle, trips: u64) -> f64 {
    let mut graph = Graph::new("ping-pong");
    let ping = graph.add("ping", Pong { input: Input::default(), out: Output::default(), left: trips });
    let pong = graph.add("pong", Pong { input: Input::default(), out: Output::default(), left: trips });
    graph.connect(ping, |a| &a.out, pong, |b| &b.input);
    graph.connect(pong, |b| &b.out, ping, |a| &a.input).initial(0u64);
    graph.run(&options(idle)).expect("it runs").result.duration_ns as f64 / trips as f64 / 2.0
}

/// Measurement with its name.
type Case = (&'static str, fn() -> f64);

fn show(values: &[f64]) -> String {
    let Figure { value, min, max, .. } = Figure::of(values, "ns").expect("each round has a time");
    format!("{value:7.0} ({min:.0}, {max:.0})")
}

fn main() {
    println!("ns between two workers, median (minimum, maximum) of {ROUNDS} rounds; the cases alternate");
    let cases: [Case; 5] = [
        ("stream, capacity 1024, spin", || stream(Idle::Spin, 1024)),
        ("stream, capacity 1024, park", || stream(Idle::Park, 1024)),
        ("stream, capacity 4, spin", || stream(Idle::Spin, 4)),
        ("one way, spin", || one_way(Idle::Spin, ROUND_TRIPS)),
        ("one way, park", || one_way(Idle::Park, ROUND_TRIPS / 50)),
    ];
    let mut values = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for ((_, case), values) in cases.iter().zip(&mut values) {
            values.push(case());
        }
    }
    for ((name, _), values) in cases.iter().zip(values) {
        println!("{name:28} {}", show(&values));
    }
}
