//! Measures, formulas, and the operators that make one stream of several.

use super::{CHUNKS, Steady};
use onbeat_runtime::Chunk;

/// Puts one of each into a graph. `peaks` is left out: its keys allocate.
pub fn measures() {
    let mut steady = Steady::new::<Chunk<f32>>("measures", CHUNKS);
    let graph = &mut steady.graph;
    let registry = onbeat_operators::registry();
    let mut add = |name: &str, kind: &str, parameters: &str| {
        graph.add_boxed(name, "kind", registry.operator(kind, parameters).unwrap());
    };
    add("from", "null.source", "count = 2100\nrate = 48000\npace = \"fast\"");
    add("wave", "expression", "formula = \"sin(2 * pi * 440 * t) + 0 * if(isnan(a), 0, min(a, 1))\"");
    add("half", "expression", "formula = \"a ^ 2 / (1 + abs(b)) - clamp(a, -1, 1)\"");
    add("product", "multiply", "");
    add("difference", "subtract", "");
    add("mix", "mix", "weights = [0.5, 0.25]");
    add("select", "select", "inputs = 2");
    add("on", "threshold", "on = 0.5\noff = -0.5");
    add("rms", "rms", "samples = 700\nhop_samples = 100");
    add("median", "percentile", "p = 50\nsamples = 700\nhop_samples = 100");
    add("rate", "peaks.rate", "distance = \"5 ms\"\nevery = \"100 ms\"");
    add("null", "null.sink", "");
    add("both", "expression.value", "formula = \"a - b\"");
    for end in ["on-end", "both-end", "rate-end"] {
        add(end, "value.sink", "");
    }
    steady.connect(&[
        ("from", "wave.a"),
        ("wave", "half.a"),
        ("from", "half.b"),
        ("wave", "product.a"),
        ("half", "product.b"),
        ("product", "difference.a"),
        ("wave", "difference.b"),
        ("difference", "mix.in0"),
        ("wave", "mix.in1"),
        ("mix", "select.in0"),
        ("wave", "select.in1"),
        ("wave", "on"),
        ("on.events", "on-end"),
        ("wave", "rms"),
        ("wave", "median"),
        ("rms", "both.a"),
        ("median", "both.b"),
        ("both", "both-end"),
        ("wave", "rate"),
        ("rate", "rate-end"),
        ("on.out", "watch"),
        ("select", "null"),
    ]);
    steady.run();
}
