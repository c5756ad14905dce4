//! Mistakes in graphs: each message names the operator and the port.

use onbeat_runtime::{Chunk, Context, Error};
use onbeat_runtime::{ClockKind, Graph, GraphError, Input, Operator, Options, Output, Ports, Step, WhenFull};

/// An operator with the ports that a test needs.
#[derive(Default)]
struct Box2 {
    a: Input<u64>,
    b: Input<u64>,
    out: Output<u64>,
    two: bool,
}

impl Operator for Box2 {
    fn ports(&mut self, p: &mut Ports) {
        p.input("a", &mut self.a);
        if self.two {
            p.input("b", &mut self.b);
        }
        p.output("out", &mut self.out);
    }
    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Wait)
    }
}

#[derive(Default)]
struct Chunks {
    input: Input<Chunk<f32>>,
    out: Output<Chunk<f32>>,
}

impl Operator for Chunks {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).optional();
        p.output("out", &mut self.out).optional();
    }
    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Done)
    }
}

fn source(graph: &mut Graph, name: &str) {
    graph.source(name, || Some(1u64));
}

fn sink(graph: &mut Graph, name: &str) {
    graph.sink(name, |_: u64| ());
}

/// Title, function that builds the graph, part of the error.
type Case = (&'static str, fn(&mut Graph), &'static str);

fn plan_fails(cases: &[Case]) {
    let options = Options { store_bytes: 1 << 20, ..Options::default() };
    for (title, build, expected) in cases {
        let mut graph = Graph::new("g");
        build(&mut graph);
        let error = graph.plan(&options).expect_err(title).to_string();
        assert!(error.contains(expected), "{title}: {error}");
    }
}

#[test]
fn every_mistake_in_a_name_is_named() {
    plan_fails(&[
        ("nothing", |_| (), "the graph `g` has no operators"),
        (
            "same name",
            |g| {
                source(g, "a");
                source(g, "a");
            },
            "two operators are called `a`",
        ),
        ("bad name", |g| source(g, "a.b"), "`a.b` cannot name an operator"),
        ("empty name", |g| source(g, ""), "`` cannot name an operator"),
        (
            "unknown operator",
            |g| {
                source(g, "numbers");
                let _ = g.connect_names("numbrs.out", "z.in");
            },
            "there is no operator `numbrs`: did you mean `numbers`?",
        ),
        (
            "unknown port",
            |g| {
                source(g, "a");
                sink(g, "z");
                let _ = g.connect_names("a.output", "z.in");
            },
            "operator `a` has no output `output`; it has out",
        ),
        (
            "input taken for output",
            |g| {
                source(g, "a");
                sink(g, "z");
                let _ = g.connect_names("z.in", "a.out");
            },
            "operator `z` has no output `in`; it has no outputs",
        ),
        (
            "which port",
            |g| {
                source(g, "s");
                g.add("add", Box2 { two: true, ..Box2::default() });
                let _ = g.connect_names("s", "add");
            },
            "`add` has 2 inputs (a, b): say which, as `add.a`",
        ),
        (
            "exposed twice",
            |g| {
                g.expose("in", "a.in");
                g.expose("in", "b.in");
            },
            "the port `in` is exposed twice",
        ),
    ]);
}

#[test]
fn every_mistake_in_a_connection_is_named() {
    plan_fails(&[
        ("unconnected output", |g| source(g, "a"), "output `a.out` (u64) is not connected"),
        ("unconnected input", |g| sink(g, "z"), "input `z.in` (u64) is not connected"),
        (
            "types",
            |g| {
                source(g, "a");
                g.sink("z", |_: f32| ());
                let _ = g.connect_names("a.out", "z.in");
            },
            "`a.out` sends u64, `z.in` takes f32",
        ),
        (
            "twice from two",
            |g| {
                source(g, "s");
                source(g, "t");
                g.add("box", Box2::default());
                let _ = g.connect_names("s.out", "box.a");
                let _ = g.connect_names("t.out", "box.a");
            },
            "input `box.a` is connected twice, from `s.out` and `t.out`",
        ),
        (
            "twice the same",
            |g| {
                source(g, "s");
                sink(g, "z");
                let _ = g.connect_names("s.out", "z.in");
                let _ = g.connect_names("s.out", "z.in");
            },
            "input `z.in` is connected twice, from `s.out` and `s.out`",
        ),
        (
            "cycle",
            |g| {
                g.add("one", Box2::default());
                g.add("two", Box2::default());
                let _ = g.connect_names("one.out", "two.a");
                let _ = g.connect_names("two.out", "one.a");
            },
            "the cycle two → one → two can never start",
        ),
    ]);
}

#[test]
fn every_mistake_in_the_size_of_an_edge_is_named() {
    plan_fails(&[
        (
            "capacity 0",
            |g| {
                source(g, "s");
                sink(g, "z");
                let _ = g.connect_names("s.out", "z.in").capacity(0);
            },
            "the edge s.out → z.in has capacity 0: it must be 1 to",
        ),
        (
            "quantum without chunks",
            |g| {
                source(g, "s");
                sink(g, "z");
                let _ = g.connect_names("s.out", "z.in").quantum(64);
            },
            "the edge s.out → z.in carries u64, not chunks",
        ),
        (
            "quantum below a sample",
            |g| {
                g.add("a", Chunks::default());
                g.add("b", Chunks::default());
                let _ = g.connect_names("a.out", "b.in").quantum(3);
            },
            "has a quantum of 3 bytes: a Chunk<f32> needs at least 4",
        ),
        (
            "quantum above the store",
            |g| {
                g.add("a", Chunks::default());
                g.add("b", Chunks::default());
                let _ = g.connect_names("a.out", "b.in").quantum(2 << 20);
            },
            "has a quantum of 2097152 bytes, which is larger than the chunk store (1048576 bytes)",
        ),
        (
            "too many chunks",
            |g| {
                g.add("a", Chunks::default());
                g.add("b", Chunks::default());
                let _ = g.connect_names("a.out", "b.in").quantum(1 << 16).capacity(100);
            },
            "the plan needs 7",
        ),
    ]);
}

#[test]
fn every_mistake_in_a_path_is_named() {
    plan_fails(&[
        (
            "path from nowhere",
            |g| {
                source(g, "s");
                sink(g, "z");
                let _ = g.connect_names("s", "z");
                g.path("q", "z", None);
            },
            "there is no operator `q`",
        ),
        (
            "path the wrong way",
            |g| {
                source(g, "s");
                sink(g, "z");
                let _ = g.connect_names("s", "z");
                g.path("z", "s", None);
            },
            "does not begin at a source",
        ),
    ]);
}

#[test]
fn a_handle_of_another_graph_is_refused() {
    let mut other = Graph::new("other");
    source(&mut other, "first");
    let stray = other.source("stray", || Some(1u64));
    let mut graph = Graph::new("g");
    let end = graph.sink("end", |_: u64| ());
    let _ = graph.connect(stray, |s| &s.out, end, |e| &e.input);
    assert!(
        matches!(graph.plan(&Options::default()), Err(GraphError::Mistake(text)) if text.contains("another graph"))
    );
}

/// An operator that passes chunks on gets none larger than it may send. That is reported, and fatal under
/// `strict`.
#[test]
fn a_quantum_that_cannot_be_kept_is_said() {
    let build = || {
        let mut graph = Graph::new("g");
        for name in ["a", "b", "c"] {
            graph.add(name, Chunks::default());
        }
        let _ = graph.connect_names("a.out", "b.in").quantum(64 << 10);
        let _ = graph.connect_names("b.out", "c.in").quantum(4 << 10).when_full(WhenFull::Wait);
        graph
    };
    let plan = build().plan(&Options::default()).unwrap();
    assert_eq!(plan.edges[0].quantum_bytes, Some(4 << 10));
    assert_eq!(plan.obtained.len(), 1);
    assert_eq!(
        (plan.obtained[0].asked.as_str(), plan.obtained[0].obtained.as_str()),
        ("65536 bytes", "4096 bytes")
    );
    let strict = Options { strict: true, clock: ClockKind::Manual, ..Options::default() };
    let error = build().plan(&strict).unwrap_err().to_string();
    assert!(
        error.contains("quantum of a.out → b.in") && error.contains("65536 bytes was asked for"),
        "{error}"
    );
}
