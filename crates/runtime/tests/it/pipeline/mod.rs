//! Pipelines from text: what can be read, what cannot, and what is said then.

mod files;
mod kinds;
mod mutated;
mod on_error;
mod settings;
mod subgraphs;
mod when;

use kinds::registry;
use onbeat_runtime::{Overrides, Pipeline, PipelineError};

fn read(text: &str) -> Result<Pipeline, PipelineError> {
    read_with(text, &[])
}

fn read_with(text: &str, settings: &[&str]) -> Result<Pipeline, PipelineError> {
    let mut overrides = Overrides::default();
    for setting in settings {
        overrides.set(*setting);
    }
    Pipeline::parse(text, "test.toml", "folder", &registry(), &overrides)
}

/// The text that an error points at.
fn pointed(error: &PipelineError) -> &str {
    &error.text()[error.span().expect("it is about a place")]
}

const CHAIN: &str = r#"
[[operator]]
name = "numbers"
kind = "count"
to = 3

[[operator]]
name = "end"
kind = "end"

[[edge]]
from = "numbers.out"
to = "end.in"
"#;

#[test]
fn a_pipeline_runs() {
    let record = read(CHAIN).unwrap().start().unwrap().wait().unwrap();
    assert_eq!(record.name, "test");
    assert_eq!(record.edges[0].received, 3);
    assert_eq!(record.config["operator"][0]["rate"], 1e3, "a default is filled in");
}

#[test]
fn the_configuration_is_resolved() {
    let text = format!("duration = \"30s\"\npace = \"fast\"\nstore = \"1MiB\"\nclock = \"manual\"\n{CHAIN}");
    let pipeline = read(&text).unwrap();
    assert_eq!(pipeline.options.duration_ns, Some(30_000_000_000));
    assert_eq!(pipeline.options.store_bytes, 1 << 20);
    assert_eq!(pipeline.output.to_str(), Some("out"));
    let record = pipeline.start().unwrap().wait().unwrap();
    let config = serde_json::to_string(&record.config).unwrap();
    assert_eq!(
        config,
        r#"{"name":"test","scheduler":"greedy","cores":[],"house_keeping":[],"workers":null,"share":"heavy","idle":"park","#
            .to_string()
            + r#""policy":null,"lock_memory":false,"prefault":null,"huge_pages":false,"numa":false,"timer_slack":null,"#
            + r#""dma_latency":null,"force":false,"#
            + r#""clock":"manual","scale":1.0,"strict":false,"watchdog":10.0,"on_hang":"wait","explain":"auto","output":"out","control":null,"duration":30.0,"#
            + r#""pace":"fast","sync_files":true,"store":1048576,"defaults":{"capacity":4,"quantum":16384},"pool":[],"operator":[{"name":"numbers","#
            + r#""kind":"count","to":3,"pace":"fast","rate":1000.0},{"name":"end","kind":"end"}],"edge":[{"from":"#
            + r#""numbers.out","to":"end.in","capacity":4,"when_full":"wait","quantum":null,"initial":null}],"path":[{"from":"numbers","#
            + r#""to":"end","max_latency":null,"max_in_flight":null,"on_miss":"record"}]}"#
    );
}

#[test]
fn errors_know_their_place() {
    let error = read("name = \"ü\"\n'näme' = 1\n").unwrap_err();
    assert_eq!((error.line_column(), pointed(&error)), (Some((2, 1)), "'näme'"), "{error}");
    let error = read(&CHAIN.replace("to = 3", "to = 3\ndeadline = \"5 parsecs\"")).unwrap_err();
    assert_eq!(pointed(&error), "\"5 parsecs\"", "{error}");
    let error = read(&CHAIN.replace("to = 3", "to = -3")).unwrap_err();
    assert_eq!((error.line_column(), pointed(&error)), (Some((5, 6)), "-3"), "{error}");
    assert_eq!(
        error.to_string(),
        "test.toml:5:6: `to` of operator `numbers`: expected a whole number that is not negative, found integer `-3`"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Pipeline::read("no/such.toml", &registry(), &Overrides::default()).unwrap_err();
    assert!(error.to_string().starts_with("no/such.toml: cannot be read: No such file"), "{error}");
    let error = Pipeline::read("/dev/zero", &registry(), &Overrides::default()).unwrap_err();
    assert!(error.message().contains("a pipe, a socket or a device"), "{error}");
    let large = std::env::temp_dir().join(format!("onbeat-large-{}.toml", std::process::id()));
    std::fs::File::create(&large).unwrap().set_len(17 << 20).unwrap();
    let error = Pipeline::read(&large, &registry(), &Overrides::default()).unwrap_err();
    std::fs::remove_file(&large).unwrap();
    assert!(error.message().contains("larger than 16 MiB"), "{error}");
    let error = Pipeline::read("/", &registry(), &Overrides::default()).unwrap_err();
    assert!(error.message().contains("folder"), "{error}");
}

#[test]
fn ten_thousand_operators_are_read() {
    use std::fmt::Write;
    let mut text = "[[operator]]\nname = \"o0\"\nkind = \"count\"\nto = 1\n".to_string();
    for n in 1..10_000 {
        let (kind, last) = if n == 9_999 { ("end", n - 1) } else { ("times", n - 1) };
        writeln!(
            text,
            "[[operator]]\nname = \"o{n}\"\nkind = \"{kind}\"\n[[edge]]\nfrom = \"o{last}\"\nto = \"o{n}\""
        )
        .unwrap();
    }
    let begin = std::time::Instant::now();
    let pipeline = read_with(&text, &["o5000.by=7"]).unwrap();
    // Far above what it takes, far below what a quadratic look-up takes.
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    assert_eq!(pipeline.plan.edges.len(), 9_999);
}
