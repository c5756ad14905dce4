//! Cycles of samples: what comes back is cut otherwise than what it is added to.
#![forbid(unsafe_code)]

use onbeat_operators::registry;
use onbeat_runtime::{ClockKind, Options, Overrides, Pace, Pipeline, Scheduler};
use std::path::Path;

/// An echo: y = x + y / 2, `delay` samples later. The sound has 144,000 samples.
fn echo(rate_hz: u32, delay: &str) -> String {
    let seconds = 144_000 / rate_hz;
    format!(
        r#"
name = "echo"
operator = [
    {{ name = "sound", kind = "noise.source", sample_rate = {rate_hz}, duration = "{seconds} s", seed = 5 }},
    {{ name = "add", kind = "add" }},
    {{ name = "gain", kind = "saxpy", a = 0.5 }},
    {{ name = "dry", kind = "file.sink", path = "dry" }},
    {{ name = "wet", kind = "file.sink", path = "wet" }},
    {{ name = "back", kind = "null.sink" }},
]
edge = [
    {{ from = "sound", to = "add.a" }},
    {{ from = "sound", to = "dry" }},
    {{ from = "add", to = "gain" }},
    {{ from = "gain", to = "add.b", initial = {delay} }},
    {{ from = "add", to = "wet" }},
    {{ from = "gain", to = "back" }},
]
"#
    )
}

fn samples(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    bytes.chunks_exact(4).map(|four| f32::from_ne_bytes(four.try_into().unwrap())).collect()
}

#[test]
fn an_echo_of_any_delay_comes_to_its_end() {
    for delay in [1, 96, 100, 1000, 2400, 3000, 4095, 4096, 9600, 48_000] {
        for scheduler in [Scheduler::Greedy, Scheduler::Event, Scheduler::Pinned] {
            let folder = tempfile::tempdir().unwrap();
            let mut set = Overrides::default();
            set.text("--output", "output", folder.path().display().to_string());
            let text = echo(48_000, &delay.to_string());
            let pipeline = Pipeline::parse(&text, "echo.toml", ".", &registry(), &set)
                .unwrap_or_else(|error| panic!("{error}"));
            let mut options = pipeline.options.clone();
            (options.pace, options.scheduler) = (Some(Pace::Fast), scheduler);
            is_echo(pipeline, &options, delay);
        }
    }
}

/// Runs a pipeline of [`echo`], and compares.
#[track_caller]
fn is_echo(pipeline: Pipeline, options: &Options, delay: usize) {
    let record = pipeline.graph.run(options).unwrap_or_else(|error| panic!("{delay}: {error}"));
    assert_eq!((record.result.exit_status, record.result.lost), (0, 0), "{:?}", record.result);
    let [dry, wet] = ["dry", "wet"].map(|name| samples(&pipeline.output.join(name)));
    assert_eq!((dry.len(), wet.len()), (144_000, 144_000));
    let mut expected: Vec<f32> = Vec::new();
    for (n, x) in dry.iter().enumerate() {
        expected.push(x + n.checked_sub(delay).map_or(0.0, |before| 0.5 * expected[before]));
    }
    assert!(wet == expected, "delay {delay}, {:?}", options.scheduler);
}

#[test]
fn an_echo_of_a_slow_sound_keeps_time() {
    for delay in ["1", "99", "100", "101", "1000", "3500"] {
        let folder = tempfile::tempdir().unwrap();
        let mut set = Overrides::default();
        set.text("--output", "output", folder.path().display().to_string());
        let pipeline = Pipeline::parse(&echo(1000, delay), "echo.toml", ".", &registry(), &set)
            .unwrap_or_else(|error| panic!("{error}"));
        let options = Options { clock: ClockKind::Manual, ..pipeline.options.clone() };
        is_echo(pipeline, &options, delay.parse().unwrap());
    }
}

#[test]
fn a_delay_can_be_a_time() {
    let parse = |text: &str| Pipeline::parse(text, "echo.toml", ".", &registry(), &Overrides::default());
    let pipeline = parse(&echo(48_000, "'50 ms'")).unwrap_or_else(|error| panic!("{error}"));
    // An edge is as large as its messages at the start.
    let room = |pipeline: Pipeline| pipeline.plan.edges[3].quantum_bytes;
    assert_eq!(room(pipeline), room(parse(&echo(48_000, "2400")).unwrap()));
    assert!(room(parse(&echo(48_000, "2400")).unwrap()) < room(parse(&echo(48_000, "'1 s'")).unwrap()));
    let refused = |text: &str| parse(text).unwrap_err().to_string();
    assert!(refused(&echo(48_000, "'5 us'")).contains("`initial` is 0.000005 s: 0 samples at 48000 Hz"));
    assert!(refused(&echo(48_000, "'soon'")).contains("`initial`"), "{}", refused(&echo(48_000, "'soon'")));
    let unknown = echo(48_000, "'50 ms'")
        .replace("noise.source\", sample_rate = 48000, duration = \"3 s\", seed = 5", "null.source\"");
    assert!(
        refused(&unknown).contains("the sample rate behind `gain` is not known"),
        "{}",
        refused(&unknown)
    );
}
