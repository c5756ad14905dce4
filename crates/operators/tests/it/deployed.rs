//! Random graphs, cut at random edges over two and three nodes: the files are those of one process.

use onbeat_link::deployment::{Hosts, TypedEdge, split};
use onbeat_operators::registry;
use onbeat_runtime::testing::free_address;
use onbeat_runtime::{Overrides, Pipeline, PipelineError};
use onbeat_trace::record::LinkRecord;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// High enough that six decimations in a row leave room for their filters.
const RATE: &str = "64 kHz";

/// An operator: its kind and parameters, and the earlier operators that its inputs come from.
#[derive(Debug, Clone)]
struct Piece {
    kind: usize,
    inputs: (prop::sample::Index, prop::sample::Index),
    node: usize,
    when_full: usize,
    capacity: usize,
}

const KINDS: [(&str, &[&str]); 6] = [
    ("kind = \"saxpy\"\na = 0.5\nb = 0.25", &["in"]),
    ("kind = \"delay\"\nsamples = 700", &["in"]),
    ("kind = \"fir.decimate.real\"\nfactor = 2\ncutoff = \"100 Hz\"\ntransition = \"200 Hz\"", &["in"]),
    ("kind = \"add\"", &["a", "b"]),
    ("kind = \"agc\"", &["in"]),
    ("kind = \"load\"\ncpu = \"1 us\"", &["in"]),
];

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = (
        0..KINDS.len(),
        any::<(prop::sample::Index, prop::sample::Index)>(),
        0..3_usize,
        0..4_usize,
        1..9_usize,
    )
        .prop_map(|(kind, inputs, node, when_full, capacity)| Piece {
            kind,
            inputs,
            node,
            when_full,
            capacity,
        });
    prop::collection::vec(piece, 1..7)
}

/// The pipeline, and the node of each operator. Operators that nobody reads get a file.
fn pipeline(pieces: &[Piece], output: &Path) -> (String, BTreeMap<String, usize>) {
    let mut text = format!("output = {output:?}\n[defaults]\nquantum = \"2 KiB\"\n");
    let mut nodes = BTreeMap::from([("source".to_string(), 0)]);
    let source = "kind = \"npy.source\"\npath = \"in.npy\"\npace = \"fast\"";
    let _ = write!(text, "[[operator]]\nname = \"source\"\n{source}\nrate = \"{RATE}\"\n");
    let (mut edges, mut read) = (String::new(), vec![false; pieces.len() + 1]);
    let name = |number: usize| if number == 0 { "source".to_string() } else { format!("op-{number}") };
    for (number, piece) in (1..).zip(pieces) {
        let (kind, inputs) = KINDS[piece.kind];
        let _ = write!(text, "[[operator]]\nname = \"{}\"\n{kind}\n", name(number));
        nodes.insert(name(number), piece.node);
        for (port, index) in inputs.iter().zip([piece.inputs.0, piece.inputs.1]) {
            let from = index.index(number);
            read[from] = true;
            let rule = ["wait", "drop_oldest", "drop_newest", "error"][piece.when_full];
            // All messages fit where a full queue would drop one.
            let capacity = if rule == "wait" { piece.capacity } else { 256 };
            let _ = write!(
                edges,
                "[[edge]]\nfrom = \"{}.out\"\nto = \"{}.{port}\"\ncapacity = {}\nwhen_full = \"{rule}\"\n",
                name(from),
                name(number),
                capacity
            );
        }
    }
    for (number, _) in read.iter().enumerate().filter(|(_, read)| !**read) {
        let (sink, node) = (format!("end-{number}"), nodes[&name(number)]);
        let _ =
            write!(text, "[[operator]]\nname = \"{sink}\"\nkind = \"file.sink\"\npath = \"{number}.f32\"\n");
        let _ = write!(edges, "[[edge]]\nfrom = \"{}.out\"\nto = \"{sink}.in\"\n", name(number));
        nodes.insert(sink, (node + number) % 3);
    }
    (text + &edges, nodes)
}

fn read(text: &str, folder: &Path) -> Pipeline {
    parse(text, folder).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn parse(text: &str, folder: &Path) -> Result<Pipeline, PipelineError> {
    Pipeline::parse(text, "graph.toml", folder, &registry(), &Overrides::default())
}

/// Ends the process: the graph hangs.
fn panic_all(text: &str) {
    use std::io::Write as _;
    let _unseen = writeln!(std::io::stderr(), "{text}");
    std::process::abort();
}

/// All files of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    };
    std::fs::read_dir(folder).unwrap().map(entry).collect()
}

/// The deployment file: as many nodes as have operators, on free ports.
fn hosts(nodes: &BTreeMap<String, usize>, count: usize) -> String {
    let mut text = String::new();
    for node in 0..count {
        let own: Vec<&String> =
            nodes.iter().filter(|(_, at)| **at % count == node).map(|(name, _)| name).collect();
        if !own.is_empty() {
            let address = free_address();
            let _ = write!(
                text,
                "[node.n{node}]\nendpoint = \"127.0.0.1:{}\"\nlinks = \"{address}\"\noperators = {own:?}\n",
                node + 1
            );
        }
    }
    text
}

/// Returns whether the graph is a sensible one.
fn check(pieces: &[Piece]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<f32> =
        (0..20_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e7).collect();
    std::fs::write(
        folder.path().join("in.npy"),
        super::formats::arrays::npy("<f4", "(20000,)", bytemuck::cast_slice(&samples), 1),
    )
    .unwrap();
    let (alone, spread) = (folder.path().join("alone"), folder.path().join("spread"));
    let (text, nodes) = pipeline(pieces, &alone);
    let one = match parse(&text, folder.path()) {
        // Streams of different rates do not add up.
        Err(error) if error.message().contains("must have the same rate") => return false,
        one => one.unwrap_or_else(|error| panic!("{error}\n{text}")),
    };
    let edges: Vec<TypedEdge> = one
        .plan
        .edges
        .iter()
        .map(|edge| TypedEdge {
            from: edge.from.clone(),
            to: edge.to.clone(),
            message: edge.message.clone(),
            capacity: edge.capacity,
        })
        .collect();
    if one.start().unwrap().wait().is_err() {
        return false;
    }
    for count in [2, 3] {
        let (text, _) = pipeline(pieces, &spread);
        let hosts = Hosts::parse(&hosts(&nodes, count)).unwrap();
        let table = toml::from_str(&text).unwrap();
        let parts = split(&table, &edges, &hosts, "graph").unwrap();
        let run = |part: &onbeat_link::deployment::NodePart| {
            read(&toml::to_string(&part.pipeline).unwrap(), folder.path()).start().unwrap()
        };
        let runs: Vec<_> = parts.iter().map(run).collect();
        let handles: Vec<_> = runs.iter().map(onbeat_runtime::Run::handle).collect();
        let seen = text.clone();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        onbeat_os::thread::spawn("watchdog", move || {
            let wait = is_done.recv_timeout(std::time::Duration::from_secs(20));
            if wait == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let status: Vec<_> = handles.iter().map(onbeat_runtime::RunHandle::status).collect();
                panic_all(&format!("{seen}\n{status:#?}"));
            }
        })
        .unwrap();
        let records: Vec<_> = runs.into_iter().map(|run| run.wait().unwrap()).collect();
        drop(done);
        let ends: Vec<_> = records.iter().flat_map(|record| &record.links).collect();
        for end in &ends {
            let other =
                ends.iter().find(|other| other.name == end.name && !std::ptr::eq(**other, *end)).unwrap();
            // Where one input of an operator ends before the other, some messages are in flight at the end.
            let books = |end: &LinkRecord| (end.messages - end.in_flight, end.dropped);
            assert_eq!(books(end), books(other));
        }
        assert_eq!(files(&alone), files(&spread), "{text}");
        std::fs::remove_dir_all(&spread).unwrap();
    }
    true
}

#[test]
fn random_graphs_write_the_same_files() {
    // 200 and more with PROPTEST_CASES.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(30);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&pieces(), |pieces| {
            prop_assume!(check(&pieces));
            Ok(())
        })
        .unwrap();
}
