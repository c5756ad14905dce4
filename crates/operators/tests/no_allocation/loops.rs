//! Loops that follow a carrier, and what is made of the multiplex of FM stations.

use super::{CHUNKS, Steady};
use onbeat_runtime::Chunk;

/// Puts one of each into a graph. `rds.decode` finds no groups in it: its lines allocate.
pub fn loops() {
    let mut steady = Steady::new::<Chunk<f32>>("loops", CHUNKS);
    let graph = &mut steady.graph;
    let registry = onbeat_operators::registry();
    let mut add = |name: &str, kind: &str, parameters: &str| {
        graph.add_boxed(name, "kind", registry.operator(kind, parameters).unwrap());
    };
    add("from", "null.source", "count = 2100\nrate = 240000\npace = \"fast\"");
    add("wave", "expression", "formula = \"0.1 * sin(2 * pi * 19000 * t) + 0 * if(isnan(a), 0, min(a, 1))\"");
    add("pilot", "pll", "frequency = 19000");
    add("carrier", "costas", "bandwidth = 20");
    add("symbols", "symbol.sync.complex", "symbol_rate = 2000");
    add("stereo", "fm.stereo", "");
    add("data", "rds.decode", "");
    add("lines", "text.sink", "path = \"-\"");
    for end in ["left", "right", "error"] {
        add(end, "null.sink", "");
    }
    for end in ["reference", "end"] {
        add(end, "null.sink.complex", "");
    }
    steady.connect(&[
        ("from", "wave.a"),
        ("wave", "pilot"),
        ("pilot.frequency", "watch"),
        ("pilot.error", "error"),
        ("pilot.reference", "reference"),
        ("pilot.out", "carrier"),
        ("carrier.out", "symbols"),
        ("symbols", "end"),
        ("wave", "stereo"),
        ("stereo.left", "left"),
        ("stereo.right", "right"),
        ("wave", "data"),
        ("data", "lines"),
    ]);
    steady.run();
}
