//! Subgraphs.

use super::{pointed, read, read_with};

const RADIO: &str = r#"
[[subgraph]]
name = "radio"
inputs = { in = "first.in" }
outputs = { out = "second.out" }
[[subgraph.operator]]
name = "first"
kind = "times"
by = 3
[[subgraph.operator]]
name = "second"
kind = "times"
[[subgraph.edge]]
from = "first.out"
to = "second.in"
capacity = 7

[[subgraph]]
name = "two"
inputs = { in = "a.in" }
outputs = { out = "b.out" }
[[subgraph.operator]]
name = "a"
kind = "radio"
[[subgraph.operator]]
name = "b"
kind = "radio"
[[subgraph.edge]]
from = "a.out"
to = "b.in"

[[operator]]
name = "numbers"
kind = "count"
to = 3
[[operator]]
name = "pair"
kind = "two"
[[operator]]
name = "end"
kind = "end"
[[edge]]
from = "numbers"
to = "pair.in"
[[edge]]
from = "pair.out"
to = "end"
[[path]]
from = "numbers"
to = "pair/b/second"
max_latency = "1ms"
"#;

#[test]
fn subgraphs_may_be_in_subgraphs() {
    let pipeline = read_with(RADIO, &["pair/b/first.by=9"]).unwrap();
    let operators = &pipeline.plan.workers[0].operators;
    let expected = ["numbers", "pair/a/first", "pair/a/second", "pair/b/first", "pair/b/second", "end"];
    assert_eq!(operators, &expected);
    assert_eq!(pipeline.plan.edges[0].from, "pair/a/first.out");
    assert_eq!(pipeline.plan.edges[0].capacity, 7);
    assert_eq!(pipeline.plan.paths[0].to, "pair/b/second");
}

#[test]
fn errors_within_point_at_the_inner_line() {
    let error = read(&RADIO.replace("capacity = 7", "quantum = 4")).unwrap_err();
    assert!(error.message().contains("pair/a/first.out → pair/a/second.in carries u64"), "{error}");
    assert_eq!(pointed(&error), "4");
    let error = read(&RADIO.replace("from = \"first.out\"", "from = \"first.aut\"")).unwrap_err();
    assert!(error.message().contains("`pair/a/first` has no output `aut`"), "{error}");
    assert_eq!(pointed(&error), "\"first.aut\"");
    let error = read(&RADIO.replace("pair.out", "pair.uot")).unwrap_err();
    assert!(error.message().contains("`pair` has no exposed port `uot`; it has in, out"), "{error}");
    let error = read_with(RADIO, &["pair/c/first.by=9"]).unwrap_err();
    assert!(error.message().contains("did you mean `pair/"), "{error}");
    let error = read_with(RADIO, &["pair.by=9"]).unwrap_err();
    assert!(error.message().contains("unknown key `by` in operator `pair`"), "{error}");
}

#[test]
fn many_in_many_are_refused_before_they_fill_the_memory() {
    use std::fmt::Write;
    let mut text =
        "[[subgraph]]\nname = \"s0\"\n[[subgraph.operator]]\nname = \"a\"\nkind = \"add\"\n".to_string();
    for n in 1..40 {
        writeln!(text, "[[subgraph]]\nname = \"s{n}\"").unwrap();
        for name in ["a", "b"] {
            writeln!(text, "[[subgraph.operator]]\nname = \"{name}\"\nkind = \"s{}\"", n - 1).unwrap();
        }
    }
    text += "[[operator]]\nname = \"all\"\nkind = \"s39\"\n";
    assert!(read(&text).unwrap_err().message().contains("more than 100000 operators"));
    let mut deep =
        "[[subgraph]]\nname = \"s0\"\n[[subgraph.operator]]\nname = \"a\"\nkind = \"add\"\n".to_string();
    for n in 1..10_000 {
        writeln!(
            deep,
            "[[subgraph]]\nname = \"s{n}\"\n[[subgraph.operator]]\nname = \"a\"\nkind = \"s{}\"",
            n - 1
        )
        .unwrap();
    }
    assert!(read(&deep).unwrap_err().message().contains("more than 64 subgraphs"));
}
