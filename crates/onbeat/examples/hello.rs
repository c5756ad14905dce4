//! Smallest pipeline: `cargo run --example hello -p onbeat`
#![allow(clippy::disallowed_macros, reason = "an example prints")]
use onbeat::prelude::*;

fn main() -> Result<(), onbeat::RunError> {
    let mut graph = Graph::new("hello");
    let mut n = 0;
    let numbers = graph.source("numbers", move || {
        n += 1;
        (n <= 5).then_some(n)
    });
    let square = graph.map("square", |x: u64| x * x);
    let print = graph.sink("print", |x: u64| println!("{x}"));
    graph.connect(numbers, |s| &s.out, square, |s| &s.input);
    graph.connect(square, |s| &s.out, print, |p| &p.input);
    graph.run(&onbeat::Options::default()).map(drop)
}
