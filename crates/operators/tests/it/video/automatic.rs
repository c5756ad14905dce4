//! The quantum of edges with frames.

use super::samples;
use super::y4m::film;
use onbeat_operators::registry;
use onbeat_runtime::{Overrides, Pipeline};
use std::fs;
use std::path::Path;

const KINDS: [(&str, &str); 7] = [
    ("film", "kind = \"y4m.source\"\npath = \"a.y4m\"\npace = \"fast\""),
    ("large", "kind = \"image.resize\"\nrows = 100\ncolumns = 200"),
    ("part", "kind = \"image.crop\"\nrows = 100\ncolumns = 180"),
    ("grey", "kind = \"image.convert\"\nto = \"grey\""),
    ("black", "kind = \"image.threshold\"\nlevel = 9"),
    ("real", "kind = \"image.real\""),
    ("end", "kind = \"npy.sink\"\npath = \"end.npy\""),
];

/// A chain of these operators in a folder, with more lines for edge number `edge`.
fn pipeline(folder: &Path, kinds: &[(&str, &str)], edge: usize, more: &str) -> Pipeline {
    let operators = kinds.iter().map(|(name, text)| format!("[[operator]]\nname = \"{name}\"\n{text}\n"));
    let edges = kinds.windows(2).enumerate().map(|(at, pair)| {
        let more = if at == edge { more } else { "" };
        format!("[[edge]]\nfrom = \"{}\"\nto = \"{}\"\n{more}\n", pair[0].0, pair[1].0)
    });
    let text: String = operators.chain(edges).collect();
    let mut overrides = Overrides::default();
    overrides.text("--output", "output", folder.display().to_string());
    let answer = Pipeline::parse(&text, "test.toml", folder, &registry(), &overrides);
    answer.unwrap_or_else(|error| panic!("{error}"))
}

fn quanta(pipeline: &Pipeline) -> Vec<u32> {
    pipeline.plan.edges.iter().map(|edge| edge.quantum_bytes.unwrap()).collect()
}

#[test]
fn an_edge_has_room_for_a_frame() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.y4m"), film("F25:1 C420jpeg", &[&samples(72)[..]; 3])).unwrap();
    let it = pipeline(folder.path(), &KINDS, 9, "");
    assert_eq!(quanta(&it), [16384, 60_000, 54_000, 18_000, 18_000, 72_000]);
    let text = it.plan.to_string();
    assert!(text.contains("up to 54000 bytes, frames of 100 × 180 × 3"), "{text}");
    // A quantum of the edge wins, and the operators before it that pass their chunks on get no more.
    assert_eq!(quanta(&pipeline(folder.path(), &KINDS, 4, "quantum = 20000"))[3..5], [18_000, 20_000]);
    assert_eq!(quanta(&pipeline(folder.path(), &KINDS, 4, "quantum = 9000"))[3..5], [9_000, 9_000]);
    let mut record = it.graph;
    record.set_config(serde_json::Value::Null);
    let record = record.run(&it.plan.options).unwrap();
    assert_eq!(record.edges[5].received, 3);
}

#[test]
fn what_is_not_known_is_not_guessed() {
    let folder = tempfile::tempdir().unwrap();
    // Without the file, nothing is known before the part; the run says what is wrong.
    let it = pipeline(folder.path(), &KINDS, 9, "");
    assert_eq!(quanta(&it), [16384, 60_000, 54_000, 18_000, 18_000, 72_000].map(|_| 16384));
    assert_eq!(it.check().len(), 1);
    // Of stdin, the user can say it.
    let mut kinds = KINDS;
    kinds[0].1 = "kind = \"y4m.source\"\npath = \"-\"\nrows = 480\ncolumns = 640";
    let it = pipeline(folder.path(), &kinds, 9, "");
    assert_eq!(quanta(&it)[..2], [921_600, 60_000]);
    assert!(it.check().is_empty());
}

#[test]
fn a_check_finds_frames_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.y4m"), film("F25:1 C420jpeg", &[&samples(72)[..]; 3])).unwrap();
    let mut kinds = KINDS;
    kinds[2].1 = "kind = \"image.crop\"\nrows = 101\ncolumns = 180";
    let wrong = pipeline(folder.path(), &kinds, 9, "").check();
    let text = wrong[0].1.to_string();
    assert!(wrong.len() == 1 && wrong[0].0 == "part", "{}", wrong.len());
    assert!(text.contains("`top` is 0 and `rows` is 101: together they must be at most 100"), "{text}");
}
