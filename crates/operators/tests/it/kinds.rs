//! Properties of every operator kind.
#![forbid(unsafe_code)]

use onbeat_operators::registry;
use onbeat_runtime::{Kind, Overrides, Pipeline};
use std::collections::BTreeSet;

#[test]
fn every_kind_is_complete() {
    let registry = registry();
    let mut names = Vec::new();
    for kind in registry.kinds() {
        let name = kind.name();
        names.push(name);
        assert!(
            name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '_'),
            "{name}"
        );
        let summary = kind.summary();
        assert!(!summary.is_empty() && summary.len() < 80 && !summary.ends_with('.'), "{name}: {summary}");
        // Its example creates an operator.
        let (inputs, outputs) = kind.ports();
        assert!(inputs.len() + outputs.len() > 0, "{name}");
        // Every parameter has a description.
        let schema = serde_json::to_value(kind.schema()).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{name}: unknown keys are errors");
        if let Some(parameters) = schema.get("properties").and_then(|properties| properties.as_object()) {
            for (parameter, about) in parameters {
                let text = about["description"].as_str().unwrap_or("");
                assert!(!text.is_empty() && text.ends_with('.'), "{name}.{parameter}: {text}");
            }
        }
    }
    assert!(names.is_sorted());
}

#[test]
fn every_output_has_a_sink() {
    let registry = registry();
    let sinks: Vec<_> = registry.kinds().map(Kind::ports).filter(|(_, outputs)| outputs.is_empty()).collect();
    for kind in registry.kinds() {
        for port in kind.ports().1 {
            assert!(sinks.iter().any(|(inputs, _)| inputs[0].message == port.message), "{}", kind.name());
        }
    }
}

/// Texts between back-ticks.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Each kind is in exactly one row of the table.
#[test]
fn the_table_is_that_of_the_kinds() {
    let registry = registry();
    let mut left: BTreeSet<_> = registry.kinds().map(Kind::name).collect();
    let rows = include_str!("../../src/lib.rs").lines().filter(|line| line.starts_with("//! | `"));
    for row in rows {
        let cells: Vec<_> = row.trim_start_matches("//! |").trim_end_matches('|').split('|').collect();
        let [kinds, _, _] = cells[..] else { panic!("a row has three cells: {row}") };
        for name in quoted(kinds) {
            assert!(left.remove(name), "`{name}` occurs twice, or is not a kind: {row}");
        }
    }
    assert!(left.is_empty(), "no row for {left:?}");
}

/// Error when an operator is created with these parameters.
fn refused(kind: &str, parameters: &str) -> String {
    let text = format!("[[operator]]\nname = \"it\"\nkind = \"{kind}\"\n{parameters}");
    match Pipeline::parse(&text, "test.toml", ".", &registry(), &Overrides::default()) {
        Ok(_) => "nothing".to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_parameters_are_named() {
    for (kind, parameters, expected) in [
        ("sigmf.source", "", "`path`"),
        ("sigmf.source", "path = \"a\"\nsample_rate = 0", "`sample_rate` is 0"),
        ("sigmf.source", "path = \"a\"\npace = \"slow\"", "slow"),
        ("wav.sink", "path = \"a\"\nformat = \"i24\"", "i24"),
        ("wav.sink", "path = \"a\"\nchannels = 0", "`channels` is 0: it must be from 1 to 64"),
        ("iq.sink", "path = \"a\"\nformat = \"cu8\"\nchannels = 65", "`channels` is 65"),
        ("sigmf.sink.real", "path = \"a\"\nchannels = -1", "channels"),
        ("wav.source", "path = \"a\"\nchannels = 65", "play one of them, with `channel`"),
        ("sigmf.source", "path = \"a\"\nchannels = 0", "`channels` is 0"),
        ("iq.source", "path = \"a\"\nformat = \"cu8\"\nsample_rate = 1\nchannels = 65", "`channels` is 65"),
        ("freq.shift", "shift = \"fast\"", "frequency"),
        ("fir.filter", "cutoff = 0\ntransition = 100", "`cutoff` is 0"),
        ("fir.filter", "cutoff = 100\ntransition = 300", "`transition` is 300"),
        ("fir.decimate", "factor = 0", "`factor` is 0"),
        ("fir.decimate.real", "factor = 5000", "4096"),
        ("fir.decimate", "factor = 2\nattenuation = \"121 dB\"", "`attenuation` is 121"),
        ("quad.demod", "deviation = -1", "`deviation` is -1"),
        ("deemphasis", "tau = 50", "`tau` is 50"),
        ("resample", "", "needs `rate`"),
        ("resample", "rate = 48000\nup = 2", "give either `rate`"),
        ("resample", "rate = 0.5", "`rate` is 0.5"),
        ("resample.complex", "up = 0", "`up` is 0"),
        ("resample.complex", "up = 3\ndown = 4\npass_band = 1", "`pass_band` is 1"),
        ("saxpy", "a = 1\nc = 2", "`c`"),
        ("add", "gain = 1", "`gain`"),
        ("tap", "path = \"a\"\nevery = 0", "`every` is 0"),
        ("throttle", "rate = \"-1 Hz\"", "`rate` is -1"),
        ("load", "", "needs `busy` or `cpu`"),
        ("load.count", "busy = 1\ncount = 1", "give one of them"),
        ("load", "busy = -1", "`busy` is -1"),
        ("load", "cpu = -1", "`cpu` is -1"),
        ("load", "cpu = 1\nbusy = 1", "more than one of `busy`, `cpu` and `count`"),
        ("counter", "rate = 0", "`rate` is 0"),
        ("counter", "count = -1", "count"),
        ("timer", "period = 0", "`period` is 0"),
        ("timer", "period = \"1 s\"\noverrun = \"sometimes\"", "sometimes"),
        ("null.source", "size = 0", "`size` is 0"),
        ("udp.source", "bind = \"9000\"", "`bind` is `9000`"),
        ("udp.source", "bind = \"a:1\"\ntimeout = 0", "`timeout` is 0"),
        ("udp.sink", "address = \"a:1\"\nsize = 70000", "`size` is 70000"),
        ("tcp.sink", "connect = \"a:1\"\nframing = \"loose\"", "loose"),
        ("stdin.source", "sample_rate = -1", "`sample_rate` is -1"),
        ("stdout.sink.complex", "format = \"ri8\"", "or the format ci8"),
    ] {
        let text = refused(kind, parameters);
        assert!(text.contains(expected), "{kind} with {parameters:?}: {text}");
    }
}

/// A second channel of a stereo file: the parameter that gives the operator more ports is named.
#[test]
fn a_port_of_a_second_channel_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let ports = [
        ("kind = \"wav.source\"\npath = \"a.wav\"", "a.out1", "`channels`: Number of channels"),
        ("kind = \"csv.source\"\npath = \"a.csv\"\ncolumns = [\"x\"]", "a.out1", "`columns`: The columns"),
        ("kind = \"wav.source\"\npath = \"a.wav\"", "a.left", ""),
    ];
    for (operator, from, expected) in ports {
        let text = format!(
            "output = {:?}\n[[operator]]\nname = \"a\"\n{operator}\n[[operator]]\nname = \"b\"\n\
             kind = \"null.sink\"\n[[edge]]\nfrom = \"{from}\"\nto = \"b\"\n",
            folder.path()
        );
        let read = Pipeline::parse(&text, "p.toml", folder.path(), &registry(), &Overrides::default());
        let error = read.expect_err("no such port");
        assert!(error.message().contains("has no output"), "{error}");
        let help = error.help().unwrap_or("");
        assert!(help.starts_with(expected) && help.is_empty() == expected.is_empty(), "{help}");
    }
}
