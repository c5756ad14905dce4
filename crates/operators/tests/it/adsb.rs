//! The ADS-B receiver of the example writes the same lines, byte for byte, under every scheduler, idle policy
//! and edge size. It is the graph with shipped operators of the conformance suite, whose random graphs are in
//! `crates/runtime/tests/it/conformance.rs`.
#![forbid(unsafe_code)]

use crate::harness::watched;
use num_complex::Complex;
use onbeat_operators::mode_s::{Decode, Demod, Frame};
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{Overrides, Pipeline};
use std::fs;
use std::path::{Path, PathBuf};

/// All schedulers, each with its settings: another one needs one more line.
const SCHEDULERS: [(&str, &[&str]); 3] = [
    ("greedy", &[""]),
    ("pinned", &["workers=1", "workers=2"]),
    ("event", &["workers=1", "workers=2", "workers=2 share=always"]),
];
const IDLE: [&str; 3] = ["park", "spin", "spin:20us"];
/// In bytes. One is not a whole number of cache lines, and one makes a chunk end within every frame.
const QUANTA: [usize; 4] = [64, 5_000, 16 << 10, 64 << 10];
const CAPACITIES: [usize; 4] = [1, 2, 7, 64];

/// All combinations, each as settings for the file.
fn ways() -> impl Iterator<Item = Vec<String>> {
    SCHEDULERS.into_iter().flat_map(|(scheduler, settings)| {
        let with_idle = |setting: &'static str| IDLE.map(|idle| (setting, idle));
        settings.iter().copied().flat_map(with_idle).map(move |(setting, idle)| {
            let both = [format!("scheduler={scheduler}"), format!("idle={idle}")];
            both.into_iter().chain(setting.split_whitespace().map(str::to_string)).collect()
        })
    })
}

/// A capture of complex bytes, and the expected lines: the output of the operators without a scheduler, each
/// called once.
struct Capture {
    path: PathBuf,
    lines: String,
}

impl Capture {
    fn new(path: PathBuf) -> Self {
        let bytes = fs::read(&path).unwrap();
        let float = |byte: u8| (f32::from(byte) - 127.5) / 127.5;
        let samples: Vec<_> =
            bytes.chunks_exact(2).map(|pair| Complex::new(float(pair[0]), float(pair[1]))).collect();
        let frames = Trial::new(Demod::<Complex<f32>>::new(60.0).unwrap())
            .feed("in", Feed::samples(samples).rate(2e6))
            .keep::<Frame>("out")
            .run();
        let frames = frames.messages::<Frame>("out").to_vec();
        let lines = Trial::new(Decode::default()).feed("in", Feed::messages(frames)).run();
        let lines: String = lines.messages::<String>("out").iter().map(|line| format!("{line}\n")).collect();
        Capture { path, lines }
    }

    /// Runs the example on the capture, and compares the output.
    fn check(&self, settings: &[String]) {
        let folder = tempfile::tempdir().unwrap();
        let mut overrides = Overrides::default();
        overrides.set(format!("iq.path='{}'", self.path.display()));
        overrides.set(format!("output='{}'", folder.path().display()));
        overrides.set("lines.path=lines.jsonl");
        overrides.set("pace=fast");
        settings.iter().for_each(|setting| overrides.set(setting));
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/adsb.toml");
        let pipeline = Pipeline::read(example, &registry(), &overrides).unwrap();
        let record = pipeline.start().unwrap().wait().unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        assert_eq!((record.result.exit_status, record.result.lost), (0, 0), "{settings:?}");
        let written = fs::read_to_string(folder.path().join("lines.jsonl")).unwrap();
        assert!(written == self.lines, "{settings:?}: it wrote\n{written}and not\n{}", self.lines);
    }
}

fn examples(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

#[test]
fn every_scheduler_writes_the_same_lines() {
    watched(|| {
        let capture = Capture::new(examples("adsb.cu8"));
        let sent = fs::read_to_string(examples("adsb.frames")).unwrap();
        assert_eq!(capture.lines.lines().count(), sent.lines().count(), "every frame is a line");
        for way in ways() {
            for quantum in QUANTA {
                for capacity in CAPACITIES {
                    let edges =
                        [format!("defaults.quantum={quantum}"), format!("defaults.capacity={capacity}")];
                    capture.check(&[&way[..], &edges[..]].concat());
                }
            }
        }
    });
}

#[test]
#[allow(clippy::disallowed_macros, reason = "a test that is skipped says so")]
fn a_real_capture_too() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/modes1.bin");
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return;
    }
    watched(move || {
        let capture = Capture::new(path);
        assert!(capture.lines.lines().count() > 200);
        for way in ways() {
            for quantum in [1_000, 16 << 10] {
                let quantum = format!("defaults.quantum={quantum}");
                capture.check(&[&way[..], &[quantum]].concat());
            }
        }
    });
}
